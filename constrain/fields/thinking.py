"""Fields that say whether and how much a model reasons before its answer, as the servers of open models name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import WithJsonSchema

from constrain.fields.declared import Fields, Flag, Reads, inside, one_among, within
from constrain.fields.values import boolean, mapping, one_of
from constrain.generation.reasoning import EFFORTS

if TYPE_CHECKING:
    from constrain.generation.options import ChatOptions

EFFORT_TOKENS: dict[str, int] = {"minimal": 128, "low": 512, "medium": 2048}
"""Tokens of reasoning that an effort asks the model to keep to, a soft limit; higher efforts have none."""

_KINDS: dict[str, bool | Literal["adaptive"]] = {"enabled": True, "adaptive": "adaptive", "disabled": False}

_Level: TypeAlias = Annotated[Any, WithJsonSchema({"enum": [*EFFORTS]})]
Tokens: TypeAlias = Annotated[int | None, within((0, None))]


class Reasoning(Fields):
    """``reasoning`` in OpenAI's form, and OpenRouter's."""

    effort: _Level = None
    enabled: Flag = None
    max_tokens: Tokens = None


class Thinking(Fields):
    """``thinking`` in Anthropic's form."""

    type: Annotated[str | None, one_among(_KINDS)] = None
    budget_tokens: Tokens = None

    def switch(self) -> bool | Literal["adaptive"] | None:
        """Returns whether the model reasons; ``None`` if the object does not say."""
        return None if self.type is None else _KINDS[self.type]


def _think(given: object, name: str) -> object:
    return given if isinstance(given, str) else boolean({name: given}, name)


def _thinking(given: object, name: str) -> Thinking | bool | None:
    """Reads ``thinking`` in Anthropic's form, or as a boolean."""
    return Thinking.read(given, f"{name}.") if isinstance(given, dict) else boolean({name: given}, name)


class ThinkingFields(Fields):
    """Fields about the reasoning before an answer."""

    chat_template_kwargs: Annotated[
        dict[str, Any] | None, Reads(lambda given, name: mapping(given, name) if given else None, {"type": "object"})
    ] = None
    reasoning: Annotated[Reasoning | None, inside(Reasoning)] = None
    reasoning_effort: _Level = None
    think: Annotated[Any, Reads(_think, {"anyOf": [{"enum": [*EFFORTS]}, {"type": "boolean"}]})] = None
    enable_thinking: Flag = None
    thinking: Annotated[Thinking | bool | None, Reads(_thinking, {"type": ["boolean", "object"]})] = None
    thinking_budget: Tokens = None

    def thinking_options(self, max_tokens: int | None) -> ChatOptions:
        """Returns the options for reasoning, whose first level counts. Raises ``FieldError``.

        ``max_tokens``: limit on all tokens, of which reasoning takes at most half.
        """
        found: ChatOptions = {}
        if self.chat_template_kwargs:
            found["template_variables"] = self.chat_template_kwargs
        reasoning = self.reasoning or Reasoning()
        thinking = self.thinking if isinstance(self.thinking, Thinking) else Thinking()
        levels = {"reasoning_effort": self.reasoning_effort, "reasoning.effort": reasoning.effort}
        levels["think"] = self.think if isinstance(self.think, str) else None
        for place, level in levels.items():
            if level is not None:
                found |= effort_options(one_of(level, tuple(EFFORTS), place), max_tokens)
                break
        for wanted in (self.enable_thinking, reasoning.enabled, self.think, self.thinking, thinking.switch()):
            if isinstance(wanted, bool) or wanted == "adaptive":
                found["thinking"] = wanted
        for most in (self.thinking_budget, reasoning.max_tokens, thinking.budget_tokens):
            if most == 0:
                found["thinking"] = False
            elif most is not None:
                found["max_reasoning_tokens"] = most
        return found


def effort_options(effort: str, max_tokens: int | None) -> ChatOptions:
    """Returns the options for an effort, one of ``EFFORTS``."""
    found: ChatOptions = {"reasoning_effort": effort}
    if (most := EFFORT_TOKENS.get(effort)) is not None:
        found["max_reasoning_tokens"] = most if max_tokens is None else min(most, max(1, max_tokens // 2))
    return found
