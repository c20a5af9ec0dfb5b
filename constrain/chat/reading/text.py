"""The text of an answer while it grows: bytes to characters, and stop texts."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class TextStream:
    """Turns the bytes of tokens into pieces of text that can be shown at once.

    An incomplete character is held back. With ``cuts``, the text ends before the first stop text, and a possible
    beginning of a stop text is held back, too. Without ``cuts``, for text that must stay whole, a stop text and the
    text after it belong to the text.
    """

    def __init__(self, stops: Sequence[str] = (), *, cuts: bool) -> None:
        self._stops = StopTexts(stops)
        self._state = 0
        self._cuts = cuts
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace" if cuts else "strict")
        self._text = ""
        self._shown = 0
        self._end: int | None = None
        self.stop: str | None = None
        """The stop text before which the text ends; ``None`` for none."""

    def feed(self, data: bytes) -> bool:
        """Adds the bytes of a token; returns whether a stop text ends in them."""
        return self._add(self._decoder.decode(data))

    def take(self) -> str:
        """Returns the text that can be shown and was not shown before."""
        end = len(self._text) if self._end is None else self._end
        if self._cuts and self._end is None:
            end -= self._stops.depth(self._state)  # may be the beginning of a stop text
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
        places: list[tuple[int, str]] = []
        for number, character in enumerate(new, len(self._text) + 1):
            self._state = self._stops.step(self._state, character)
            places += [(number - len(stop), stop) for stop in self._stops.ending_at(self._state)]
        self._text += new
        if self._cuts and places and self._end is None:
            self._end, self.stop = min(places)
        return bool(places)


class StopTexts:
    """Stop texts as one automaton (Aho and Corasick 1975): a step per character, however many texts there are.

    A state stands for the longest end of the text so far that begins a stop text; 0 is the state of the empty end.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._steps: dict[tuple[int, str], int] = {}
        self._depths = [0]
        self._shorter = [0]  # by state: that of the longest proper end of its text that begins a stop text
        self._whole: dict[int, str] = {}
        self._ends = [0]  # by state: the next shorter one whose text is a whole stop text; 0 for none
        for stop in stops:
            self._add(stop)
        self._link()

    def step(self, state: int, character: str) -> int:
        """Returns the state after a further character."""
        while (found := self._steps.get((state, character))) is None:
            if state == 0:
                return 0
            state = self._shorter[state]
        return found

    def depth(self, state: int) -> int:
        """Returns the number of characters at the end that may begin a stop text."""
        return self._depths[state]

    def ending_at(self, state: int) -> Iterator[str]:
        """Yields the stop texts that end with the last character."""
        while state:
            if state in self._whole:
                yield self._whole[state]
            state = self._ends[state]

    def _add(self, stop: str) -> None:
        state = 0
        for character in stop:
            following = self._steps.setdefault((state, character), len(self._depths))
            if following == len(self._depths):
                self._depths.append(self._depths[state] + 1)
                self._shorter.append(0)
                self._ends.append(0)
            state = following
        if state:
            self._whole[state] = stop

    def _link(self) -> None:
        """Finds the shorter states, from short texts to long ones."""
        for (state, character), following in sorted(self._steps.items(), key=lambda item: self._depths[item[1]]):
            if state:
                self._shorter[following] = self.step(self._shorter[state], character)
            shorter = self._shorter[following]
            self._ends[following] = shorter if shorter in self._whole else self._ends[shorter]
