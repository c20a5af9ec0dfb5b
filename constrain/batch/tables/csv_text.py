"""The bytes of a CSV file on their way to Arrow, which accepts quotes that swallow rows in silence."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import BinaryIO

_BOM = b"\xef\xbb\xbf"
_OPENING = re.compile(rb'[,\r\n]"')
_QUOTES = re.compile(rb'"+')
_FIX = "put quotes around the whole cell, and write each quote within it twice"


class QuoteError(ValueError):
    """A quote in a CSV file that is not closed, or that text follows."""


class CsvText(io.RawIOBase):
    """The content of a CSV file. Raises ``QuoteError`` while it is read; an end of the last line is added if missing.

    Only a quote at the beginning of a cell opens it, as for Arrow: ``5" screen`` is a text.

    Attributes:
        is_cut: whether the end of the last line is missing.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._quotes = _Quotes()
        self._last = b"\n"
        self.is_cut = False

    def readable(self) -> bool:
        """Returns ``True``."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads into a buffer; returns the number of bytes. Raises ``QuoteError``."""
        data = self._file.read(len(buffer)) or b""
        if data:
            self._quotes.feed(data)
        else:
            self._quotes.end()
            data = b"" if self._last in b"\r\n" else b"\n"
            self.is_cut = self.is_cut or data == b"\n"
        self._last = data[-1:] or b"\n"
        buffer[: len(data)] = data
        return len(data)


class _Quotes:
    """The quotes of a CSV file, which is fed piece by piece."""

    def __init__(self) -> None:
        self._opened: int | None = None  # the line of the cell that a quote has opened
        self._line = 0
        self._held = b"\n"  # bytes that were fed and depend on the next one; before the file, a line ends
        self._began = False

    @property
    def open_line(self) -> int | None:
        """Line of the quote that is open at the end of the bytes so far; ``None`` outside of quotes."""
        return None if self._held == b'"' else self._opened

    def feed(self, data: bytes) -> None:
        """Takes the next bytes. Raises ``QuoteError``."""
        if not self._began:
            data, self._began = data.removeprefix(_BOM), True
        text = self._held + data
        is_open, opening, place = self._opened is not None, 0, 0
        while True:
            if not is_open:
                found = _OPENING.search(text, place)
                if found is None:
                    place = len(text) - (2 if text.endswith(b"\r\n") else 1)
                    break
                is_open, opening = True, found.end()
                place = opening
            quotes = _QUOTES.search(text, place)
            if quotes is None:
                place = len(text) - text.endswith(b"\r")
                break
            place = quotes.end()
            if (place - quotes.start()) % 2 == 0:
                continue
            behind = text[place : place + 1]
            if not behind:
                place -= 1
                break
            if behind not in b",\r\n":
                line = self._line + _count_lines(text[:place])
                first = self._line + _count_lines(text[:opening]) if opening else self._opened
                cell = "" if first == line else f", of a cell that begins in line {first}"
                raise QuoteError(f"line {line}: text follows a closing quote{cell}; {_FIX}")
            is_open = False
        if not is_open:
            self._opened = None
        elif opening:
            self._opened = self._line + _count_lines(text[:opening])
        self._line += _count_lines(text[:place])
        self._held = text[place:]

    def end(self) -> None:
        """Raises ``QuoteError`` if a quote is open."""
        if self.open_line is not None:
            raise QuoteError(f"line {self.open_line}: a quote begins a cell and is not closed; {_FIX}")


def _count_lines(text: bytes) -> int:
    """Returns the ends of lines in a text."""
    if b"\r" not in text:
        return text.count(b"\n")
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
