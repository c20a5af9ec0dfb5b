"""The log-probability of one token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.notebooks import one_line

if TYPE_CHECKING:
    import builtins


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    r"""The log-probability of one token of an answer (``logprobs``).

    Attributes:
        token: the token's id.
        text: the token's text; bytes that are not a whole character as ``\xe2``; for a special token its name.
        bytes: the bytes that the token adds to the text; empty for a special token.
        logprob: the natural logarithm of the token's probability in the model's own distribution over the whole
            vocabulary, before masks, biases, penalties and the temperature.
        top: the ``top_logprobs`` most likely tokens in this place, most likely first.
    """

    token: int
    text: str
    bytes: builtins.bytes
    logprob: float
    top: tuple[TokenLogprob, ...] = ()

    __repr__ = one_line
