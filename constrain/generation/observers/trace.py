"""The trace of an answer: for each token, what the mask allowed, what the model wanted, and what the grammar expected.

A trace has a matcher of its own, which takes the tokens of the answer one by one. So it also has the masks in places
where the answer needed none, inside forced text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from constrain.chat.reading.events import ReportDelta
from constrain.generation.observers.choices import find_choices
from constrain.generation.observers.observer import Observer
from constrain.llama.decoding.answer import TokenObserver
from constrain.llama.decoding.distribution import largest, log_sum
from constrain.notebooks import one_line

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable

    from constrain.chat.reading.events import StreamEvent
    from constrain.engine.constraint import Matcher
    from constrain.engine.terminals import ExpectedTerminal
    from constrain.generation.observers.choices import Choices, Origin
    from constrain.generation.observers.observer import Observers, Written
    from constrain.generation.plan import Plan
    from constrain.llama.decoding.answer import Answer
    from constrain.llama.decoding.distribution import Distribution

TRACED_TOKENS = 10
"""Likeliest tokens that a trace has for each place: as many among all tokens, and as many among the allowed ones."""

TRACED_TERMINALS = 50
"""Expected terminals that a trace has for each place; a grammar may have thousands."""


@dataclass(frozen=True, slots=True)
class LikelyToken:
    r"""A likely token of one place.

    Attributes:
        token: token id.
        text: text of the token; bytes that are not a whole character as ``\xe2``; for a special token its name.
        logprob: natural logarithm of its probability: in ``TokenTrace.top`` among all tokens, in
            ``TokenTrace.allowed_top`` among the allowed ones.
        is_allowed: whether the mask allows it.
    """

    token: int
    text: str
    logprob: float
    is_allowed: bool


@dataclass(frozen=True, slots=True)
class TokenTrace:
    r"""One token of an answer, with all that was known in its place (option ``trace``).

    Probabilities are those of the model's own distribution, before biases, penalties and the temperature.

    Attributes:
        token: token id.
        text: text of the token; bytes that are not a whole character as ``\xe2``; for a special token its name.
        bytes: bytes that the token adds to the answer; empty for a special token.
        origin: ``"chosen"`` by the model; ``"forced"``: the grammar or a limit left no other text; ``"healed"``: a
            chosen token and forced text, written in the tokens that the tokenizer has for both; ``"given"`` by the
            option ``prefix``; ``"closing"``: written to complete the answer, after a ``stop`` text or a time limit.
        logprob: natural logarithm of the token's probability among all tokens.
        n_allowed: number of tokens that the mask allows, end of generation included; all of them in free text.
        mass: probability that the model gives to all allowed tokens together, 0 to 1.
        top: the likeliest of all tokens, at most 10, likeliest first.
        allowed_top: the likeliest of the allowed tokens, at most 10, likeliest first.
        tokens_left: tokens that were left of the budget, this one included.
        min_tokens_left: tokens of a short text that finishes the answer from before this token; 0 in free text.
        expected: terminals that could continue or begin in this place, at most 50; empty in free text.
    """

    token: int
    text: str
    bytes: builtins.bytes
    origin: Origin
    logprob: float
    n_allowed: int
    mass: float
    top: tuple[LikelyToken, ...]
    allowed_top: tuple[LikelyToken, ...]
    tokens_left: int
    min_tokens_left: int
    expected: tuple[ExpectedTerminal, ...]

    __repr__ = one_line


@dataclass(frozen=True, slots=True)
class TraceDelta(ReportDelta):
    """An event of a stream: the trace of the next tokens of the answer, with the option ``trace``.

    Attributes:
        tokens: the tokens, in order; those of a draft have no trace.
    """

    tokens: tuple[TokenTrace, ...]

    __repr__ = one_line


class Trace(Observer, TokenObserver):
    """Records the trace of one answer; reports ``trace``.

    Args:
        start: function from a token budget to a matcher of the answer; ``None`` for free text.
        describe: function that returns the text and the bytes of a token.
        choices: the choices of the answer.

    Attributes:
        tokens: one record for each token so far.
    """

    needs_logits = True

    def __init__(
        self,
        start: Callable[[int], Matcher] | None,
        describe: Callable[[int], tuple[str, builtins.bytes]],
        choices: Choices,
    ) -> None:
        self.tokens: list[TokenTrace] = []
        self._start = start
        self._describe = describe
        self._choices = choices
        self._matcher: Matcher | None = None
        self._row: Any = None  # of the mask: uint32, a bit for each token
        self._limit = 0
        self._n_reported = 0

    @classmethod
    def begin(cls, plan: Plan, others: Observers) -> Observer:
        """Returns the observer of a new answer."""
        return cls(plan.starter, plan.describe_token, find_choices(others))

    def on_token(self, answer: Answer, number: int, distribution: Distribution) -> None:
        """Records the next token. Raises ``RuntimeError`` for a token that no answer has in its place: a defect."""
        token, logits, total = answer.tokens[number], distribution.logits, distribution.total
        if self._start is not None and (self._matcher is None or self._limit != answer.limit):
            self._limit = answer.limit  # which an insertion may lower
            self._matcher = self._start(self._limit)
            self._matcher.accept_many([each.token for each in self.tokens])
            self._row = self._matcher.constraint.allocate_bitmask()[0]
        matcher, n_vocab = self._matcher, len(logits)
        if matcher is None:
            allowed, mass, least = None, 1.0, 0
            expected: tuple[ExpectedTerminal, ...] = ()
            likeliest = [(each, distribution.logprob(each)) for each in largest(logits, TRACED_TOKENS)]
        else:
            matcher.fill_bitmask(self._row)
            allowed = np.unpackbits(self._row.view(np.uint8), bitorder="little")[:n_vocab].view(np.bool_)
            ids = np.flatnonzero(allowed)
            among = logits[ids]
            sum_allowed = log_sum(among)
            mass = math.exp(min(0.0, sum_allowed - total))
            likeliest = [(int(ids[each]), float(among[each]) - sum_allowed) for each in largest(among, TRACED_TOKENS)]
            expected, least = matcher.expected_terminals()[:TRACED_TERMINALS], matcher.min_tokens_left
        text, data = self._describe(token)
        self.tokens.append(
            TokenTrace(
                token,
                text,
                data,
                self._choices.origin(answer, number),
                distribution.logprob(token),
                n_vocab if allowed is None else len(ids),
                mass,
                tuple(
                    self._likely(each, distribution.logprob(each), is_allowed=allowed is None or bool(allowed[each]))
                    for each in largest(logits, TRACED_TOKENS)
                ),
                tuple(self._likely(each, logprob, is_allowed=True) for each, logprob in likeliest),
                answer.limit - number,
                least,
                expected,
            )
        )
        if matcher is not None and not matcher.accept(token):
            raise RuntimeError(f"token {token} is in the answer, but its trace refuses it: {matcher.explain(token)}")

    def on_cut(self, length: int) -> None:
        """Removes the tokens behind the first ``length`` ones."""
        if len(self.tokens) > length:
            if self._matcher is not None:
                self._matcher.rollback(len(self.tokens) - length)
            del self.tokens[length:]

    def events(self, answer: Answer) -> list[StreamEvent]:
        """Returns the trace of the tokens that are new since the last call and that the answer cannot remove."""
        found = self.tokens[self._n_reported : len(answer.tokens) - answer.n_doubtful]
        self._n_reported += len(found)
        return [TraceDelta(tuple(found))] if found else []

    def finish(self, written: Written) -> dict[str, Any]:  # noqa: ARG002
        """Returns the trace of all tokens."""
        return {"trace": tuple(self.tokens)}

    def _likely(self, token: int, logprob: float, *, is_allowed: bool) -> LikelyToken:
        return LikelyToken(token, self._describe(token)[0], logprob, is_allowed)
