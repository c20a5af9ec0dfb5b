"""``logprobs`` and ``top_logprobs`` of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.generation.options import MAX_TOP_LOGPROBS
from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import boolean, integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions


def read_logprobs(body: Mapping[str, Any]) -> ChatOptions:
    """Reads ``logprobs`` and ``top_logprobs`` of a chat completion as options. Raises ``ApiError``."""
    asked, top = boolean(body, "logprobs") or False, top_logprobs(body)
    if top and not asked:
        raise ApiError(
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
            param="top_logprobs",
            code="invalid_value",
        )
    return logprobs_options(top) if asked else {}


def top_logprobs(body: Mapping[str, Any]) -> int:
    """Returns the number of likeliest tokens requested per position. Raises ``ApiError``."""
    return integer(body, "top_logprobs", 0, MAX_TOP_LOGPROBS) or 0


def logprobs_options(top: int) -> ChatOptions:
    """Returns the options for log-probabilities."""
    return {"logprobs": True, "top_logprobs": top}
