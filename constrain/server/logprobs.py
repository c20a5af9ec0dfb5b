"""Log-probabilities: how requests ask for them, and OpenAI's objects of them, which both endpoints have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain._options import MAX_TOP_LOGPROBS
from constrain.server.errors import ApiError
from constrain.server.fields import boolean, integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain._completion import TokenLogprob
    from constrain._options import ChatOptions

_LEAST = -9999.0
"""OpenAI's number for what is as good as impossible; JSON has none that is infinite."""


def read_logprobs(body: Mapping[str, Any]) -> ChatOptions:
    """The options for ``logprobs`` and ``top_logprobs`` of a chat completion. Raises ``ApiError``."""
    asked, top = boolean(body, "logprobs") or False, top_logprobs(body)
    if top and not asked:
        raise ApiError(
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
            param="top_logprobs",
            code="invalid_value",
        )
    return logprobs_options(top) if asked else {}


def top_logprobs(body: Mapping[str, Any]) -> int:
    """How many of the most likely tokens a request wants to see for each place. Raises ``ApiError``."""
    return integer(body, "top_logprobs", 0, MAX_TOP_LOGPROBS) or 0


def logprobs_options(top: int) -> ChatOptions:
    """The options where log-probabilities are wanted."""
    return {"logprobs": True, "top_logprobs": top}


def logprob_objects(tokens: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
    """For each token its text, log-probability and bytes, and the same of those most likely in its place."""
    return [{**_object(token), "top_logprobs": [_object(other) for other in token.top]} for token in tokens]


def shown_logprob(token: TokenLogprob) -> float:
    """A token's log-probability as JSON can say it."""
    return max(token.logprob, _LEAST)


def _object(token: TokenLogprob) -> dict[str, Any]:
    return {"token": token.text, "logprob": shown_logprob(token), "bytes": list(token.bytes)}
