"""Guesses by lookup: what followed the last tokens when they occurred before, in the prompt or in the answer.

Answers repeat: values from the prompt, names of keys in the elements of an array, code that is edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.llama.speculation.gain import Gain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.llama.decoding.answer_matcher import AnswerMatcher

_LENGTHS = (3, 2)
"""Numbers of last tokens that are looked up, the surest first."""


class Lookup:
    """The tokens of a prompt and an answer, and where each two or three of them were followed by another token."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens: list[int] = []
        self._after: list[dict[tuple[int, ...], int]] = [{} for _ in _LENGTHS]
        self.extend(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Adds tokens at the end."""
        for token in tokens:
            end = len(self._tokens)
            for length, after in zip(_LENGTHS, self._after, strict=True):
                if end >= length:
                    after[tuple(self._tokens[end - length :])] = end
            self._tokens.append(token)

    def find(self, count: int) -> tuple[int, list[int]]:
        """Returns how many of the last tokens occurred before, and at most ``count`` tokens that followed there."""
        for length, after in zip(_LENGTHS, self._after, strict=True):
            if (place := after.get(tuple(self._tokens[-length:]))) is not None:
                return length, self._tokens[place : place + count]
        return 0, []


class Speculation:
    """The guesses for one answer.

    Args:
        prompt: the tokens of the prompt.
        every: seconds of an evaluation by the number of tokens, with the logits after each.
    """

    def __init__(self, prompt: Sequence[int], every: Mapping[int, float]) -> None:
        self._lookup = Lookup(prompt)
        self._gain = Gain(every)
        self._length = 0

    def extend(self, tokens: Sequence[int]) -> None:
        """Adds tokens of the answer, or of a draft before it."""
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
        count = min(room, self._gain.most - n_tokens)
        self._length, found = self._lookup.find(count) if count > 0 else (0, [])
        if not found:
            return []
        if matcher is not None:
            found = found[: matcher.accept_many(found)]
            matcher.rollback(len(found))
        return found[: self._gain.best(self._length, n_tokens, len(found))]

    def learn(self, n_guessed: int, n_right: int) -> None:
        """Counts how many of the last guesses came true."""
        self._gain.record(self._length, n_guessed, n_right)
