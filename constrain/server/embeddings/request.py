"""The body of ``POST /v1/embeddings``, checked: texts that get vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from constrain.fields.declared import Reads, within
from constrain.server.http.errors import ApiError, convert_field_errors
from constrain.server.requests.declared import Body
from constrain.server.requests.limits import RANGES
from constrain.server.requests.texts import Text, read_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

Encoding = Literal["float", "base64"]


def _inputs(given: object, name: str) -> tuple[Text, ...]:
    inputs = read_texts(given, name, RANGES["input"][1])
    for index, text in enumerate(inputs):
        if not text:
            place = name if isinstance(given, str) else f"{name}[{index}]"
            raise ApiError(f"Invalid '{place}': it is an empty string.", param=place, code="invalid_value")
    return inputs


class EmbeddingBody(Body):
    """The body. OpenAI's types say what fields of the type ``Any`` may be."""

    input: Annotated[tuple[Text, ...], Reads(_inputs, Any)]
    encoding_format: Encoding = "float"
    dimensions: Annotated[int | None, within((1, None))] = None


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
    asked = EmbeddingBody.read(body)
    return EmbeddingRequest(asked.model, asked.input, asked.encoding_format, asked.dimensions)


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
