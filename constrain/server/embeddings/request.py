"""The body of ``POST /v1/embeddings``, checked: texts of which vectors are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import integer, model_name, wrong_value
from constrain.server.requests.limits import MAX_INPUTS
from constrain.server.requests.texts import read_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.server.requests.texts import Text

Encoding = Literal["float", "base64"]

_ENCODINGS = ("float", "base64")


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """A body that was read: what a client asks of this endpoint.

    Attributes:
        model: its name.
        inputs: the texts, none of which is empty.
        encoding: how the vectors are written: as numbers, or as the base64 of 32-bit floats, little-endian.
        dimensions: how many numbers a vector has; ``None`` for the model's own.
    """

    model: str
    inputs: tuple[Text, ...]
    encoding: Encoding
    dimensions: int | None


def read_embedding_request(body: Mapping[str, Any]) -> EmbeddingRequest:
    """The request that a parsed body is. Raises ``ApiError``, which names the place."""
    model = model_name(body)
    inputs = read_texts(body, "input", MAX_INPUTS)
    for index, text in enumerate(inputs):
        if not text:
            place = "input" if isinstance(body["input"], str) else f"input[{index}]"
            raise ApiError(f"Invalid '{place}': it is an empty string.", param=place, code="invalid_value")
    encoding: Any = body.get("encoding_format")
    if encoding is not None and encoding not in _ENCODINGS:
        raise wrong_value("encoding_format", encoding, _ENCODINGS)
    return EmbeddingRequest(model, inputs, encoding or "float", integer(body, "dimensions", 1))


def require_dimensions(asked: EmbeddingRequest, size: int) -> None:
    """Raises ``ApiError`` for another number of dimensions than the model has.

    A vector is not cut: only of models that were trained for it would the first numbers say what the whole does, and
    their files do not tell.
    """
    if asked.dimensions not in (None, size):
        raise ApiError(
            f"Invalid 'dimensions': the vectors of '{asked.model}' have {size}, and are not shortened.",
            param="dimensions",
            code="invalid_value",
        )
