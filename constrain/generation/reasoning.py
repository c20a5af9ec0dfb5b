"""Reasoning in front of an answer: how a template turns it on and off, and whether an answer has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.chat.answers.choices import Reasoning
from constrain.chat.prompt.conversation import ThinkingState, conversation_prompt, format_of

if TYPE_CHECKING:
    from constrain.chat.families.format import Thinking
    from constrain.llama.model import Model


def switch_reasoning(thinking: Thinking | None, *, wanted: bool) -> dict[str, object]:
    """Returns the template variable that turns reasoning on or off; empty if the template has none."""
    switch = thinking and thinking.switch
    return {switch.variable: switch.on if wanted else switch.off} if switch else {}


def read_reasoning(state: ThinkingState, *, wanted: bool) -> Reasoning:
    """Returns whether an answer has reasoning, from its state at the end of the prompt."""
    if state is ThinkingState.OPEN:
        return Reasoning.OPENED
    return Reasoning.OPTIONAL if state is ThinkingState.POSSIBLE and wanted else Reasoning.NONE


def always_reasons(model: Model, *, has_tools: bool) -> bool:
    """Returns whether a model's template begins every answer with reasoning, also where it is not wanted.

    ``has_tools``: whether the conversation has tools, for which some models have a template of their own.
    """
    template = model.tool_template if has_tools else model.chat_template
    form = format_of(model.tokenizer, template)
    variables = switch_reasoning(form.thinking, wanted=False)
    prompt = conversation_prompt(model.tokenizer, template, "Hello", form=form, variables=variables)
    return prompt.thinking is ThinkingState.OPEN
