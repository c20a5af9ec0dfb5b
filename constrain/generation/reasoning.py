"""Reasoning in front of an answer: how a template turns it on and off, and whether an answer has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from constrain.arguments import wrong_type
from constrain.chat.answers.choices import Reasoning
from constrain.chat.families.forms import detect_thinking
from constrain.chat.prompt.conversation import ThinkingState, conversation_prompt, format_of
from constrain.chat.prompt.template import free_variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.chat.families.format import Thinking
    from constrain.generation.options import ChatOptions
    from constrain.llama.model import Model

EFFORTS = {
    "none": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
"""Values of ``reasoning_effort``, each with the nearest one that every template with such a variable knows."""

_EFFORT = "reasoning_effort"
_RESERVED = frozenset(("messages", "tools", "documents", "add_generation_prompt"))


def switch_reasoning(
    thinking: Thinking | None, template: str, options: ChatOptions, *, by_default: bool
) -> tuple[dict[str, Any], bool]:
    """Returns the variables of a template about reasoning, with those of the caller, and whether reasoning is wanted.

    ``by_default``: whether reasoning is wanted if the options do not say. Raises ``ValueError``.
    """
    given = _read_variables(options.get("template_variables") or {})
    wanted, effort = options.get("thinking"), options.get("reasoning_effort")
    if effort is not None and not (isinstance(effort, str) and effort in EFFORTS):
        raise ValueError(f"reasoning_effort is {effort!r:.80}; it must be one of {', '.join(EFFORTS)}")
    if not (wanted is None or isinstance(wanted, bool) or wanted == "adaptive"):
        raise ValueError(f"thinking is {wanted!r:.80}; it must be True, False, None or 'adaptive'")
    if wanted is None:
        wanted = by_default if effort is None else effort != "none"
    variables: dict[str, Any] = {}
    if effort is not None and _EFFORT in free_variables(template):
        variables[_EFFORT] = effort if f'"{effort}"' in template or f"'{effort}'" in template else EFFORTS[effort]
    if switch := thinking and thinking.switch:
        if switch.variable in given:
            wanted = given[switch.variable] != switch.off
        variables[switch.variable] = switch.on if wanted else switch.off
    return {**variables, **given}, bool(wanted)


def _read_variables(given: Any) -> Mapping[str, Any]:
    """Returns the caller's variables.

    Raises ``TypeError`` for another value, and ``ValueError`` for variables that the prompt itself is made of.
    """
    if not isinstance(given, Mapping):
        raise wrong_type("template_variables", "a mapping of names to values", given)
    if taken := sorted(_RESERVED & given.keys()):
        raise ValueError(f"template_variables cannot have {taken[0]!r}: the prompt is made of it")
    return given


def idle_switches(model: Model, options: ChatOptions) -> Iterator[str]:
    """Yields a sentence for each option about reasoning, and each variable, that the model's template does not heed."""
    template = model.tool_template if options.get("tools") else model.chat_template
    read = free_variables(template) if template else frozenset()
    for name in options.get("template_variables") or {}:
        if name not in read:
            yield f"The model's chat template has no variable {name!r:.80}."
    thinking, effort, wanted = detect_thinking(template), options.get("reasoning_effort"), options.get("thinking")
    wants = wanted is True or (wanted is None and effort not in (None, "none"))
    if wants and thinking is None and _EFFORT not in read:
        yield "The model cannot reason before its answers, so the request for reasoning has no effect."
    refuses = wanted is False or (wanted is None and effort == "none")
    if refuses and thinking is not None and always_reasons(model, has_tools=bool(options.get("tools"))):
        yield "The model reasons before each answer; its chat template has no switch to turn that off."


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
    variables, _ = switch_reasoning(form.thinking, template, {"thinking": False}, by_default=False)
    prompt = conversation_prompt(model.tokenizer, template, "Hello", form=form, variables=variables)
    return prompt.thinking is ThinkingState.OPEN
