"""Shapes of a conversation: no template fails for a message or tool that it can show in another form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from constrain.chat.prompt.abilities import TextAndCalls
from constrain.errors import ModelError
from tests.support import for_each
from tests.support.chat.histories import (
    CONVERSATIONS,
    TOOLS,
    Conversation,
    answer,
    caller,
    loop,
    result,
    system,
    user,
    words,
)
from tests.support.chat.rendering import prompt, shaped_prompt
from tests.support.chat.templates import FAMILIES


def prompt_of(template: str, said: Conversation, tools: Sequence[Any] = ()) -> str:
    return shaped_prompt(template, said, tools)[1]


@pytest.mark.slow(but=("qwen3",))
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_shows_every_conversation(name: str) -> None:
    for said in CONVERSATIONS.values():
        for tools in ([], TOOLS["text"]):
            text = prompt(name, said, tools)
            assert all(word in text for word in words(said)), (said, text)
            assert not tools or "weather" in text


@pytest.mark.slow(but=("qwen3",))
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_shows_every_tool(name: str) -> None:
    for tools in TOOLS.values():
        for said in ("a question", "an answer behind a result"):
            text = prompt(name, CONVERSATIONS[said], tools)
            assert all(tool["function"]["name"] in text for tool in tools)


CALLS = (
    "{% for c in m.tool_calls or [] %}<tool_call>"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}'
)
SHOWN_TOOLS = "{% for t in tools or [] %}{{ t.function | tojson }}{% endfor %}"


def each(written: str, calls: str = CALLS, tools: str = SHOWN_TOOLS) -> str:
    """A template that writes something for each message, and its calls."""
    return tools + "{% for m in messages %}[{{ m.role }}]" + written + calls + "{% endfor %}"


ALTERNATING = (
    "{% set ns = namespace(n=0) %}{% for m in messages if m.role in ('user', 'assistant') and not m.tool_calls %}"
    "{% if (m.role == 'user') != (ns.n % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% set ns.n = ns.n + 1 %}{% endfor %}"
)
"""Messages without calls must alternate."""

APART = each("{% if not m.tool_calls %}{{ m.content }}{% endif %}")
"""A template that writes no text in front of calls."""


def test_text_in_front_of_a_call_has_the_place_that_the_template_takes_in_every_turn() -> None:
    said = [user(), *loop("word-beside"), answer(), user()]
    together = each("{{ m.content or '' }}")
    for template, place, shown in (
        (together, TextAndCalls.TOGETHER, "[assistant]word-beside<tool_call>"),
        (APART, TextAndCalls.APART, "[assistant]word-beside[assistant]<tool_call>"),
        (ALTERNATING + APART, TextAndCalls.DROPPED, "[user]word-user[assistant]<tool_call>"),
        (ALTERNATING + together, TextAndCalls.TOGETHER, "[assistant]word-beside<tool_call>"),
    ):
        able, text = shaped_prompt(template, said, TOOLS["text"])
        assert able.text_and_calls is place
        assert shown in text
        prompts = [prompt_of(template, said[:count], TOOLS["text"]) for count in (1, 3, 5)]
        assert all(later.startswith(earlier) for earlier, later in pairwise(prompts))


NO_CONTENT = {
    "text": "{{ m.content.split('x')[-1] if not loop.last else '' }}",
    "no text": "{{ raise_exception('empty') if m.content == '' and not loop.last else m.content or '' }}",
}


@for_each("content", [None, ""])
@for_each("written", NO_CONTENT.values())
def test_content_that_the_template_refuses_is_written_otherwise(written: str, content: str | None) -> None:
    text = prompt_of(each(written), [user("a"), *loop(content), answer("a"), user("a")], TOOLS["text"])
    assert '[assistant]<tool_call>{"name": "weather", "arguments": {"city": "word-city"}}</tool_call>' in text


def test_empty_content_reaches_the_template_as_the_client_sent_it() -> None:
    template = each("{{ '(empty)' if m.content == '' and not loop.last else m.content or '' }}")
    said = [user(), *loop(""), answer(), *loop(None)]
    text = prompt_of(template, said, TOOLS["text"])
    assert "[assistant](empty)<tool_call>" in text
    assert "word-answer[assistant]<tool_call>" in text


def test_empty_content_that_makes_a_turn_of_its_own_is_null() -> None:
    template = each("{{ '(empty)' if m.content == '' else m.content or '' }}")
    assert "(empty)" not in prompt_of(template, [user(), *loop("")], TOOLS["text"])
    assert "None" not in prompt_of(each("{{ m.content }}"), [user(), *loop(None)], TOOLS["text"])


def test_empty_content_that_would_hide_the_calls_is_null() -> None:
    template = each("{% if m.content is not none %}{{ m.content }}{% else %}", CALLS + "{% endif %}")
    assert "<tool_call>" in prompt_of(template, [user(), *loop("")], TOOLS["text"])


RECURSIVE = (
    "{% macro kind(s) %}{% if s.type is string %}{{ s.type }}{% else %}"
    "{% for t in s.type %}{{ kind({'type': [t]}) }}{% endfor %}{% endif %}{% endmacro %}"
)
SCHEMAS = {
    "lists of types": (RECURSIVE + "{% for p in ps.values() %}{{ kind(p) }}{% endfor %}", "types", '"anyOf": ['),
    "descriptions": ("{% for p in ps.values() %}{{ ': ' + p.description }}{% endfor %}", "no description", '"": '),
    "descriptions of null": (
        "{% for p in ps.values() %}{{ ': ' + p.description }}{% endfor %}",
        "description null",
        '"description": ""',
    ),
    "types": ("{% for p in ps.values() %}{{ ': ' + p.type }}{% endfor %}", "choice", "You can call tools."),
    "one type": ("{% for p in ps.values() %}{{ ': ' + p.type }}{% endfor %}", "types", "You can call tools."),
}


@for_each("written, tool, shown", SCHEMAS.values())
def test_a_schema_that_the_template_refuses_is_written_otherwise(written: str, tool: str, shown: str) -> None:
    parameters = "{% for t in tools or [] %}{% set ps = t.function.parameters.properties %}"
    tools = parameters + written + "{{ t.function | tojson }}{% endfor %}"
    text = prompt_of(each("{{ m.content or '' }}", tools=tools), [system("Be brief."), *loop(), user()], TOOLS[tool])
    assert "weather" in text
    assert shown in text or shown == '"": '
    if shown == "You can call tools.":
        assert "[system]Be brief.\n\nYou can call tools." in text


def test_tools_in_a_variable_of_their_own() -> None:
    calls = CALLS.replace("<tool_call>", "functools[").replace("</tool_call>", "]")
    head = "{{ 'Functions: ' + functions + '\\nToday is ' + datetime + '.' }}"
    template = head + each("{{ m.content or '' }}", calls, tools="")
    text = prompt_of(template, [user(), *loop()], TOOLS["text"])
    functions, _ = json.JSONDecoder().raw_decode(text.removeprefix("Functions: "))
    assert functions == [tool["function"] for tool in TOOLS["text"]]
    assert prompt_of(template, [user()]).startswith("Functions: \nToday is 2")


EVERY_MESSAGE = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}"
)
TURNS: list[tuple[list[dict[str, Any]], str]] = [
    ([user("a"), user("b")], "[user]a\n\nb"),
    ([user("a"), answer("b"), answer("c"), user("d")], "[user]a[assistant]b\n\nc[user]d"),
    ([answer("a"), user("b")], "[user][assistant]a[user]b"),
    ([system("a"), answer("b"), user("c")], "[user]a[assistant]b[user]c"),
    ([system("a")], "[user]a"),
    ([user("a"), answer(""), user("b")], "[user]a[assistant][user]b"),
    ([user("a"), answer(""), user("b"), user("c")], "[user]a\n\nb\n\nc"),
    ([user("a"), system("b"), user("c")], "[user]b\n\na\n\nc"),
]


@for_each("said, text", TURNS)
def test_neighbours_of_one_role_are_joined_where_roles_must_alternate(said: list[dict[str, Any]], text: str) -> None:
    assert prompt_of(EVERY_MESSAGE, said) == text


def test_neighbours_of_one_role_stay_apart_elsewhere() -> None:
    assert prompt_of(each("{{ m.content }}"), [user("a"), user("b")]) == "[user]a[user]b"


def test_turns_between_which_calls_stand_have_one_between_them() -> None:
    template = ALTERNATING + each("{{ m.content or '' }}")
    text = prompt_of(template, [user("a"), *loop(), user("b"), answer("c"), user("d")], TOOLS["text"])
    assert text.endswith("[tool]word-result[assistant][user]b[assistant]c[user]d")


def test_a_result_without_its_call_is_shown_in_the_templates_form_or_as_text() -> None:
    said = [user("a"), result("z"), user("b")]
    assert "[tool]word-result[user]b" in prompt_of(each("{{ m.content or '' }}"), said, TOOLS["text"])
    picky = "{{ raise_exception('no') if m.role == 'tool' and not messages[loop.index0 - 1].tool_calls else '' }}"
    text = prompt_of(each(picky + "{{ m.content or '' }}"), said, TOOLS["text"])
    assert '"content": "word-result"}\n</tool_response>\nb' in text
    assert "[tool]word-result" in prompt_of(each(picky + "{{ m.content or '' }}"), [user("a"), *loop()], TOOLS["text"])


def test_names_of_old_calls_cannot_write_tags() -> None:
    call = caller("a")
    call["tool_calls"][0]["function"]["name"] = 'a"</tool_call>b/c'
    text = prompt("chatml", [user(), call, result(), user()])
    assert '{"name": "a\\"\\u003c/tool_call>b/c", "arguments": {"city": "word-city"}}\n</tool_call>' in text


def test_a_message_that_every_shape_fails_for_is_named() -> None:
    template = "{% for m in messages %}{% if 'no' in m.content %}{{ raise_exception('never') }}{% endif %}{% endfor %}"
    with pytest.raises(ModelError, match=r"never; messages\[2\], of the role 'user', is the first that it refuses"):
        prompt_of(template, [user(), answer(), user("no"), answer(), user("no")])


def test_a_template_that_fails_is_tried_a_bounded_number_of_times() -> None:
    from constrain.chat.families.forms import detect_format
    from constrain.chat.prompt.abilities import abilities
    from constrain.chat.prompt.messages import Message, check_messages
    from constrain.chat.prompt.shaping import find_shape

    asked = 0

    def refuse(*_: object) -> str:
        nonlocal asked
        asked += 1
        raise ModelError("no")

    template = each("{{ m.content or '' }}")
    able = abilities(template, detect_format(template), ())
    assert able.calls
    said: list[Message] = check_messages([*[user(), *loop("a"), *loop("")] * 500, user()])
    with pytest.raises(ModelError, match=r"messages\[0\]"):
        find_shape(said, [TOOLS["text"][0]["function"]], able, refuse)
    assert asked <= 40
