"""The body of ``POST /v1/embeddings``, checked: texts that get vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from constrain.fields.declared import Reads, within
from constrain.fields.values import invalid
from constrain.server.requests.declared import Body
from constrain.server.requests.limits import RANGES
from constrain.server.requests.texts import Text, read_texts
from constrain.server.serving.embedding import EmbeddingRequest, Encoding

if TYPE_CHECKING:
    from constrain.server.settings import Settings


def _inputs(given: object, name: str) -> tuple[Text, ...]:
    inputs = read_texts(given, name, RANGES["input"][1])
    for index, text in enumerate(inputs):
        if not text:
            place = name if isinstance(given, str) else f"{name}[{index}]"
            raise invalid(place, "it is an empty string.")
    return inputs


class EmbeddingBody(Body):
    """The body. OpenAI's types say what fields of the type ``Any`` may be."""

    input: Annotated[tuple[Text, ...], Reads(_inputs, Any)]
    encoding_format: Encoding = "float"
    dimensions: Annotated[int | None, within((1, None))] = None

    def request(self, _: Settings) -> EmbeddingRequest:
        """Returns the request."""
        return EmbeddingRequest(self.model, self.input, self.encoding_format, self.dimensions)
