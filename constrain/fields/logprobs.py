"""``logprobs``, ``top_logprobs`` and ``confidence``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import FieldError, boolean, integer
from constrain.generation.options import MAX_TOP_LOGPROBS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions


def read_logprobs(body: Mapping[str, Any]) -> ChatOptions:
    """Reads ``logprobs`` and ``top_logprobs`` of a chat completion as options. Raises ``FieldError``."""
    asked, top = boolean(body, "logprobs") or False, read_top_logprobs(body) or 0
    if top and not asked:
        raise FieldError(
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
            param="top_logprobs",
            code="invalid_value",
        )
    return logprobs_options(top) if asked else {}


def read_top_logprobs(body: Mapping[str, Any]) -> int | None:
    """Reads ``top_logprobs``: the number of likeliest tokens to return per position. Raises ``FieldError``."""
    return integer(body, "top_logprobs", 0, MAX_TOP_LOGPROBS)


def logprobs_options(top: int) -> ChatOptions:
    """Returns the options for log-probabilities."""
    return {"logprobs": True, "top_logprobs": top}


def read_confidence(body: Mapping[str, Any]) -> ChatOptions:
    """Reads ``confidence``: whether the answer comes with the probabilities of its parts. Raises ``FieldError``."""
    asked = boolean(body, "confidence")
    return {} if asked is None else {"confidence": asked}
