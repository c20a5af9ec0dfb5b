"""What may come next, by the reference: a completion is searched for every single token."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.oracles.lark.reference import Reference, State

SEARCH_LIMIT = 400
"""States looked at for one completion. The search knows the least number of bytes left, so it meets this limit only
where there is no completion but forever something to read, as where the longest match leaves nothing to go on with."""


class Oracle:
    """Answers for one grammar; ``alphabet`` are all bytes its terminals use."""

    def __init__(self, reference: Reference, alphabet: bytes) -> None:
        self.reference = reference
        self.alphabet = alphabet
        self.gave_up = 0
        self._states: dict[bytes, State | None] = {b"": reference.start()}
        self._completions: dict[State, bytes | None] = {}
        self._bounds: dict[State, float] = {}

    def state(self, text: bytes) -> State | None:
        if text not in self._states:
            before = self.state(text[:-1])
            self._states[text] = None if before is None else self.reference.step(before, text[-1])
        return self._states[text]

    def may_end(self, text: bytes) -> bool:
        state = self.state(text)
        return state is not None and self.reference.accepts_at(state)

    def completion(self, text: bytes) -> bytes | None:
        """Bytes that make ``text`` a text of the language; None if none are found."""
        state = self.state(text)
        if state is None:
            return None
        if state not in self._completions:
            found = self._search(state)
            self._completions[state] = found
            at: State | None = state
            for position, byte in enumerate(found or b"", start=1):
                assert at is not None
                at = self.reference.step(at, byte)
                assert at is not None
                assert found is not None
                self._completions.setdefault(at, found[position:])
        return self._completions[state]

    def _search(self, start: State) -> bytes | None:
        order = count()
        queue: list[tuple[float, int, int, bytes, State]] = []
        seen: set[State] = set()

        def push(state: State | None, read: bytes) -> None:
            if state is not None and state not in seen:
                seen.add(state)
                if state not in self._bounds:
                    self._bounds[state] = self.reference.least_bytes_left(state)
                heapq.heappush(queue, (len(read) + self._bounds[state], -len(read), next(order), read, state))

        push(start, b"")
        for _ in range(SEARCH_LIMIT):
            if not queue:
                return None
            *_, read, state = heapq.heappop(queue)
            if self.reference.accepts_at(state):
                return read
            for byte in self.alphabet:
                push(self.reference.step(state, byte), read + bytes([byte]))
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

    def stranded(self, longest: int, most: int) -> bytes | None:
        """A text that can be read, but leads nowhere: among ``most`` of up to ``longest`` bytes, the shortest first."""
        texts = [b""]
        for text in texts:
            if self.state(text) is None:
                continue
            if not self.can_go_on(text):
                return text
            if len(text) < longest and len(texts) < most:
                texts += [text + bytes([byte]) for byte in self.alphabet]
        return None
