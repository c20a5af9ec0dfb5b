"""A JSON text while it is written: which values begin, grow and are complete, and where they stand in the text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal, NamedTuple

Step = str | int
"""A key of an object, or a position in an array."""

EventKind = Literal["begin", "grow", "complete"]

Path = tuple[Step, ...]
"""The steps from the whole value to a part of it; ``()`` for the whole."""

_BLANKS = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\]*')
_FIRST_HALF = re.compile(r"\\u[dD][89abAB]")
"""The first escape of a character that two escapes spell."""
_NUMBER = re.compile(r"[-+.0-9eE]*")
_SCALAR_START = frozenset("-0123456789")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_CLOSING = {"{": "}", "[": "]"}


class Scanned(NamedTuple):
    """A change of one value: it begins, a string grows by ``text``, or it is complete.

    ``begin`` and ``end`` are the positions of the value in the whole text, in characters; a value that is not complete
    ends where the text ends.
    """

    kind: EventKind
    path: Path
    begin: int
    end: int
    text: str = ""


@dataclass(slots=True)
class _Open:
    """An object or array that is not complete."""

    bracket: str
    begin: int
    step: Step | None = None  # of the current item; in objects None before a key

    def path_step(self) -> Step:
        assert self.step is not None
        return self.step


class Scanner:
    """Reads a JSON text in pieces.

    Attributes:
        text: the text so far.
        is_complete: whether the value is complete.
    """

    def __init__(self) -> None:
        self.text = ""
        self.is_complete = False
        self._at = 0
        self._open: list[_Open] = []
        self._expects = "value"  # value, item (or end), key (or end), next key, colon, comma (or end), nothing
        self._begin = -1  # of a scalar that is not complete, or of a key
        self._scalar = ""  # string, key, number, literal; empty for none
        self._decoded = 0  # up to where the open string was given out
        self._half = -1  # where an escape begins that may be the first half of a character; -1 for none
        self._found: list[Scanned] = []

    def feed(self, piece: str) -> list[Scanned]:
        """Adds a piece of the text; returns what changes. Raises ValueError if the text is not JSON."""
        self.text += piece
        self._found = []
        while self._at < len(self.text):
            if not (self._scalar_goes_on() if self._scalar else self._structure()):
                break
        return self._found

    def finish(self) -> list[Scanned]:
        """Returns what changes at the end of the text: a number at the top level is complete."""
        self._found = []
        if self._scalar == "number":
            self._complete_scalar(len(self.text))
        return self._found

    def path(self) -> Path:
        """Returns the path of the value that is being written."""
        return tuple(each.path_step() for each in self._open)

    def place(self) -> Path:
        """Returns the path of the value under way; that of an object, as long as its next key is not complete."""
        steps = (each.step for each in self._open)
        return tuple(step for step in takewhile(lambda step: step is not None, steps) if step is not None)

    # Structure

    def _structure(self) -> bool:
        """Reads one mark, or the beginning of a scalar; returns False at the end of the text."""
        match = _BLANKS.match(self.text, self._at)
        assert match is not None
        self._at = match.end()
        if self._at == len(self.text):
            return False
        character = self.text[self._at]
        expects = self._expects
        if expects in ("value", "item") and character != "]":
            self._begin_value(character)
        elif expects in ("item", "comma") and self._open and character == _CLOSING[self._open[-1].bracket]:
            self._close()
        elif expects in ("key", "next key") and character == '"':
            self._begin, self._scalar, self._at, self._half = self._at, "key", self._at + 1, -1
        elif expects == "key" and character == "}":
            self._close()
        elif expects == "colon" and character == ":":
            self._expects, self._at = "value", self._at + 1
        elif expects == "comma" and character == ",":
            self._next_item()
        else:
            raise self._wrong()
        return True

    def _begin_value(self, character: str) -> None:
        begin = self._at
        self._begin = begin
        if character in "{[":
            self._emit("begin", begin, begin)
            self._open.append(_Open(character, begin, None if character == "{" else 0))
            self._expects, self._at = "key" if character == "{" else "item", begin + 1
            return
        if character == '"':
            self._scalar, self._at, self._decoded, self._half = "string", begin + 1, begin + 1, -1
        elif character in _SCALAR_START:
            self._scalar = "number"
        elif character in _LITERALS:
            self._scalar = "literal"
        else:
            raise self._wrong()
        self._emit("begin", begin, begin)

    def _next_item(self) -> None:
        container = self._open[-1]
        self._at += 1
        if container.bracket == "{":
            container.step, self._expects = None, "next key"
        else:
            assert isinstance(container.step, int)
            container.step += 1
            self._expects = "value"

    def _close(self) -> None:
        closed = self._open.pop()
        self._at += 1
        self._emit("complete", closed.begin, self._at)
        self._after_value()

    def _after_value(self) -> None:
        self._expects = "comma" if self._open else "nothing"
        self.is_complete = not self._open

    # Scalars

    def _scalar_goes_on(self) -> bool:
        """Reads on in a scalar; returns False at the end of the text."""
        if self._scalar in ("string", "key"):
            return self._string_goes_on()
        if self._scalar == "number":
            match = _NUMBER.match(self.text, self._at)
            assert match is not None
            self._at = match.end()
            if self._at == len(self.text):
                return False
            self._complete_scalar(self._at)
            return True
        word = _LITERALS[self.text[self._begin]]
        written = self.text[self._begin : self._begin + len(word)]
        if not word.startswith(written):
            raise self._wrong()
        self._at = self._begin + len(written)
        if written != word:
            return False
        self._complete_scalar(self._at)
        return True

    def _string_goes_on(self) -> bool:
        while True:
            match = _PLAIN.match(self.text, self._at)
            assert match is not None
            if match.end() > self._at:
                self._half, self._at = -1, match.end()
            if self._at == len(self.text):
                break
            if self.text[self._at] == '"':
                self._at += 1
                self._end_string()
                return True
            length = 6 if self.text.startswith("\\u", self._at) else 2
            if self._at + length > len(self.text):
                break
            is_half = self._half < 0 and _FIRST_HALF.match(self.text, self._at) is not None
            self._half = self._at if is_half else -1
            self._at += length
        self._grow(self._at if self._half < 0 else self._half)
        return False

    def _end_string(self) -> None:
        if self._scalar == "key":
            self._open[-1].step = self._read(self._begin, self._at)
            self._scalar, self._expects = "", "colon"
            return
        self._grow(self._at - 1)
        self._complete_scalar(self._at)

    def _grow(self, until: int) -> None:
        """Gives out the open string up to a position."""
        if self._scalar == "string" and until > self._decoded:
            text = self._read_inside(self._decoded, until)
            self._decoded = until
            self._emit("grow", self._begin, until, text)

    def _complete_scalar(self, end: int) -> None:
        self._scalar = ""
        self._read(self._begin, end)
        self._emit("complete", self._begin, end)
        self._after_value()

    def _read(self, begin: int, end: int) -> Any:
        return self._loads(self.text[begin:end], begin)

    def _read_inside(self, begin: int, end: int) -> str:
        text: str = self._loads(f'"{self.text[begin:end]}"', begin)
        return text

    def _loads(self, text: str, begin: int) -> Any:
        try:
            return json.loads(text)
        except ValueError as error:
            self._at = begin
            raise self._wrong() from error

    def _emit(self, kind: EventKind, begin: int, end: int, text: str = "") -> None:
        self._found.append(Scanned(kind, self.path(), begin, end, text))

    def _wrong(self) -> ValueError:
        around = self.text[max(0, self._at - 20) : self._at + 20]
        return ValueError(f"this is not JSON: character {self._at} cannot stand here (near {around!r})")
