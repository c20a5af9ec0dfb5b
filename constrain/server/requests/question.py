"""The question to a model: the same record for all endpoints that write text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.fields.values import integer
from constrain.server.requests.limits import MAX_CHOICES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.language.source import Source
    from constrain.server.requests.formats import Format
    from constrain.server.requests.places import Places
    from constrain.server.requests.texts import Text


@dataclass(frozen=True, slots=True)
class Question:
    """The question to a model: a request without the fields of its endpoint, before it meets a model.

    Attributes:
        prompt: checked messages in OpenAI's form, or a text to continue.
        content: format of the content; None for any text.
        options: options for the generation.
        places: names of the request's fields for later errors.
        n: number of answers.
        vote: whether the answers become one, the one that they agree on.
        prefill: text that each answer begins with, without being returned; ``""`` for none.
    """

    prompt: list[dict[str, Any]] | Text
    content: Format | None
    options: ChatOptions
    places: Places
    n: int = 1
    vote: bool = False
    prefill: str = ""

    @property
    def schema(self) -> str | Source | None:
        """The JSON Schema of the content, as text, or another language."""
        return None if self.content is None else self.content.schema


def read_n(body: Mapping[str, Any]) -> int:
    """Reads ``n``: the number of answers per prompt. Raises ``FieldError``."""
    return integer(body, "n", 1, MAX_CHOICES) or 1
