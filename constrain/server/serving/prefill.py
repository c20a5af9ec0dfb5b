"""Answers without the beginning that their request gave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from constrain.chat.reading.events import TextDelta

if TYPE_CHECKING:
    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.completion import Completion


@dataclass(slots=True)
class Prefill:
    """The given beginning of one answer, which its client does not want to read again.

    Attributes:
        characters: characters of the text.
        tokens: tokens of the text.
        given: tokens of the text and of the structure in front of it; they count for the prompt.
    """

    characters: int
    tokens: int
    given: int
    _characters: int = 0
    _tokens: int = 0

    def cut_event(self, event: StreamEvent) -> StreamEvent | None:
        """Returns an event without its share of the beginning; ``None`` if nothing is left. Call it in order."""
        if not isinstance(event, TextDelta) or self._characters == self.characters:
            return event
        text = event.text[self.characters - self._characters :]
        self._characters += len(event.text) - len(text)
        logprobs = event.logprobs[self.tokens - self._tokens :]
        self._tokens += len(event.logprobs) - len(logprobs)
        return TextDelta(text, logprobs) if text or logprobs else None

    def cut(self, completion: Completion) -> Completion:
        """Returns a finished answer without the beginning of its text; all else is about the whole answer."""
        usage, logprobs = completion.usage, completion.text_logprobs
        return replace(
            completion,
            text=completion.text[self.characters :],
            text_logprobs=None if logprobs is None else logprobs[self.tokens :],
            usage=replace(
                usage,
                prompt_tokens=usage.prompt_tokens + self.given,
                completion_tokens=usage.completion_tokens - self.given,
            ),
        )
