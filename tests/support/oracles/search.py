"""What may come next, by brute force: for every single token a completion of the text is searched for."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from itertools import count
from typing import Any, Protocol

SEARCH_LIMIT = 1_000
"""States looked at for one completion. Completions in the tests' grammars take a few bytes, and the search knows the
least number of bytes left, so it meets this limit only where there is no completion but forever something to read."""


class Reader(Protocol):
    """Reads the texts of one language, byte by byte. A state is all that matters of the bytes before it."""

    def start(self) -> Any: ...

    def step(self, state: Any, byte: int) -> Any | None:
        """The state after one more byte; None if no text of the language goes on like that."""

    def accepts_at(self, state: Any) -> bool:
        """Whether the text may end here."""

    def least_bytes_left(self, state: Any) -> float:
        """A number of bytes that every completion has at least."""


class Oracle:
    """Answers for one language; ``alphabet`` are all bytes that its texts have."""

    def __init__(self, reader: Reader, alphabet: bytes, *, limit: int = SEARCH_LIMIT) -> None:
        self.reader = reader
        self.alphabet = alphabet
        self.limit = limit
        self.gave_up = 0
        self._states: dict[bytes, Hashable | None] = {b"": reader.start()}
        self._completions: dict[Hashable, bytes | None] = {}
        self._bounds: dict[Hashable, float] = {}

    def state(self, text: bytes) -> Any | None:
        if text not in self._states:
            before = self.state(text[:-1])
            self._states[text] = None if before is None else self.reader.step(before, text[-1])
        return self._states[text]

    def may_end(self, text: bytes) -> bool:
        state = self.state(text)
        return state is not None and self.reader.accepts_at(state)

    def completion(self, text: bytes) -> bytes | None:
        """Bytes that make ``text`` a text of the language; None if none are found."""
        state = self.state(text)
        if state is None:
            return None
        if state not in self._completions:
            found = self._search(state)
            self._completions[state] = found
            at: Any = state
            for position, byte in enumerate(found or b"", start=1):
                at = self.reader.step(at, byte)
                assert at is not None
                assert found is not None
                self._completions.setdefault(at, found[position:])
        return self._completions[state]

    def _search(self, start: Hashable) -> bytes | None:
        order = count()
        queue: list[tuple[float, int, int, bytes, Any]] = []
        seen: set[Hashable] = set()

        def push(state: Hashable | None, read: bytes) -> None:
            if state is not None and state not in seen:
                seen.add(state)
                if state not in self._bounds:
                    self._bounds[state] = self.reader.least_bytes_left(state)
                heapq.heappush(queue, (len(read) + self._bounds[state], -len(read), next(order), read, state))

        push(start, b"")
        for _ in range(self.limit):
            if not queue:
                return None
            *_, read, state = heapq.heappop(queue)
            if self.reader.accepts_at(state):
                return read
            for byte in self.alphabet:
                push(self.reader.step(state, byte), read + bytes([byte]))
        self.gave_up += 1
        return None

    def can_go_on(self, text: bytes) -> bool:
        return self.completion(text) is not None

    def mask(self, prefix: bytes, tokens: list[bytes], special: set[int], end: set[int]) -> list[bool]:
        """Of every token: may it come after ``prefix``?"""
        return [
            self.may_end(prefix)
            if index in end
            else index not in special and token != b"" and self.can_go_on(prefix + token)
            for index, token in enumerate(tokens)
        ]

    def forced(self, text: bytes) -> bytes:
        """The bytes that must come next: as long as the text may not end and exactly one byte can follow."""
        start = len(text)
        while not self.may_end(text):
            following = [byte for byte in self.alphabet if self.can_go_on(text + bytes([byte]))]
            if len(following) != 1:
                break
            text += bytes(following)
        return text[start:]

    def open_starts(self, prefix: bytes, size: int, tokens: list[bytes], ordinary: list[int]) -> list[int]:
        """Offsets into the last ``size`` bytes of ``prefix`` at which a token may begin that goes on beyond them."""
        starts = []
        for start in range(size):
            rest = prefix[len(prefix) - size + start :]
            longer = [tokens[i][len(rest) :] for i in ordinary if tokens[i].startswith(rest) and tokens[i] != rest]
            if any(self.can_go_on(prefix + more) for more in longer):
                starts.append(start)
        return starts
