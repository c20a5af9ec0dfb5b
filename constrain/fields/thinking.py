"""Fields that say whether and how much a model reasons before its answer, as the servers of open models name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import boolean, mapping, one_of
from constrain.generation.reasoning import EFFORTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions

EFFORT_TOKENS: dict[str, int] = {"minimal": 128, "low": 512, "medium": 2048}
"""Tokens of reasoning that an effort asks the model to keep to, a soft limit; higher efforts have none."""


def read_thinking(body: Mapping[str, Any], max_tokens: int | None) -> ChatOptions:
    """Reads ``chat_template_kwargs``, ``enable_thinking``, and ``reasoning_effort`` or ``reasoning.effort``.

    ``max_tokens``: limit on all tokens, of which reasoning takes at most half. Raises ``FieldError``.
    """
    found: ChatOptions = {}
    if body.get("chat_template_kwargs"):
        found["template_variables"] = mapping(body["chat_template_kwargs"], "chat_template_kwargs")
    if (enabled := boolean(body, "enable_thinking")) is not None:
        found["thinking"] = enabled
    place, effort = "reasoning_effort", body.get("reasoning_effort")
    if effort is None and body.get("reasoning") is not None:
        place, effort = "reasoning.effort", mapping(body["reasoning"], "reasoning").get("effort")
    if effort is not None:
        found |= effort_options(one_of(effort, tuple(EFFORTS), place), max_tokens)
    return found


def effort_options(effort: str, max_tokens: int | None) -> ChatOptions:
    """Returns the options for an effort, one of ``EFFORTS``."""
    found: ChatOptions = {"reasoning_effort": effort}
    if (most := EFFORT_TOKENS.get(effort)) is not None:
        found["max_reasoning_tokens"] = most if max_tokens is None else min(most, max(1, max_tokens // 2))
    return found
