"""The member ``constrain`` of an answer: the facts for which OpenAI's API has no field.

It stands in each choice of a chat or text completion (in a stream: in the chunk with the ``finish_reason``), and in a
response. An answer without such facts has no such member.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from constrain.generation.completion import facts_object
from constrain.server.http.account import current

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.generation.completion import Completion

_log = logging.getLogger("constrain.server")

NAME = "constrain"

MAX_WARNINGS = 20
"""Warnings in an answer and in a log entry: 20; beyond it, only the number of the others is given."""

MAX_WARNING_LENGTH = 300
"""Characters of one warning; the rest is cut off."""


def extension(completion: Completion, *, is_cut: bool) -> dict[str, Any]:
    """Returns the member ``constrain`` of an API answer; empty if there is nothing to say.

    ``is_cut``: whether the API's own field already says that the limit on tokens has cut the answer.
    """
    facts: dict[str, Any] = {}
    if completion.finish_reason != "stop" and not (is_cut and completion.finish_reason == "length"):
        facts["ended_early"] = completion.finish_reason
    if completion.shortened:
        facts["shortened"] = completion.shortened
    facts |= _warnings_object(completion.report.warnings if completion.report else ())
    facts |= facts_object(completion)
    return {NAME: facts} if facts else {}


def request_extension() -> dict[str, Any]:
    """Returns the member ``constrain`` of a response without an answer; empty without warnings of the request."""
    facts = _warnings_object()
    return {NAME: facts} if facts else {}


def _warnings_object(others: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the member ``warnings``: those of the request, then others; empty if there is none."""
    account = current.get(None)
    warnings = (*(account.warnings if account else ()), *others)
    return {"warnings": _shorten(warnings)} if warnings else {}


def log_warnings(warnings: Sequence[str]) -> None:
    """Logs the warnings of a constraint as one entry."""
    shortened = _shorten(warnings)
    facts = {"event": "constraint_warnings", "warnings": shortened}
    _log.warning("the constraint of this request has warnings: %s", "; ".join(shortened), extra=facts)


def _shorten(warnings: Sequence[str]) -> list[str]:
    shortened = [f"{warning:.{MAX_WARNING_LENGTH}}" for warning in warnings[:MAX_WARNINGS]]
    left = len(warnings) - len(shortened)
    return [*shortened, f"and {left} more"] if left else shortened
