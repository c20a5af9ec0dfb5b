"""What becomes of an answer while it is written: events for whoever streams, and its value in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from constrain.chat.reading.events import TextDelta
from constrain.language.special import without_special

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.chat.reading.events import StreamEvent
    from constrain.chat.reading.text_tokens import TextTokens
    from constrain.language.result import ResultType


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished answer: its value, its text, and the reasoning in front of it."""

    value: Any
    text: str
    reasoning: str = ""


class Progress(Protocol):
    """One answer."""

    def feed(self, data: bytes) -> bool:
        """Adds the bytes of a token, as ``Vocabulary.marked_bytes`` has them; ``True`` if the answer shall stop."""
        ...

    def take(self) -> list[StreamEvent]:
        """What can be shown and was not yet."""
        ...

    def finish(self) -> list[StreamEvent]:
        """The rest, once no more bytes come."""
        ...

    def outcome(self) -> Outcome:
        """What the finished answer says. Raises ``OutputValidationError``."""
        ...


class TextProgress:
    """An answer that is a text, and stands for a value."""

    def __init__(
        self, result: ResultType, stops: Sequence[str], tokens: TextTokens | None = None, *, cuts: bool
    ) -> None:
        # Imported here: a module below llama.
        from constrain.chat.reading.text import TextStream

        self._result = result
        self._text = TextStream(stops, cuts=cuts)
        self._tokens = tokens

    def feed(self, data: bytes) -> bool:
        """See ``Progress``. Special tokens are no part of the text."""
        text = without_special(data)
        if self._tokens is not None:
            begin = self._tokens.position
            self._tokens.feed(data)
            if text:
                self._tokens.place(begin, self._tokens.position, self._text.length)
        return self._text.feed(text)

    def take(self) -> list[StreamEvent]:
        """See ``Progress``."""
        return self._deltas(self._text.take())

    def finish(self) -> list[StreamEvent]:
        """See ``Progress``."""
        return self._deltas(self._text.finish())

    def outcome(self) -> Outcome:
        """See ``Progress``."""
        return Outcome(self._result.parse(self._text.text), self._text.text)

    def _deltas(self, piece: str) -> list[StreamEvent]:
        if not piece:
            return []
        return [TextDelta(piece) if self._tokens is None else self._tokens.tell(piece)]
