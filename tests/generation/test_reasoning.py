"""How options turn reasoning on and off, and the default temperature, which depends on the answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import constrain
from constrain.chat.families.forms import detect_thinking
from constrain.generation.plan import Plan
from constrain.generation.planning import plan_continuation, prepare
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


def test_it_is_told_that_a_model_reasons_before_each_answer(model: constrain.Model) -> None:
    for beginning, told in (("<think>", 1), ("", 0)):
        thinker = constrain.Model(model.llama, chat_template=f"{PLAIN}{beginning}{{# <think></think> #}}")
        assert len(list(idle_switches(thinker, {"thinking": False}))) == told


TOOL: Any = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
SCHEMA: Any = {"type": "string", "maxLength": 12}


def temperature(plan: Plan) -> float:
    return plan.used_sampling.temperature


@for_each(
    "schema, options, expected",
    (SCHEMA, {}, 0.0),
    (constrain.Regex("[a-z]+"), {}, 0.0),
    (constrain.Lark('start: "a"'), {"seed": 3, "repeat_penalty": 1.1}, 0.0),
    (None, {"tools": [TOOL]}, 0.0),
    (SCHEMA, {"allow_refusal": True}, 0.0),
    (SCHEMA, {"unbias": False}, 0.0),
    (None, {"tools": [TOOL], "tool_choice": "none"}, 0.8),
    (SCHEMA, {"tools": [TOOL], "tool_choice": "none"}, 0.0),
    (None, {}, 0.8),
    (SCHEMA, {"draft": 8}, 0.8),
    (SCHEMA, {"top_p": 0.9}, 0.8),
    (SCHEMA, {"top_k": 5}, 0.8),
    (SCHEMA, {"min_p": 0.0}, 0.8),
    (SCHEMA, {"mirostat": 2}, 0.8),
    (SCHEMA, {"mirostat": 0, "typical_p": 1.0, "top_n_sigma": -1.0, "dynatemp_range": 0.0}, 0.0),
    (SCHEMA, {"temperature": 0.8}, 0.8),
    (SCHEMA, {"temperature": 0.3, "top_p": 0.9}, 0.3),
    (None, {"temperature": 0}, 0.0),
)
def test_the_default_depends_on_the_answer(
    model: constrain.Model, schema: Any, options: dict[str, Any], expected: float
) -> None:
    job = prepare(model, "Say hello.", schema, {"max_tokens": 20, **options})  # type: ignore[typeddict-item]
    assert temperature(job) == expected
    several = {"temperature": 0.8, **options}["temperature"]
    assert [temperature(each) for each in job.samples(2)] == [several, several]
    assert [temperature(each) for each in job.samples(1)] == [expected]


def test_a_continuation_with_a_schema_is_greedy(model: constrain.Model) -> None:
    assert plan_continuation(model, [1], SCHEMA, {}).is_greedy
    assert not plan_continuation(model, [1], None, {}).is_greedy
    assert not plan_continuation(model, [1], SCHEMA, {"top_k": 3}).is_greedy


def test_answers_are_the_same_whatever_the_seed(model: constrain.Model) -> None:
    asked: Any = {"schema": SCHEMA, "max_tokens": 12}
    answers = {constrain.generate(model, "Name a colour.", seed=seed, **asked) for seed in range(4)}
    assert answers == {constrain.generate(model, "Name a colour.", temperature=0, **asked)}
    (drawn,) = constrain.generate_batch(model, ["Name a colour."], n=8, seed=1, temperature=1.5, **asked)
    assert len(set(drawn)) > 1
