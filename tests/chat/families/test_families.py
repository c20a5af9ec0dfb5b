"""Families: which form of tool calls a chat template has, and whether its model reasons first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from constrain import ModelError
from constrain.chat.families import forms
from constrain.chat.families.format import ArgumentStyle, Marks, Switch, complete
from constrain.chat.families.forms import detect_format, detect_thinking, tool_format, tool_formats
from tests.chat.prompt import test_prompt, test_rendering
from tests.support import for_each
from tests.support.chat.templates import FAMILIES, template


@for_each("name", FAMILIES)
def test_the_marks_of_one_family_alone_match_a_template(name: str) -> None:
    expected = FAMILIES[name]["form"]
    matching = {
        family.name for family in forms.FAMILIES if any(marks.match(template(name)) for marks in family.templates)
    }
    assert matching == {expected} - {"generic"}
    assert detect_format(template(name)).name == expected


def test_no_template_is_the_generic_form() -> None:
    assert detect_format(None).name == detect_format("").name == "generic"


TOKENS = [name for name in FAMILIES if "tokens" in FAMILIES[name]]


@for_each("name", TOKENS)
def test_tokens_tell_the_family_where_the_template_says_nothing_of_tools(name: str) -> None:
    family = FAMILIES[name]
    assert detect_format(template("chatml"), family["tokens"]).name == family["form"]
    assert detect_format(None, family["tokens"]).name == family["form"]


def test_families_with_tokens_have_some_in_a_table() -> None:
    told = {family.name for family in forms.FAMILIES if family.tokens}
    assert told == {FAMILIES[name]["form"] for name in TOKENS} - {"generic"}


def test_templates_count_more_than_tokens() -> None:
    assert detect_format(template("qwen3-coder"), FAMILIES["hermes"]["tokens"]).name == "qwen3-coder"


def test_forms_are_found_by_name() -> None:
    assert {form.name for form in tool_formats().values()} == {row["form"] for row in FAMILIES.values()}
    assert tool_format("qwen3") is tool_format("hermes")
    assert len(tool_formats()) == 1 + sum(1 + len(family.aliases) for family in forms.FAMILIES)


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


@for_each("name", FAMILIES)
def test_reasoning_sections_are_told_from_the_template(name: str) -> None:
    thinking = detect_thinking(template(name))
    assert thinking == detect_format(template(name)).thinking
    found = thinking and {"begin": thinking.begin, "end": thinking.end}
    if thinking and found and thinking.switch:
        found["switch"] = thinking.switch.variable
    assert found == FAMILIES[name].get("thinking")


def test_a_switch_is_a_variable_that_the_template_reads() -> None:
    assert detect_thinking("</think>{{ message.thinking }}{# enable_thinking #}") == detect_thinking("</think>")
    thinking = detect_thinking("{% if not enable_thinking %}<think>\n\n</think>{% endif %}")
    assert thinking is not None
    assert thinking.switch == Switch("enable_thinking", on=True, off=False)


def test_a_template_that_is_no_jinja_is_an_error() -> None:
    with pytest.raises(ModelError, match="the chat template failed"):
        detect_format("{% if %}</think>")


HERMES = tool_format("hermes")
TOY = replace(
    HERMES,
    name="toy",
    call=HERMES.call.replace("tool_call", "toy"),
    custom_call=HERMES.custom_call.replace("tool_call", "toy"),
    templates=(Marks(("<toy>", "</toy>")),),
    tokens=("<toy>", "</toy>"),
    aliases=("toy-2",),
)
TOY_TABLE = FAMILIES["qwen3"] | {"form": "toy", "tokens": ["<toy>", "</toy>", "<eos>"]}
for part in ("template", "rendered", "reasoning"):
    TOY_TABLE[part] = TOY_TABLE[part].replace("tool_call>", "toy>")


def test_a_family_is_one_record_and_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "FAMILIES", complete(*forms.FAMILIES, TOY))
    monkeypatch.setitem(FAMILIES, "toy", TOY_TABLE)
    for test in (
        test_the_marks_of_one_family_alone_match_a_template,
        test_tokens_tell_the_family_where_the_template_says_nothing_of_tools,
        test_reasoning_sections_are_told_from_the_template,
        test_rendering.test_two_calls_and_their_results,
        test_rendering.test_a_prompt_begins_with_the_prompt_of_the_turn_before_and_its_answer,
        test_prompt.test_reasoning_in_front_of_a_call_is_shown_where_the_template_has_a_place_for_it,
    ):
        test.__wrapped__("toy")
    test_forms_are_found_by_name()
    assert tool_format("toy-2") is TOY


INCOMPLETE: list[tuple[dict[str, Any], str]] = [
    ({"call": ""}, r"call lacks \$arguments"),
    ({"call": "<toy>$arguments</toy>"}, r"call lacks \$name"),
    ({"call": "<toy>$name:$id $arguments</toy>"}, r"call cannot have \$id"),
    ({"id_pattern": "[0-9]"}, r"call lacks \$id"),
    ({"custom_call": ""}, r"custom_call lacks \$json_input"),
    ({"custom_call": "<toy>$name $input</toy>"}, r"custom_call cannot have \$input"),
    ({"style": ArgumentStyle.XML}, r"custom_call lacks \$input|custom_call cannot have \$json_input"),
    ({"templates": ()}, "templates lack marks"),
    ({"templates": (Marks(()),)}, "templates lack marks"),
    ({"call": "$name $arguments", "between": ""}, "between, closing or a tag .* must tell several calls apart"),
]


@for_each("parts, fault", INCOMPLETE)
def test_a_record_without_a_part_is_refused(parts: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=rf"the family 'toy' is incomplete: (?:{fault})"):
        complete(TOY, replace(TOY, **parts))
