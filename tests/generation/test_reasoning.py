"""How options and variables turn the reasoning of a model on and off."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from constrain.chat.families.forms import detect_thinking
from constrain.generation.reasoning import idle_switches, switch_reasoning
from tests.support import for_each

QWEN = "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
GPT_OSS = "{{ reasoning_effort or 'medium' }}<|channel|>analysis<|message|>"
MISTRAL = "{% if reasoning_effort == 'none' %}{% else %}[THINK][/THINK]{% endif %}"
PLAIN = "{{ messages[0].content }}"


@for_each(
    "template, options, variables, wanted",
    (QWEN, {}, {"enable_thinking": True}, True),
    (QWEN, {"thinking": False}, {"enable_thinking": False}, False),
    (QWEN, {"thinking": "adaptive"}, {"enable_thinking": True}, True),
    (QWEN, {"template_variables": {"enable_thinking": False}}, {"enable_thinking": False}, False),
    (QWEN, {"template_variables": {"enable_thinking": False}, "thinking": True}, {"enable_thinking": False}, False),
    (QWEN, {"reasoning_effort": "none"}, {"enable_thinking": False}, False),
    (QWEN, {"reasoning_effort": "high", "thinking": False}, {"enable_thinking": False}, False),
    (GPT_OSS, {"reasoning_effort": "xhigh"}, {"reasoning_effort": "high"}, True),
    (GPT_OSS, {"reasoning_effort": "none"}, {"reasoning_effort": "low"}, False),
    (GPT_OSS, {"template_variables": {"reasoning_effort": "odd"}}, {"reasoning_effort": "odd"}, True),
    (MISTRAL, {"reasoning_effort": "none"}, {"reasoning_effort": "none"}, False),
    (PLAIN, {"reasoning_effort": "low", "template_variables": {"a": 1}}, {"a": 1}, True),
)
def test_options_become_variables_of_the_template(
    template: str, options: Any, variables: dict[str, Any], *, wanted: bool
) -> None:
    found = switch_reasoning(detect_thinking(template), template, options, by_default=True)
    assert found == (variables, wanted)


def test_a_schema_leaves_reasoning_out_unless_an_effort_asks_for_it() -> None:
    for options, wanted in (({}, False), ({"reasoning_effort": "low"}, True)):
        assert switch_reasoning(detect_thinking(QWEN), QWEN, options, by_default=False)[1] == wanted  # type: ignore[arg-type]


@for_each(
    "options, error",
    ({"reasoning_effort": "much"}, ValueError),
    ({"reasoning_effort": ["low"]}, ValueError),
    ({"template_variables": {"messages": []}}, ValueError),
    ({"template_variables": "enable_thinking"}, TypeError),
)
def test_other_values_are_refused(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(options))):
        switch_reasoning(None, PLAIN, options, by_default=False)


@for_each(
    "template, options, idle",
    (PLAIN, {"reasoning_effort": "none", "thinking": False}, 0),
    (PLAIN, {"reasoning_effort": "low"}, 1),
    (PLAIN, {"reasoning_effort": "low", "thinking": "adaptive"}, 0),
    (PLAIN, {"thinking": True, "template_variables": {"enable_thinking": True}}, 2),
    (QWEN, {"thinking": True, "template_variables": {"enable_thinking": True}}, 0),
    (GPT_OSS, {"reasoning_effort": "low"}, 0),
    ("", {"template_variables": {"a": 1}}, 1),
)
def test_what_a_template_has_no_switch_for_is_told(template: str, options: Any, idle: int) -> None:
    model: Any = SimpleNamespace(chat_template=template, tool_template=template)
    assert len(list(idle_switches(model, options))) == idle
