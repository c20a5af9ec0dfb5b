"""Readers of an answer while it is written: events for streams, and the value at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from constrain.chat.reading.events import TextDelta
from constrain.chat.reading.places import Located
from constrain.language.special import without_special

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.chat.reading.events import StreamEvent
    from constrain.chat.reading.text_tokens import TextTokens
    from constrain.language.result import ResultType
    from constrain.language.source import Source


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished answer: its value, its text, the reasoning before it, and the stop text behind it (None for none)."""

    value: Any
    text: str
    reasoning: str = ""
    stop: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a finished answer that may have captures.

    Attributes:
        source: language of the part; ``None`` for the language of the whole answer.
        text: text of the part, with special tokens marked.
        call: number of the call whose input the part is; ``None`` for the content.
    """

    source: Source | None
    text: bytes
    call: int | None = None


class Progress(Protocol):
    """The reader of one answer."""

    def feed(self, data: bytes) -> bool:
        """Adds a token's bytes, in the form of ``Vocabulary.marked_bytes``; returns whether the answer must stop."""
        ...

    def take(self) -> list[StreamEvent]:
        """Returns the events that are new since the last call."""
        ...

    def finish(self) -> list[StreamEvent]:
        """Returns the remaining events, after the last bytes."""
        ...

    def outcome(self) -> Outcome:
        """Returns the finished answer. Raises ``OutputValidationError``."""
        ...

    def parts(self, answer: bytes) -> list[Part]:
        """Returns the parts of the finished answer that may have captures. ``answer``: all that was fed, joined."""
        ...

    def located(self) -> list[Located]:
        """Returns the texts of the finished answer whose places in it are known: its value, and arguments of calls."""
        ...


class TextProgress:
    """The reader of an answer that is a text without calls, reasoning and refusals."""

    def __init__(
        self, result: ResultType, stops: Sequence[str], tokens: TextTokens | None = None, *, cuts: bool
    ) -> None:
        # Imported here: this module is imported by modules below llama.
        from constrain.chat.reading.text import TextStream

        self._result = result
        self._text = TextStream(stops, cuts=cuts)
        self._tokens = tokens

    def feed(self, data: bytes) -> bool:
        """Adds the bytes of a token; special tokens are not part of the text. Returns whether the answer must stop."""
        text = without_special(data)
        if self._tokens is not None:
            begin = self._tokens.position
            self._tokens.feed(data)
            if text:
                self._tokens.add_text(begin, self._tokens.position, self._text.length)
        return self._text.feed(text)

    def take(self) -> list[StreamEvent]:
        """Returns the events that are new since the last call."""
        return self._deltas(self._text.take())

    def finish(self) -> list[StreamEvent]:
        """Returns the remaining events, after the last bytes."""
        return self._deltas(self._text.finish())

    def outcome(self) -> Outcome:
        """Returns the finished answer. Raises ``OutputValidationError``."""
        text = self._result.spelled(self._text.text)
        return Outcome(self._result.parse(text), text, stop=self._text.stop)

    def parts(self, answer: bytes) -> list[Part]:
        """Returns the answer as its only part."""
        return [Part(None, answer)]

    def located(self) -> list[Located]:
        """Returns the text of the answer."""
        return [Located((), self._text.text, 0, is_json=self._result.document is not None, is_whole=True)]

    def _deltas(self, piece: str) -> list[StreamEvent]:
        if not piece:
            return []
        return [TextDelta(piece) if self._tokens is None else self._tokens.make_delta(piece)]
