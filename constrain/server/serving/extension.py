"""The one member of an answer that OpenAI's API does not have: ``constrain``, with what the API has no field for.

It stands in each choice of a chat completion and of a completion (in a stream: of the chunk with the
``finish_reason``), and in a response. An answer without such facts has none.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from constrain.generation.completion import told_limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.generation.completion import Completion

_log = logging.getLogger("constrain.server")

NAME = "constrain"

MAX_WARNINGS = 20
"""Warnings that an answer and an entry of the log have; of more, the number of the others is told."""

MAX_WARNING_LENGTH = 300
"""Characters of one warning; the rest is cut off."""


def extension(completion: Completion, *, is_cut: bool) -> dict[str, Any]:
    """The member of an answer; empty where there are no facts.

    ``is_cut``: whether the API's own field says already that the limit on tokens has cut the answer.
    """
    facts: dict[str, Any] = {}
    if completion.finish_reason != "stop" and not (is_cut and completion.finish_reason == "length"):
        facts["ended_early"] = completion.finish_reason
    if completion.shortened:
        facts["shortened"] = completion.shortened
    if completion.report is not None and completion.report.warnings:
        facts["warnings"] = _told(completion.report.warnings)
    facts |= told_limits(completion)
    return {NAME: facts} if facts else {}


def log_warnings(warnings: Sequence[str]) -> None:
    """Writes the warnings of a constraint into the log, as one entry."""
    told = _told(warnings)
    facts = {"event": "constraint_warnings", "warnings": told}
    _log.warning("the constraint of this request has warnings: %s", "; ".join(told), extra=facts)


def _told(warnings: Sequence[str]) -> list[str]:
    told = [f"{warning:.{MAX_WARNING_LENGTH}}" for warning in warnings[:MAX_WARNINGS]]
    left = len(warnings) - len(told)
    return [*told, f"and {left} more"] if left else told
