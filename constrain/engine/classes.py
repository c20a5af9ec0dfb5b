"""Classes of tokens: how a grammar's sets of tokens divide a vocabulary, for matchers and masks."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from constrain.language.special import BEGIN, END, mark
from constrain.vocabulary.marked import MARKED, mark_of
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

_TRIED = 1_000
"""Tokens of a class among which the one to show is chosen."""

_KEPT_MASKS = 64
"""Masks of classes that are kept for the next place with the same classes."""

_MARK = re.compile(MARKED + b"([0-9]+)" + END)
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
    """Classes of tokens with their marks, for one vocabulary.

    Attributes:
        vocabulary: the vocabulary.
        marked: the vocabulary with marks; class ``i`` has the mark ``i``.
        ranges: the ids of each class.
    """

    def __init__(self, vocabulary: Vocabulary, ranges: list[Ranges]) -> None:
        import numpy as np

        self.vocabulary = vocabulary
        self.ranges = ranges
        self.marked = vocabulary._with_marks(len(ranges))
        self._none = self.marked.count
        self._of: NDArray[np.int32] = np.full(vocabulary.n_vocab, self._none, np.int32)
        for number, spans in enumerate(ranges):
            for low, high in spans:
                self._of[low : high + 1] = number
        self._words: dict[bytes, NDArray[np.uint32]] = {}
        self._shown: dict[int, int] = {}

    def mark(self, token: int) -> int | None:
        """Returns the id by which matchers read a token as one of its class; ``None`` for a token without a class."""
        number = int(self._of[token])
        return None if number == self._none else self.marked.first + number

    def words(self, marks: bytes) -> NDArray[np.uint32]:
        """The tokens of the classes whose marks are set in the words behind a mask, as the words of a mask."""
        if (known := self._words.get(marks)) is not None:
            return known
        import numpy as np

        allowed = np.append(np.unpackbits(np.frombuffer(marks, np.uint8), bitorder="little"), 0)
        bits = np.packbits(allowed[self._of], bitorder="little")
        bits.resize(self.marked.first // 8, refcheck=False)
        if len(self._words) == _KEPT_MASKS:
            self._words.clear()
        return self._words.setdefault(marks, bits.view(np.uint32))

    def shown(self, number: int) -> int:
        """The token that stands for a class where one must be chosen: a short printable text, if there is one."""
        if number not in self._shown:
            tokens = (token for low, high in self.ranges[number] for token in range(low, high + 1))
            self._shown[number] = min(islice(tokens, _TRIED), key=self._cost)
        return self._shown[number]

    def _cost(self, token: int) -> tuple[bool, bool, int]:
        text = self.vocabulary.token_bytes(token)
        is_plain = text.isascii() and text.decode("ascii").isprintable()
        return not text, not is_plain, len(text)

    def detours(self, text: bytes) -> list[tuple[int, int, bytes]] | None:
        """Returns the parts of a text that may be tokens of classes, with their marks; ``None`` if it is no text.

        A token without a text stands as its name, or as its id (``<[5]>``), between ``BEGIN`` and ``END``.
        """
        if MARKED in text:
            return None
        if not any(self.ranges):
            return []
        named = {found.start(): found for found in _NAME.finditer(text)}
        detours: list[tuple[int, int, bytes]] = []
        for begin in range(len(text)):
            if begin in named:
                tokens = [(token, named[begin].end()) for token in self._named(named[begin][1])]
            else:
                beginnings = self.marked.core.beginnings_of(text[begin : begin + self.marked.longest])
                tokens = [(token, begin + len(self.vocabulary.token_bytes(token))) for token in beginnings]
            numbers = dict.fromkeys((end, int(self._of[token])) for token, end in tokens)
            detours += ((begin, end, mark_of(number)) for end, number in numbers if number != self._none)
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
            if (number := int(self._of[token])) != self._none:
                detours.append((begin, end, mark_of(number)))
        return b"".join(pieces), detours

    def _named(self, name: bytes) -> list[int]:
        """The special tokens with a name, or the token whose id this is."""
        written = name.decode("utf-8", "replace")
        found = [token for token, known in self.vocabulary.names.items() if known == written]
        if not found and (by_id := _ID.fullmatch(written)):
            found = [int(by_id[1])]
        return [token for token in found if token < self.vocabulary.n_vocab and not self.vocabulary.token_bytes(token)]

    def spelled(self, text: bytes) -> bytes:
        """Returns a text of the kernel with tokens in place of marks: their texts, or else their names or ids."""
        return _MARK.sub(lambda found: self._spelled(self.shown(int(found[1]))), text)

    def _spelled(self, token: int) -> bytes:
        text = self.vocabulary.token_bytes(token)
        return text or mark(self.vocabulary.names.get(token) or f"<[{token}]>")
