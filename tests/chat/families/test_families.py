"""Families: which form of tool calls a chat template has, and whether its model reasons first."""

from __future__ import annotations

import pytest

from constrain import ModelError
from constrain.chat.answers.structure import Variable, template_parts
from constrain.chat.families import forms as families
from constrain.chat.families.format import TAG, ArgumentStyle, Switch
from constrain.chat.families.forms import detect_format, detect_thinking, tool_format
from tests.support.chat.templates import FAMILIES, template


@pytest.mark.parametrize("name", FAMILIES)
def test_templates_are_told_apart(name: str) -> None:
    assert detect_format(template(name)).name == FAMILIES[name]


def test_the_first_entry_whose_marks_occur_is_the_only_one() -> None:
    for name in FAMILIES:
        text = template(name)
        matching = {
            family.form.name
            for family in families._FAMILIES
            if all(mark in text for mark in family.marks) and not any(mark in text for mark in family.absent)
        }
        assert matching <= {FAMILIES[name]}, name


def test_no_template_is_the_generic_form() -> None:
    assert detect_format(None).name == detect_format("").name == "generic"


TOKENS = {
    "harmony": {"<|channel|>", "<|message|>", "<|constrain|>", "<|call|>", "<|start|>"},
    "command-r7b": {"<|START_ACTION|>", "<|END_ACTION|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"},
    "deepseek-v3.1": {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
    "mistral-v11": {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"},
    "mistral-v13": {"[TOOL_CALLS]", "[ARGS]"},
    "mistral-v3-tekken": {"[TOOL_CALLS]", "[TOOL_RESULTS]"},
    "phi4-mini": {"<|tool_call|>", "<|/tool_call|>"},
    "kimi-k2": {"<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>", "<|im_middle|>"},
    "llama-pythonic": {"<|python_start|>", "<|python_end|>"},
    "hermes": {"<tool_call>", "</tool_call>", "<|im_start|>"},
    "gemma3": {"<start_of_turn>", "<end_of_turn>"},
    "generic": {"<|im_start|>", "<|im_end|>"},
}


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_tell_the_family_where_the_template_says_nothing_of_tools(name: str) -> None:
    assert detect_format(template("chatml"), TOKENS[name]).name == name
    assert detect_format(None, TOKENS[name]).name == name


def test_templates_count_more_than_tokens() -> None:
    assert detect_format(template("qwen3-coder"), TOKENS["hermes"]).name == "qwen3-coder"


def test_forms_are_found_by_name() -> None:
    for name in families.tool_format_names():
        assert tool_format(name).name in {name, "hermes", "harmony"}
    assert tool_format("qwen3") is tool_format("hermes")


def test_a_name_overrides_what_was_found_and_keeps_the_reasoning() -> None:
    found = detect_format(template("qwen3"), name="llama3-json")
    assert (found.name, found.thinking) == ("llama3-json", detect_thinking(template("qwen3")))
    with pytest.raises(ValueError, match="is not a form of tool calls"):
        detect_format(template("qwen3"), name="llama")


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"'llama' is not a form of tool calls; the forms are .*hermes, kimi-k2, llama-pythonic"
    ):
        tool_format("llama")


@pytest.mark.parametrize("name", families.tool_format_names())
def test_forms_have_the_placeholders_of_a_call(name: str) -> None:
    form = tool_format(name)
    call, custom = variables(form.call), variables(form.custom_call)
    identifier = {Variable.ID} if form.id_pattern else set()
    assert call == {Variable.NAME, Variable.ARGUMENTS} | identifier
    assert custom - {Variable.INPUT, Variable.JSON_INPUT} == {Variable.NAME} | identifier
    assert (Variable.INPUT in custom) == (form.style is ArgumentStyle.XML)


@pytest.mark.parametrize("name", families.tool_format_names())
def test_several_calls_are_told_apart_by_structure(name: str) -> None:
    form = tool_format(name)
    assert not form.parallel or form.closing or form.between or TAG.match(form.call)


def variables(template: str) -> set[Variable]:
    return {part for part in template_parts(template) if isinstance(part, Variable)}


THINKING = {
    "qwen3": ("<think>", "</think>", "enable_thinking"),
    "glm4": ("<think>", "</think>", None),
    "kimi-k2": ("<think>", "</think>", None),
    "minimax-m2": ("<think>", "</think>", None),
    "deepseek-r1": ("<think>", "</think>", None),
    "deepseek-v3.1": ("<think>", "</think>", "thinking"),
    "mistral-v13": ("[THINK]", "[/THINK]", None),
    "command-r7b": ("<|START_THINKING|>", "<|END_THINKING|>", None),
    "harmony": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant", None),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_reasoning_sections_are_told_from_the_template(name: str) -> None:
    thinking = detect_thinking(template(name))
    assert thinking == detect_format(template(name)).thinking
    if name not in THINKING:
        assert thinking is None
        return
    assert thinking is not None
    switch = thinking.switch and thinking.switch.variable
    assert (thinking.begin, thinking.end, switch) == THINKING[name]


def test_a_switch_is_a_variable_that_the_template_reads() -> None:
    assert detect_thinking("</think>{{ message.thinking }}{# enable_thinking #}") == detect_thinking("</think>")
    thinking = detect_thinking("{% if not enable_thinking %}<think>\n\n</think>{% endif %}")
    assert thinking is not None
    assert thinking.switch == Switch("enable_thinking", on=True, off=False)


def test_a_template_that_is_no_jinja_is_an_error() -> None:
    with pytest.raises(ModelError, match="the chat template failed"):
        detect_format("{% if %}</think>")
