"""The text of an answer while it grows: bytes to characters, and stop texts."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class TextStream:
    """Turns the bytes of tokens into pieces of text that can be shown at once.

    An incomplete character is held back. With ``cuts``, the text ends before the first stop text, and a possible
    beginning of a stop text is held back, too. Without ``cuts``, for text that must stay whole, a stop text and the
    text after it belong to the text.
    """

    def __init__(self, stops: Sequence[str] = (), *, cuts: bool) -> None:
        self._stops = tuple(stops)
        self._longest = max(map(len, self._stops), default=0)
        self._cuts = cuts
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace" if cuts else "strict")
        self._text = ""
        self._shown = 0
        self._end: int | None = None
        self.stop: str | None = None
        """The stop text before which the text ends; ``None`` for none."""

    def feed(self, data: bytes) -> bool:
        """Adds the bytes of a token; returns whether the text contains a stop text."""
        return self._add(self._decoder.decode(data))

    def take(self) -> str:
        """Returns the text that can be shown and was not shown before."""
        end = len(self._text) if self._end is None else self._end
        if self._cuts and self._end is None:
            end -= self._possible_stop()
        piece = self._text[self._shown : end]
        self._shown += len(piece)
        return piece

    def finish(self) -> str:
        """Returns the remaining text, after the last bytes."""
        self._add(self._decoder.decode(b"", final=True))
        piece = self._text[self._shown : self._end]
        self._shown += len(piece)
        return piece

    @property
    def length(self) -> int:
        """Number of characters so far, shown or not."""
        return len(self._text)

    @property
    def text(self) -> str:
        """The whole text so far."""
        return self._text[: self._end]

    def _add(self, new: str) -> bool:
        # A stop text that ends in ``new`` begins at most its own length before it.
        start = max(0, len(self._text) - self._longest + 1)
        self._text += new
        places = [(place, stop) for stop in self._stops if (place := self._text.find(stop, start)) >= 0]
        if self._cuts and places and self._end is None:
            self._end, self.stop = min(places)
        return bool(places)

    def _possible_stop(self) -> int:
        """Returns how many characters at the end may be the beginning of a stop text."""
        for length in range(min(self._longest - 1, len(self._text)), 0, -1):
            ending = self._text[-length:]
            if any(stop.startswith(ending) for stop in self._stops):
                return length
        return 0
