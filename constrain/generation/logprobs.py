"""Log-probabilities as JSON, in OpenAI's form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.llama.decoding.token_logprob import TokenLogprob

LEAST_LOGPROB = -9999.0
"""OpenAI's log-probability for an impossible token: JSON has no infinite numbers."""


def logprob_objects(tokens: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
    """Returns each token's text, log-probability, bytes, and the likeliest alternatives."""
    return [{**_object(token), "top_logprobs": [_object(other) for other in token.top]} for token in tokens]


def finite_logprob(token: TokenLogprob) -> float:
    """Returns a token's log-probability as a finite number, since JSON has no infinite ones."""
    return max(token.logprob, LEAST_LOGPROB)


def _object(token: TokenLogprob) -> dict[str, Any]:
    return {"token": token.text, "logprob": finite_logprob(token), "bytes": list(token.bytes)}
