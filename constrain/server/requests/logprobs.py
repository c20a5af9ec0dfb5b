"""How requests ask for log-probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.generation.options import MAX_TOP_LOGPROBS
from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import boolean, integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions


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
