"""A draft: the plain text that a model writes before a constrained answer, and the words that then ask for the answer.

    prompt | draft | request | answer        one sequence; the prompt is evaluated once

A draft has a language of its own, any text, so it is valid UTF-8 and has no special token. It ends where the model ends
it, at its limit, or when half of the time is over. Its limit leaves enough tokens for the shortest answer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from constrain.errors import BudgetError

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.llama.decoding.answer_matcher import AnswerMatcher
    from constrain.llama.decoding.sampler import Chain

DRAFT_TOKENS = 256
"""Tokens of a draft (``draft=True``), but at most half of the tokens of draft and answer together."""


@dataclass(slots=True)
class Draft:
    """The part of a sequence in front of an answer. ``Answer`` runs it.

    Args:
        start: makes the matcher of the draft for a number of tokens.
        chain: chooses the draft's tokens. It is not the answer's, whose penalties do not count the draft.
        request: tokens that ask for the answer; they are evaluated behind the draft, and belong to the prompt.
        receive: called with each token of the draft.
        max_tokens: the most tokens of the draft; ``None`` for ``DRAFT_TOKENS``.

    Attributes:
        tokens: tokens of the draft so far.
        is_done: whether the draft is complete.
    """

    start: Callable[[int], AnswerMatcher]
    chain: Chain
    request: list[int]
    receive: Callable[[int], object]
    max_tokens: int | None = None

    tokens: list[int] = field(default_factory=list, init=False)
    is_done: bool = field(default=False, init=False)
    _limit: int = field(default=0, init=False)
    _end: float | None = field(default=None, init=False)

    def begin(self, limit: int, start_answer: Callable[[int], AnswerMatcher]) -> AnswerMatcher:
        """Returns the matcher of the draft.

        ``limit``: the most tokens of draft and answer. Raises ``BudgetError``, whose ``needed`` is a sufficient limit.
        """
        most = max(1, min(DRAFT_TOKENS, limit // 2)) if self.max_tokens is None else self.max_tokens
        shortest = _find_shortest(start_answer, max(0, limit - most))
        if limit < most + shortest and self.max_tokens is None and limit > shortest:
            most = limit - shortest
        if limit < most + shortest:
            needed = shortest + (1 if self.max_tokens is None else most)
            written = "a draft" if self.max_tokens is None else f"a draft of {most} tokens"
            raise BudgetError(f"{written} and the shortest answer take {needed} tokens", needed=needed)
        self._limit = most
        return self.start(most)

    @property
    def is_full(self) -> bool:
        """Whether no token is left for the draft."""
        return len(self.tokens) >= self._limit

    def is_late(self, deadline: float | None) -> bool:
        """Returns whether half of the time from the first call to ``deadline`` (``time.monotonic()``) is over."""
        if deadline is None:
            return False
        now = time.monotonic()
        if self._end is None:
            self._end = now + (deadline - now) / 2
        return now > min(self._end, deadline)

    def add(self, token: int) -> None:
        """Records a token."""
        self.tokens.append(token)
        self.chain.accept(token)
        self.receive(token)

    def finish(self) -> None:
        """Ends the draft."""
        self.is_done = True
        self.chain.close()


def _find_shortest(start: Callable[[int], AnswerMatcher], limit: int) -> int:
    """Returns how many tokens an answer needs if ``limit`` are too few; otherwise 0."""
    try:
        start(limit)
    except BudgetError as error:
        return error.needed
    return 0
