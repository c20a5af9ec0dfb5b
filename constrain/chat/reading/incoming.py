"""Bytes of an answer that have arrived and are not read yet; read as structure, text or JSON.

Generators pause when they need more bytes. They continue when more have arrived, or when no more will.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from constrain.json_schema.spelling.canonical import read_content
from constrain.language.special import BEGIN, END, mark, split_special, without_special

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_QUOTE, _BACKSLASH = b'"\\'


class Incoming:
    """A buffer of unread bytes.

    Attributes:
        buffer: bytes that are not read yet.
        at_end: whether no more bytes will arrive.
        position: number of bytes read.
        span: positions of the first byte of the text that ``text`` emits, and of the byte behind its last.
    """

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.at_end = False
        self.position = 0
        self.span = (0, 0)

    def take(self, length: int) -> bytes:
        """Removes and returns the next bytes."""
        taken = bytes(self.buffer[:length])
        del self.buffer[:length]
        self.position += len(taken)
        return taken

    def byte(self) -> Generator[None, None, bytes]:
        """Returns the next byte without removing it; empty at the end."""
        while not self.buffer and not self.at_end:
            yield
        return bytes(self.buffer[:1])

    def begins_with(self, texts: list[bytes]) -> Generator[None, None, bytes | None]:
        """Returns the text that comes next, without removing it; None if none does. No text begins with another."""
        while True:
            for text in texts:
                if self.buffer.startswith(text):
                    return text
            held = bytes(self.buffer)
            if self.at_end or not any(text.startswith(held) for text in texts):
                return None
            yield

    def text(self, stops: list[bytes], emit: Callable[[str], object]) -> Generator[None, None, bytes | None]:
        """Emits text up to the first of several stops; returns the stop without removing it, or None at the end.

        Special tokens are no part of the text.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        begin = self.position
        while True:
            places = [(place, stop) for stop in stops if (place := self.buffer.find(stop)) >= 0]
            place, found = min(places) if places else (len(self.buffer), None)
            if found is None and not self.at_end:
                place -= _count_held_back(self.buffer, stops)
            text = decoder.decode(without_special(self.take(place)), final=found is not None or self.at_end)
            if text:
                self.span, begin = (begin, self.position), self.position
                emit(text)
            if found is not None or self.at_end:
                return found
            yield

    def json_object(self, emit: Callable[[str], object]) -> Generator[None, None, bool]:
        """Emits a JSON object up to its closing brace; returns whether it is complete."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        depth, in_string, escaped = 0, False, False
        while True:
            end = None
            for position, byte in enumerate(self.buffer):
                if in_string:
                    if escaped or byte == _BACKSLASH:
                        escaped = not escaped
                    elif byte == _QUOTE:
                        in_string = False
                elif byte == _QUOTE:
                    in_string = True
                elif byte in b"{[":
                    depth += 1
                elif byte in b"}]":
                    depth -= 1
                    if depth == 0:
                        end = position + 1
                        break
            text = decoder.decode(self.take(len(self.buffer) if end is None else end))
            if text:
                emit(text)
            if end is not None or self.at_end:
                return end is not None
            yield

    def json_string(self, emit: Callable[[str], object]) -> Generator[None, None, bool]:
        """Emits a JSON string after its first quote, and removes its last quote; returns whether it is complete."""
        while True:
            position, whole = 0, 0  # ``whole``: position behind the last complete character
            while position < len(self.buffer) and self.buffer[position] != _QUOTE:
                length = _length_of_spelling(self.buffer, position)
                position += length
                if position <= len(self.buffer):
                    whole = position
            text = read_content(without_special(self.take(whole)))
            if text:
                emit(text)
            if self.buffer[:1] == b'"':
                self.take(1)
                return True
            if self.at_end:
                return False
            yield


def json_text(spelled: bytes) -> bytes:
    """Returns the text of a JSON string from what stands between its quotes; special tokens stay marked."""
    parts = split_special(spelled)
    for place in range(0, len(parts), 2):
        parts[place] = read_content(parts[place]).encode("utf-8", "surrogatepass")  # a cut text may end in half a pair
    for place in range(1, len(parts), 2):
        parts[place] = mark(parts[place].decode())
    return b"".join(parts)


def _count_held_back(text: bytearray, stops: list[bytes]) -> int:
    """Returns how many bytes at the end may be the beginning of a stop."""
    longest = max(map(len, stops), default=1) - 1
    for length in range(min(longest, len(text)), 0, -1):
        end = bytes(text[-length:])
        if any(stop.startswith(end) for stop in stops):
            return length
    return 0


def _length_of_spelling(text: bytearray, position: int) -> int:
    """Returns the number of bytes of the character of a JSON string at a position, or of the special token there."""
    byte = text[position]
    if byte == BEGIN[0]:
        end = text.find(END, position)
        return len(text) + 1 if end < 0 else end + 1 - position
    if byte == _BACKSLASH:
        return 6 if text[position + 1 : position + 2] == b"u" else 2
    return 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
