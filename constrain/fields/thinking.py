"""Fields that say whether and how much a model reasons before its answer, as the servers of open models name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from constrain.fields.values import boolean, integer, mapping, one_of
from constrain.generation.reasoning import EFFORTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions

EFFORT_TOKENS: dict[str, int] = {"minimal": 128, "low": 512, "medium": 2048}
"""Tokens of reasoning that an effort asks the model to keep to, a soft limit; higher efforts have none."""

_KINDS: dict[str, bool | Literal["adaptive"]] = {"enabled": True, "adaptive": "adaptive", "disabled": False}


def read_thinking(body: Mapping[str, Any], max_tokens: int | None) -> ChatOptions:
    """Reads the fields about reasoning, ``chat_template_kwargs`` and ``reasoning_effort`` among them.

    ``max_tokens``: limit on all tokens, of which reasoning takes at most half. Raises ``FieldError``.
    """
    found: ChatOptions = {}
    if body.get("chat_template_kwargs"):
        found["template_variables"] = mapping(body["chat_template_kwargs"], "chat_template_kwargs")
    reasoning = {} if body.get("reasoning") is None else mapping(body["reasoning"], "reasoning")
    place, effort = "reasoning_effort", body.get("reasoning_effort")
    if effort is None:
        place, effort = "reasoning.effort", reasoning.get("effort")
    think = body.get("think")
    if effort is None and isinstance(think, str):
        place, effort = "think", think
    if effort is not None:
        found |= effort_options(one_of(effort, tuple(EFFORTS), place), max_tokens)
    own = None if isinstance(think, str) else boolean(body, "think")
    for switch in (boolean(body, "enable_thinking"), boolean(reasoning, "enabled", "reasoning."), own, _switch(body)):
        if switch is not None:
            found["thinking"] = switch
    budgets = {"thinking_budget": body.get("thinking_budget"), "reasoning.max_tokens": reasoning.get("max_tokens")}
    if isinstance(body.get("thinking"), dict):
        budgets["thinking.budget_tokens"] = body["thinking"].get("budget_tokens")
    for name in budgets:
        most = integer(budgets, name, 0)
        if most == 0:
            found["thinking"] = False
        elif most is not None:
            found["max_reasoning_tokens"] = most
    return found


def _switch(body: Mapping[str, Any]) -> bool | Literal["adaptive"] | None:
    """Reads ``thinking`` in Anthropic's form, or as a boolean; ``None`` without it. Raises ``FieldError``."""
    given = body.get("thinking")
    if isinstance(given, dict):
        kind = given.get("type")
        return None if kind is None else _KINDS[one_of(kind, tuple(_KINDS), "thinking.type")]
    return boolean(body, "thinking")


def effort_options(effort: str, max_tokens: int | None) -> ChatOptions:
    """Returns the options for an effort, one of ``EFFORTS``."""
    found: ChatOptions = {"reasoning_effort": effort}
    if (most := EFFORT_TOKENS.get(effort)) is not None:
        found["max_reasoning_tokens"] = most if max_tokens is None else min(most, max(1, max_tokens // 2))
    return found
