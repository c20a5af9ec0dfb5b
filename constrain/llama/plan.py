"""The completion an answer falls back on, in tokens, kept up to date as the answer grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Plan:
    """Bytes that complete the answer, and tokens that spell them: ``None`` while nobody needed to know them."""

    text: bytes
    tokens: tuple[int, ...] | None = None

    def followed_by(
        self, text: bytes, limit: int, encode: Callable[[bytes], list[int]], token_bytes: Callable[[int], bytes]
    ) -> Plan | None:
        """The plan for a new completion, if it takes at most ``limit`` tokens; ``None`` if it does not.

        A token has at least one byte, so a completion of few bytes fits without being tokenized. A long one mostly
        ends as the one before it did, token by token; what differs is tokenized, and all of it only in the end.
        """
        if len(text) <= limit:
            return Plan(text)
        if self.tokens is not None:
            tokens = self._kept(text, encode, token_bytes)
            if len(tokens) <= limit:
                return Plan(text, tokens)
        tokens = tuple(encode(text))
        return Plan(text, tokens) if len(tokens) <= limit else None

    def _kept(
        self, text: bytes, encode: Callable[[bytes], list[int]], token_bytes: Callable[[int], bytes]
    ) -> tuple[int, ...]:
        """Tokens for ``text`` that end with those of this plan, as far back as both texts are the same."""
        assert self.tokens is not None
        same = _common_suffix(self.text, text)
        left, first = len(self.text), 0
        while left > same:
            left -= len(token_bytes(self.tokens[first]))
            first += 1
        return (*encode(text[: len(text) - left]), *self.tokens[first:])


def _common_suffix(one: bytes, other: bytes) -> int:
    """The number of bytes at the end that are the same: O(n) bytes compared, in O(log n) steps of Python."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
