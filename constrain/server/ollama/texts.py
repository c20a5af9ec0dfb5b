"""The bodies of ``POST /api/embed`` and ``POST /api/embeddings``, checked: texts that get vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from constrain.fields.declared import Flag, Reads, Text, inside, within
from constrain.fields.values import array, invalid, wrong_type
from constrain.server.ollama.options import OllamaOptions
from constrain.server.requests.declared import Body
from constrain.server.requests.limits import RANGES
from constrain.server.serving.embedding import EmbeddingRequest

if TYPE_CHECKING:
    from constrain.server.settings import Settings

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

    def embed(self, inputs: tuple[str, ...], field: str, dimensions: int | None, *, is_cut: bool) -> EmbeddingRequest:
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

    def request(self, _: Settings) -> EmbeddingRequest:
        """Returns the request. Raises ``FieldError``."""
        return self.embed(self.input, "input", self.dimensions, is_cut=self.truncate is not False)


class OldEmbeddingsBody(_TextsBody):
    """The body of ``/api/embeddings``."""

    prompt: Text = None

    def request(self, _: Settings) -> EmbeddingRequest:
        """Returns the request. Raises ``FieldError``."""
        return self.embed((self.prompt,) if self.prompt else (), "prompt", None, is_cut=True)
