"""Classes of tokens: how a grammar's sets of tokens divide a vocabulary, and the parts of a text that may be tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from constrain.language.special import BEGIN, CLASS, END, mark, numbered_mark
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from constrain.vocabulary.vocabulary import Vocabulary

Ranges = tuple[tuple[int, int], ...]
"""Ids in ascending ranges, first and last of each; no two ranges touch."""

PART_STEPS = 200
"""Compilation steps for each part into which sets of tokens divide one another, once for each set that has it."""

_NONE = -1
"""The number of no class."""

_NAME = re.compile(BEGIN + b"([^\xfe\xff]+)" + END)
_ID = re.compile(r"<\[([0-9]{1,10})\]>")


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the union of ranges.

    >>> joined([(5, 9), (1, 2), (3, 3), (8, 12)])
    ((1, 3), (5, 12))
    """
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: Ranges, count: int) -> Ranges:
    """Returns the ids below ``count`` that are in none of the ranges."""
    edges = [0, *(edge for low, high in ranges for edge in (low, high + 1)), count]
    return tuple((low, high - 1) for low, high in zip(edges[::2], edges[1::2], strict=True) if low < high)


def without(ranges: Ranges, ids: Iterable[int]) -> Ranges:
    """Returns the ranges without some ids."""
    if not ranges:
        return ranges
    return complement(joined([*complement(ranges, end := ranges[-1][1] + 1), *((i, i) for i in ids if i < end)]), end)


def divide(sets: list[Ranges]) -> tuple[list[Ranges], list[list[int]]]:
    """Returns classes of ids that are in the same sets, and the numbers of each set's classes. Raises LimitError."""
    changes: dict[int, list[int]] = {}
    for number, ranges in enumerate(sets):
        for low, high in ranges:
            changes.setdefault(low, []).append(number)
            changes.setdefault(high + 1, []).append(number)
    numbers: dict[int, int] = {}
    classes: list[list[tuple[int, int]]] = []
    parts: list[list[int]] = [[] for _ in sets]
    inside: set[int] = set()
    key = begin = 0  # the key has a bit for each set inside
    for at in sorted(changes):
        if inside:
            if key not in numbers:
                spend(PART_STEPS * len(inside), "name fewer sets of tokens")
                numbers[key] = len(classes)
                classes.append([])
                for number in inside:
                    parts[number].append(numbers[key])
            classes[numbers[key]].append((begin, at - 1))
        for number in changes[at]:
            inside ^= {number}
            key ^= 1 << number
        begin = at
    return [joined(ranges) for ranges in classes], parts


class Classes:
    """Classes of tokens, each read as a mark with its number, for one vocabulary.

    Attributes:
        vocabulary: the vocabulary.
        ranges: the ids of each class.
    """

    def __init__(self, vocabulary: Vocabulary, ranges: list[Ranges]) -> None:
        import numpy as np

        self.vocabulary = vocabulary
        self.ranges = ranges
        self._of: NDArray[np.int32] = np.full(vocabulary.n_vocab, _NONE, np.int32)
        for number, spans in enumerate(ranges):
            for low, high in spans:
                self._of[low : high + 1] = number

    def has(self, token: int) -> bool:
        """Returns whether a token is in a class."""
        return int(self._of[token]) != _NONE

    def detours(self, text: bytes) -> list[tuple[int, int, bytes]] | None:
        """Returns the parts of a text that may be tokens of classes, with their marks; ``None`` if it is no text.

        A token without a text stands as its name, or as its id (``<[5]>``), between ``BEGIN`` and ``END``.
        """
        if BEGIN + CLASS in text:
            return None
        named = {found.start(): found for found in _NAME.finditer(text)}
        detours: list[tuple[int, int, bytes]] = []
        for begin in range(len(text)):
            if begin in named:
                tokens = [(token, named[begin].end()) for token in self._named(named[begin][1])]
            else:
                beginnings = self.vocabulary._core.beginnings_of(text, begin)
                tokens = [(token, begin + len(self.vocabulary.token_bytes(token))) for token in beginnings]
            numbers = dict.fromkeys((end, int(self._of[token])) for token, end in tokens)
            detours += ((begin, end, numbered_mark(CLASS, number)) for end, number in numbers if number != _NONE)
        return detours

    def spell(self, tokens: Sequence[int]) -> tuple[bytes, list[tuple[int, int, bytes]]]:
        """Returns the text of tokens, and which parts of it are tokens of classes, with their marks.

        A token without a text stands as in ``detours``.
        """
        detours: list[tuple[int, int, bytes]] = []
        pieces = [self._spelled(token) for token in tokens]
        end = 0
        for token, piece in zip(tokens, pieces, strict=True):
            begin, end = end, end + len(piece)
            if (number := int(self._of[token])) != _NONE:
                detours.append((begin, end, numbered_mark(CLASS, number)))
        return b"".join(pieces), detours

    def _named(self, name: bytes) -> list[int]:
        """The special tokens with a name, or the token whose id this is."""
        written = name.decode("utf-8", "replace")
        found = [token for token, known in self.vocabulary.names.items() if known == written]
        if not found and (by_id := _ID.fullmatch(written)):
            found = [int(by_id[1])]
        return [token for token in found if token < self.vocabulary.n_vocab and not self.vocabulary.token_bytes(token)]

    def _spelled(self, token: int) -> bytes:
        text = self.vocabulary.token_bytes(token)
        return text or mark(self.vocabulary.names.get(token) or f"<[{token}]>")
