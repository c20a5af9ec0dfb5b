"""What a model is asked: what all endpoints whose model writes an answer make of a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constrain.generation.options import ChatOptions
    from constrain.server.requests.formats import Format
    from constrain.server.requests.places import Places
    from constrain.server.requests.texts import Text


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked: a request without what its endpoint alone knows, before a model has seen it.

    Attributes:
        prompt: messages in OpenAI's shape, checked; or a text to go on with.
        content: what the content must match; None for any text.
        options: for the generation.
        places: where the request has what errors may still be about.
        n: the number of answers.
    """

    prompt: list[dict[str, Any]] | Text
    content: Format | None
    options: ChatOptions
    places: Places
    n: int = 1

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the content."""
        return None if self.content is None else self.content.schema
