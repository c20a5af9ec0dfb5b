"""What ``trace`` reports: for each token, what was known in its place; and the event of a stream that has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from constrain.chat.reading.events import ReportDelta
from constrain.notebooks import one_line

if TYPE_CHECKING:
    import builtins

    from constrain.engine.terminals import ExpectedTerminal

Origin = Literal["chosen", "forced", "healed", "given", "closing"]
"""Where a token comes from: see ``TokenTrace``."""


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
