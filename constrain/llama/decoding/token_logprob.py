"""How likely a token was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import builtins


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    r"""How likely a token was where it stands (``logprobs``).

    Attributes:
        token: its id.
        text: what it says; bytes that are no whole character as ``\xe2``; of a special token its name.
        bytes: the bytes that it adds to the text; none of a special token.
        logprob: the natural logarithm of its probability in the model's own distribution over the whole vocabulary,
            before masks, biases, penalties and the temperature.
        top: the most likely tokens in its place, most likely first (``top_logprobs`` of them).
    """

    token: int
    text: str
    bytes: builtins.bytes
    logprob: float
    top: tuple[TokenLogprob, ...] = ()
