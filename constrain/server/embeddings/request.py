"""The body of ``POST /v1/embeddings``, checked: texts that get vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from constrain.fields.values import integer, wrong_value
from constrain.server.http.errors import ApiError, convert_field_errors
from constrain.server.requests.body import model_name
from constrain.server.requests.limits import RANGES
from constrain.server.requests.texts import read_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.server.requests.texts import Text

Encoding = Literal["float", "base64"]

_ENCODINGS = ("float", "base64")


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """The checked fields of a request for embeddings.

    Attributes:
        model: name of the model.
        inputs: non-empty texts.
        encoding: encoding of the vectors: numbers, or the base64 of 32-bit floats, little-endian.
        dimensions: numbers per vector; ``None`` for the model's own.
        field: name of the field with the texts, for errors.
        max_tokens: most tokens of a text; ``None`` for as many as the model's context holds.
        truncate: whether longer texts are cut; otherwise they are refused.
    """

    model: str
    inputs: tuple[Text, ...]
    encoding: Encoding
    dimensions: int | None
    field: str = "input"
    max_tokens: int | None = None
    truncate: bool = False


@convert_field_errors()
def read_embedding_request(body: Mapping[str, Any]) -> EmbeddingRequest:
    """Reads a parsed body. Raises ``ApiError`` with the place."""
    model = model_name(body)
    inputs = read_texts(body, "input", RANGES["input"][1])
    for index, text in enumerate(inputs):
        if not text:
            place = "input" if isinstance(body["input"], str) else f"input[{index}]"
            raise ApiError(f"Invalid '{place}': it is an empty string.", param=place, code="invalid_value")
    encoding: Any = body.get("encoding_format")
    if encoding is not None and encoding not in _ENCODINGS:
        raise wrong_value("encoding_format", encoding, _ENCODINGS)
    return EmbeddingRequest(model, inputs, encoding or "float", integer(body, "dimensions", 1))


def require_dimensions(asked: EmbeddingRequest, size: int) -> None:
    """Raises ``ApiError`` if the request asks for another number of dimensions than the model has.

    Vectors are never shortened: the first numbers carry the meaning only in models trained for it, and their files do
    not say so.
    """
    if asked.dimensions not in (None, size):
        raise ApiError(
            f"Invalid 'dimensions': the vectors of '{asked.model}' have {size}, and are not shortened.",
            param="dimensions",
            code="invalid_value",
        )
