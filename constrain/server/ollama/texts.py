"""The bodies of ``POST /api/embed`` and ``POST /api/embeddings``, checked: texts that get vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from constrain.fields.declared import Flag, Reads, Text, inside, within
from constrain.fields.values import array, invalid, wrong_type
from constrain.server.http.errors import convert_field_errors
from constrain.server.ollama.options import OllamaOptions
from constrain.server.requests.declared import Body
from constrain.server.requests.limits import RANGES
from constrain.server.serving.embedding import EmbeddingRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT = {"type": "string"}
_LISTED = {"type": "array", "items": {**_TEXT, "minLength": 1}, "maxItems": RANGES["input"][1]}


def _inputs(given: object, name: str) -> tuple[str, ...]:
    """Reads a text, or several."""
    if isinstance(given, str):
        return (given,) if given else ()
    if not isinstance(given, list):
        raise wrong_type(name, "a string or an array", given)
    for index, text in enumerate(array(given, name, RANGES["input"][1])):
        place = f"{name}[{index}]"
        if not isinstance(text, str):
            raise wrong_type(place, "a string", text)
        if not text:
            raise invalid(place, "it is an empty string.")
    return tuple(given)


class _Options(OllamaOptions):
    num_ctx: int | None = None  # says how much of a text is read


class _TextsBody(Body):
    names = "TaggedModelName"

    options: Annotated[_Options | None, inside(_Options)] = None

    def request(self, inputs: tuple[str, ...], field: str, dimensions: int | None, *, is_cut: bool) -> EmbeddingRequest:
        """Returns the request for vectors. Raises ``FieldError``."""
        options = self.options or _Options()
        options.plain_options()
        longest = options.num_ctx if options.num_ctx is not None and options.num_ctx > 0 else None
        return EmbeddingRequest(self.model, inputs, "float", dimensions, field, max_tokens=longest, truncate=is_cut)


class EmbedBody(_TextsBody):
    """The body of ``/api/embed``."""

    input: Annotated[tuple[str, ...], Reads(_inputs, {"anyOf": [_TEXT, _LISTED]})]
    truncate: Flag = None
    dimensions: Annotated[int | None, within((1, None))] = None


class OldEmbeddingsBody(_TextsBody):
    """The body of ``/api/embeddings``."""

    prompt: Text = None


@convert_field_errors()
def read_embed(body: Mapping[str, Any]) -> EmbeddingRequest:
    """Reads a parsed body of ``/api/embed``: a text, or several. Raises ``ApiError`` with the place."""
    asked = EmbedBody.read(body)
    return asked.request(asked.input, "input", asked.dimensions, is_cut=asked.truncate is not False)


@convert_field_errors()
def read_old_embeddings(body: Mapping[str, Any]) -> EmbeddingRequest:
    """Reads a parsed body of ``/api/embeddings``: one text, as ``prompt``. Raises ``ApiError`` with the place."""
    asked = OldEmbeddingsBody.read(body)
    return asked.request((asked.prompt,) if asked.prompt else (), "prompt", None, is_cut=True)
