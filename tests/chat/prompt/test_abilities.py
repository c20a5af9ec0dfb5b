"""Templates: extensions of Jinja, and what probes find out about them."""

from __future__ import annotations

import json

import pytest

from constrain import ModelError
from constrain.chat.families.forms import tool_format
from constrain.chat.prompt.abilities import Abilities, TextAndCalls
from constrain.chat.prompt.conversation import template_abilities, write_prompt
from constrain.chat.prompt.messages import check_messages
from constrain.chat.prompt.template import free_variables, render
from tests.support import each_row, for_each
from tests.support.chat.conversations import TOOLS, TWO_CALLS
from tests.support.chat.rendering import abilities_of

HERMES = tool_format("hermes")


def probed(template: str) -> Abilities:
    return template_abilities(template, HERMES, {})


def turns(written: str) -> str:
    """A template that writes something for each message of an assistant, and the other messages."""
    return (
        "{% for message in messages %}[{{ message.role }}]"
        "{% if message.role == 'assistant' %}" + written + "{% else %}{{ message.content }}{% endif %}{% endfor %}"
    )


def calls(arguments: str, content: str = "{% if message.content %}{{ message.content }}{% endif %}") -> str:
    return turns(
        content + "{% for call in message.tool_calls or [] %}<tool_call>"
        '{"name": "{{ call.function.name }}", "arguments": {{ ' + arguments + " }}}</tool_call>{% endfor %}"
    )


def test_a_template_of_contents_alone_writes_no_calls() -> None:
    able = probed("{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}")
    assert able == Abilities(system=True, only_system=True, later_system=True)


def test_a_template_that_fails_can_nothing() -> None:
    assert probed("{{ raise_exception('no') }}") == Abilities()


@each_row(
    "arguments, as_text",
    ("call.function.arguments", True),
    ("call.function.arguments | tojson", False),
    ("call.function.arguments if call.function.arguments is string else call.function.arguments | tojson", True),
)
def test_arguments_are_text_or_a_value(arguments: str, as_text: bool) -> None:
    able = probed(calls(arguments))
    assert able.calls
    assert able.arguments_as_text == as_text


def test_arguments_that_are_written_wrongly_are_no_calls() -> None:
    assert not probed(calls("call.function.arguments | tojson | tojson")).calls


def test_calls_in_another_familys_form_are_no_calls() -> None:
    assert not abilities_of("glm4", HERMES).calls
    assert not abilities_of("llama-pythonic", HERMES).calls
    assert abilities_of("qwen2.5", HERMES).calls


def test_calls_between_other_tags_are_no_calls() -> None:
    assert probed(calls("call.function.arguments")).calls
    assert not probed(calls("call.function.arguments").replace("tool_call>", "invoke>")).calls


@for_each(
    "content, expected",
    ("{{ message.content }}", ""),
    ("{{ message.content + '' }}", ""),
    ("{% if message.content is none %}{% else %}{{ message.content }}{% endif %}", None),
    ("{% if message.content %}{{ message.content }}{% endif %}", None),
)
def test_no_content_is_null_or_empty(content: str, expected: str | None) -> None:
    able = probed(calls("call.function.arguments", content))
    assert able.calls
    assert able.no_content == expected


def test_a_template_that_writes_content_or_calls_shows_no_text_beside_calls() -> None:
    able = probed(
        calls("call.function.arguments", "{% if message.content is not none %}{{ message.content }}")
        .replace("{% for call in message.tool_calls or [] %}", "{% else %}{% for call in message.tool_calls %}")
        .replace("</tool_call>{% endfor %}", "</tool_call>{% endfor %}{% endif %}")
    )
    assert able.calls
    assert able.no_content is None
    assert able.text_and_calls is TextAndCalls.APART


def test_contents_may_have_to_be_parts() -> None:
    template = "{% for message in messages %}{% for part in message.content %}{{ part.text }}{% endfor %}{% endfor %}"
    able = probed(template)
    assert able.parts
    assert able.system
    text = write_prompt(template, check_messages(TWO_CALLS[:2]), [], HERMES, able, {})
    assert text == "Be brief.Paris and Rome?"


def test_tools_that_are_shown_are_left_to_the_template() -> None:
    template = "{% for tool in tools or [] %}({{ tool.function | tojson }}){% endfor %}" + calls(
        "call.function.arguments"
    )
    able = probed(template)
    assert able.tools
    assert able.results
    functions = [TOOLS[0]["function"]]
    text = write_prompt(template, check_messages(TWO_CALLS[:2]), functions, HERMES, able, {})
    assert text == f"({json.dumps(functions[0])})[system]Be brief.[user]Paris and Rome?"


def test_tools_are_not_left_to_a_template_that_writes_calls_otherwise() -> None:
    able = abilities_of("glm4", HERMES)
    assert not able.tools
    assert not able.results


def test_the_tag_for_trainers_means_nothing() -> None:
    template = "{% for m in messages %}{% generation %}{% set x = m %}<{{ x }}>{% endgeneration %}{% endfor %}"
    assert render(template, {"messages": ["a", "b"]}) == "<a><b>"
    assert free_variables(template) == {"messages"}


def test_free_variables_are_those_that_are_read_first() -> None:
    template = "{% set a = 1 %}{{ a }}{{ b }}{% if c is defined %}{% endif %}{% for d in e %}{{ d.f }}{% endfor %}"
    assert free_variables(template) == {"b", "c", "e"}


@pytest.mark.parametrize("template", ["{% if %}", "{% generation %}", "{{ a"])
def test_what_is_no_template_is_an_error(template: str) -> None:
    with pytest.raises(ModelError, match="the chat template failed"):
        free_variables(template)
    with pytest.raises(ModelError, match="the chat template failed"):
        render(template, {})
