"""``logprobs``, ``top_logprobs``, ``confidence`` and ``certificate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import FieldError, boolean, integer
from constrain.generation.options import TOP_LOGPROBS, WITH_PROMPT

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
    return integer(body, "top_logprobs", *TOP_LOGPROBS)


def logprobs_options(top: int) -> ChatOptions:
    """Returns the options for log-probabilities."""
    return {"logprobs": True, "top_logprobs": top}


def read_confidence(body: Mapping[str, Any]) -> ChatOptions:
    """Reads ``confidence``: whether the answer comes with the probabilities of its parts. Raises ``FieldError``."""
    asked = boolean(body, "confidence")
    return {} if asked is None else {"confidence": asked}


def read_certificate(body: Mapping[str, Any], *, vote: bool = False) -> ChatOptions:
    """Reads ``certificate``: whether the answer comes with its proof. Raises ``FieldError``.

    ``vote``: whether answers vote, whose result no certificate is about.
    """
    given = body.get("certificate")
    if given is None:
        return {}
    if not (isinstance(given, bool) or given == WITH_PROMPT):
        problem = f"it is {given!r:.80}; it must be true, false or {WITH_PROMPT!r}"
        raise FieldError(f"Invalid 'certificate': {problem}.", param="certificate", code="invalid_value")
    if given and vote:
        problem = "it is about an answer that the model wrote as a whole, and a vote merges several; leave 'vote' out"
        raise FieldError(f"Invalid 'certificate': {problem}.", param="certificate", code="invalid_value")
    return {"certificate": given}
