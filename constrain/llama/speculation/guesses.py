"""Prompt lookup: guesses are what followed the last tokens when they occurred before, in the prompt or in the answer.

Answers repeat: values from the prompt, names of keys in the elements of an array, code that is edited.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from constrain.llama.speculation.gain import Gain, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from constrain.llama.decoding.answer_matcher import AnswerMatcher

_LENGTHS = {3: Kind.FOUND_AFTER_THREE, 2: Kind.FOUND_AFTER_TWO}
"""Numbers of last tokens that are looked up, the surest first, and the kind of guesses behind them."""


class Lookup:
    """The tokens of a prompt and an answer, and where each two or three of them were followed by another token.

    Attributes:
        tokens: all tokens.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens: list[int] = []
        self._after: list[dict[tuple[int, ...], int]] = [{} for _ in _LENGTHS]
        self.extend(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Adds tokens at the end."""
        for token in tokens:
            end = len(self.tokens)
            for length, after in zip(_LENGTHS, self._after, strict=True):
                if end >= length:
                    after[tuple(self.tokens[end - length :])] = end
            self.tokens.append(token)

    def find(self, count: int) -> tuple[int, list[int]]:
        """Returns how many of the last tokens occurred before, and at most ``count`` tokens that followed there."""
        for length, after in zip(_LENGTHS, self._after, strict=True):
            if (place := after.get(tuple(self.tokens[-length:]))) is not None:
                return length, self.tokens[place : place + count]
        return 0, []


class Speculation:
    """The guesses for one answer.

    Args:
        prompt: the tokens of the prompt.
        every: seconds of an evaluation by the number of tokens, with the logits after each.
        eos: tokens that end the answer, which are never guessed: nothing is evaluated after them.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        every: Mapping[int, float],
        eos: Collection[int] = (),
    ) -> None:
        self._gain = Gain(every)
        self._eos = eos
        self._kinds: list[Kind] = []
        self.restart(prompt)

    def extend(self, tokens: Sequence[int]) -> None:
        """Adds tokens of the answer, or of the text that comes before it."""
        self._lookup.extend(tokens)

    def restart(self, tokens: Sequence[int]) -> None:
        """Forgets all tokens, for those of the prompt and the answer after the answer took some back."""
        self._lookup = Lookup(tokens)

    def guess(self, n_tokens: int, room: int, matcher: AnswerMatcher | None) -> list[int]:
        """Returns tokens that may follow; none if they would cost more than they are expected to save.

        Args:
            n_tokens: number of tokens that are evaluated in any case.
            room: the most guesses.
            matcher: only tokens that it allows are guessed; ``None`` if all are allowed.
        """
        self._kinds = []
        most = min(room, self._gain.most - n_tokens)
        if most <= 0:
            return []
        found, kinds = self._find(n_tokens, most, matcher)
        best = self._gain.best(kinds, n_tokens)
        self._kinds = kinds[:best]
        return found[:best]

    def learn(self, n_guessed: int, n_right: int) -> None:
        """Counts how many of the last guesses came true."""
        self._gain.record(self._kinds[:n_guessed], n_right)

    def _find(self, n_tokens: int, most: int, matcher: AnswerMatcher | None) -> tuple[list[int], list[Kind]]:
        """Looks up at most ``most`` tokens that may follow, as many as are worth their cost if all are allowed."""
        length, found = self._lookup.find(most)
        if not found:
            return [], []
        kind = _LENGTHS[length]
        found = list(takewhile(lambda token: token not in self._eos, found))
        found = found[: self._gain.best([kind] * len(found), n_tokens)]
        if found and matcher is not None:  # which takes longer than the lookup
            found = found[: matcher.accept_many(found)]
            matcher.rollback(len(found))
        return found, [kind] * len(found)
