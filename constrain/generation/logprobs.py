"""Log-probabilities as JSON, in OpenAI's form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.llama.decoding.token_logprob import TokenLogprob

_LEAST = -9999.0
"""OpenAI's number for what is as good as impossible; JSON has none that is infinite."""


def logprob_objects(tokens: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
    """For each token its text, log-probability and bytes, and the same of those most likely in its place."""
    return [{**_object(token), "top_logprobs": [_object(other) for other in token.top]} for token in tokens]


def shown_logprob(token: TokenLogprob) -> float:
    """A token's log-probability as JSON can say it."""
    return max(token.logprob, _LEAST)


def _object(token: TokenLogprob) -> dict[str, Any]:
    return {"token": token.text, "logprob": shown_logprob(token), "bytes": list(token.bytes)}
