"""The rows of a batch that a decode loop evaluates, each followed by its tokens.

Beam search reorders rows at every step, and copies some; speculative decoding takes tokens back. So a row is not known
by its number: each row goes on from the known row of the same constraint with which it shares most tokens.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.engine.constraint import Matcher


class Row:
    """The answer of one row.

    Attributes:
        tokens: the tokens of the answer, with those after its end.
        matcher: has accepted the first ``taken`` tokens.
        has_ended: whether the loop has ended the answer; later tokens do not count.
        refused: the first token that the constraint does not allow, ``None`` if there is none.
    """

    __slots__ = ("_read", "has_ended", "matcher", "refused", "taken", "tokens")

    def __init__(self, matcher: Matcher) -> None:
        self.tokens: list[int] = []
        self.matcher = matcher
        self.taken = 0
        self.has_ended = False
        self.refused: int | None = None
        self._read = 0

    def copy(self) -> Row:
        """An independent row at the same place."""
        other = Row(self.matcher.fork())
        for name in ("tokens", "taken", "has_ended", "refused", "_read"):
            setattr(other, name, getattr(self, name))
        return other

    def follow(self, tokens: list[int]) -> None:
        """Moves to the end of an answer, back and forth from the last one."""
        common = shared_tokens(self.tokens, tokens)
        if common < self._read:
            if common < self.taken:
                self.matcher.rollback(self.taken - common)
                self.taken = common
            self._read, self.has_ended, self.refused = self.taken, False, None
        self.tokens = tokens
        while self._read < len(tokens) and not self.has_ended and self.refused is None:
            self._take(tokens[self._read])
            self._read += 1

    def _take(self, token: int) -> None:
        vocabulary = self.matcher.constraint.vocabulary
        is_text = token < vocabulary.n_vocab and token not in vocabulary.special
        if token < vocabulary.n_vocab and self.matcher.accept(token):
            self.taken += 1
            self.has_ended = token in vocabulary.eos and self.matcher.is_finished
        elif self.matcher.is_finished and not is_text:  # padding after a complete text
            self.has_ended = True
        else:
            self.refused = token

    @property
    def goes_on_after_end(self) -> bool:
        """Whether tokens follow the end of the answer."""
        return self.has_ended and len(self.tokens) > self._read

    def why_refused(self) -> str:
        """Why the refused token is not allowed."""
        assert self.refused is not None
        n_vocab = self.matcher.constraint.vocabulary.n_vocab
        if self.refused >= n_vocab:
            return f"token {self.refused} is beyond the {n_vocab} tokens of the vocabulary"
        return self.matcher.explain(self.refused)


def shared_tokens(one: list[int], other: list[int]) -> int:
    """The number of tokens at the beginning that two lists share.

    >>> shared_tokens([1, 2, 3], [1, 2, 4, 5])
    2
    """
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter]:
        return shorter
    return next(place for place in range(shorter) if one[place] != other[place])


def move_rows(rows: Sequence[Row | None], answers: Sequence[list[int]]) -> list[Row | None]:
    """Moves the rows of a batch to their next answers, which may be in another order; ``None`` stays ``None``.

    The first rows are used up: a row that two answers continue is forked.
    """
    places = [None if row is None else _source(rows, place, answers[place]) for place, row in enumerate(rows)]
    uses = Counter(places)
    moved: list[Row | None] = []
    for place in places:
        row = None if place is None else rows[place]
        if row is not None:
            uses[place] -= 1
            row = row.copy() if uses[place] else row
        moved.append(row)
    for row, answer in zip(moved, answers, strict=True):
        if row is not None:
            row.follow(answer)
    return moved


def _source(rows: Sequence[Row | None], place: int, answer: list[int]) -> int:
    """The place of the row that an answer continues: its own, or the one of the same constraint that shares most."""
    own = rows[place]
    assert own is not None
    most, best = shared_tokens(own.tokens, answer), place
    if most == len(own.tokens):
        return place
    for other, row in enumerate(rows):
        if row is not None and row.matcher.constraint is own.matcher.constraint:
            shared = shared_tokens(row.tokens, answer)
            if shared > most:
                most, best = shared, other
    return best
