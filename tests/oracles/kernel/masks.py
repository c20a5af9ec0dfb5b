"""What may come next, found by searching for a completion of every single token."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING

from tests.oracles.kernel.recognizer import Recognizer, State

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar

SEARCH_LIMIT = 1_000
"""States looked at for one completion. Completions in the tests' grammars take a few bytes, and the search knows the
least number of bytes left, so it meets this limit only where there is no completion but forever something to read."""


class Oracle:
    """Answers for one grammar; ``alphabet`` are all bytes its terminals use."""

    def __init__(self, grammar: Grammar, alphabet: bytes) -> None:
        self.recognizer = Recognizer(grammar)
        self.alphabet = alphabet
        self.gave_up = 0
        self._states: dict[bytes, State | None] = {b"": self.recognizer.start()}
        self._completions: dict[bytes, bytes | None] = {}

    def state(self, text: bytes) -> State | None:
        if text not in self._states:
            before = self.state(text[:-1])
            self._states[text] = None if before is None else self.recognizer.step(before, text[-1])
        return self._states[text]

    def may_end(self, text: bytes) -> bool:
        state = self.state(text)
        return state is not None and self.recognizer.accepts_at(state)

    def completion(self, text: bytes) -> bytes | None:
        """Bytes that make ``text`` a text of the language; None if there are none."""
        if text not in self._completions:
            found = self._search(text)
            self._completions[text] = found
            for position in range(len(found or b"")):
                self._completions.setdefault(text + found[: position + 1], found[position + 1 :])
        return self._completions[text]

    def _search(self, text: bytes) -> bytes | None:
        order = count()
        queue: list[tuple[float, int, int, bytes]] = []

        def push(longer: bytes) -> None:
            state = self.state(longer)
            if state is not None:
                estimate = len(longer) + self.recognizer.least_bytes_left(state)
                heapq.heappush(queue, (estimate, -len(longer), next(order), longer))

        push(text)
        for _ in range(SEARCH_LIMIT):
            if not queue:
                return None
            longer = heapq.heappop(queue)[-1]
            if self.may_end(longer):
                return longer[len(text) :]
            for byte in self.alphabet:
                push(longer + bytes([byte]))
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
