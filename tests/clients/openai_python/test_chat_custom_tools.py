"""Custom tools of chat completions: texts in a Lark grammar, or of a regular expression, or any."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from openai import BadRequestError
from samples import MESSAGES, MOVE, custom

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletion

ARITHMETIC = """
start: sum
sum: product ("+" product)~0..2
product: NUMBER ("*" NUMBER)~0..2
NUMBER: /[0-9]{1,3}/
"""
QUERY = """
start: "SELECT " NAME " FROM " NAME ";"
NAME: /[a-z]{1,6}/
"""


def ask(client: OpenAI, model: str, **options: Any) -> ChatCompletion:
    return client.chat.completions.create(
        model=model, messages=MESSAGES, **{"max_tokens": 100, "temperature": 0, **options}
    )


def texts_of(completion: ChatCompletion) -> list[str]:
    """The inputs of the calls, which are all custom."""
    assert completion.choices[0].finish_reason == "tool_calls"
    calls: list[Any] = completion.choices[0].message.tool_calls or []
    assert all(call.type == "custom" and call.id for call in calls)
    return [call.custom.input for call in calls]


def chosen(name: str) -> Any:
    return {"type": "custom", "custom": {"name": name}}


GRAMMARS: dict[str, tuple[str, str, str]] = {
    "arithmetic": ("lark", ARITHMETIC, r"[0-9+*]+"),
    "a query": ("lark", QUERY, r"SELECT [a-z]{1,6} FROM [a-z]{1,6};"),
    "common terminals": ("lark", "start: INT\n%import common.INT", r"[0-9]+"),
    "ignored blanks": ("lark", 'start: "a" "b"\n%import common.WS\n%ignore WS', r"a\s*b"),
    "a terminal that takes too much": ("lark", 'start: A "a"\nA: /a*/', r"a+"),
    "words in either case": ("lark", 'start: "yes"i | "no"i', r"(?i:yes|no)"),
    "a date": ("regex", r"\d{4}-\d{2}-\d{2}", r"\d{4}-\d{2}-\d{2}"),
    "anchors": ("regex", r"^(left|right)$", r"left|right"),
    "a named group": ("regex", r"(?P<hour>[01][0-9]):(?P<minute>[0-5][0-9])", r"[01][0-9]:[0-5][0-9]"),
    "a Unicode class": ("regex", r"\p{Lu}{2}", r"\w{2}"),
    "either case": ("regex", r"(?i)hello", r"(?i:hello)"),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_grammar(client: OpenAI, model: str, name: str) -> None:
    syntax, definition, pattern = GRAMMARS[name]
    tool = custom("write", syntax, definition)
    texts = texts_of(ask(client, model, tools=[tool], tool_choice=chosen("write")))
    assert texts
    assert all(re.fullmatch(pattern, text) for text in texts), texts


@pytest.mark.parametrize("form", [{"format": {"type": "text"}}, {}])
def test_any_text(client: OpenAI, model: str, form: Any) -> None:
    tool: Any = {"type": "custom", "custom": {"name": "note", **form}}
    completion = ask(client, model, tools=[tool], tool_choice=chosen("note"), max_tokens=60)
    assert texts_of(completion)


def test_beside_a_function(client: OpenAI, model: str) -> None:
    tools = [MOVE, custom("write", "regex", "[a-z]{3}")]
    completion = ask(client, model, tools=tools, tool_choice="required", temperature=1, seed=1)
    for call in completion.choices[0].message.tool_calls or []:
        found: Any = call
        assert found.type == "function" or re.fullmatch("[a-z]{3}", found.custom.input)


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_allowed(client: OpenAI, model: str, mode: str) -> None:
    tools = [MOVE, custom("write", "regex", "[a-z]{3}")]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [chosen("write")]}}
    completion = ask(client, model, tools=tools, tool_choice=choice, temperature=1, seed=2)
    calls = completion.choices[0].message.tool_calls or []
    assert all(call.type == "custom" for call in calls)
    assert calls or mode == "auto"


def test_a_loop_with_results(client: OpenAI, model: str) -> None:
    tool = custom("write", "regex", "[a-z]{3}")
    message: Any = ask(client, model, tools=[tool], tool_choice="required").choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in message.tool_calls]
    completion = client.chat.completions.create(
        model=model, messages=[*MESSAGES, message, *results], tools=[tool], tool_choice="none", max_tokens=5
    )
    assert completion.choices[0].message.content


def test_a_stream(client: OpenAI, model: str) -> None:
    tool = custom("write", "lark", QUERY)
    chunks = client.chat.completions.create(
        model=model, messages=MESSAGES, tools=[tool], tool_choice=chosen("write"), stream=True, max_tokens=100,
        parallel_tool_calls=False,
    )  # fmt: skip
    parts: list[Any] = [part for chunk in chunks for part in chunk.choices[0].delta.tool_calls or ()]
    assert (parts[0].type, parts[0].custom) == ("custom", {"name": "write", "input": ""})
    assert parts[0].id
    assert all(part.id is None and part.type is None and set(part.custom) == {"input"} for part in parts[1:])
    assert re.fullmatch(GRAMMARS["a query"][2], "".join(part.custom["input"] for part in parts))


INVALID: dict[str, tuple[str, str, str]] = {
    "lookahead": ("regex", "a(?=b)", "look"),
    "lookbehind": ("regex", "(?<=a)b", "look"),
    "a word boundary": ("regex", r"a\bb", r"\\b"),
    "a backreference": ("regex", r"(a)\1", "backreference"),
    "a lazy quantifier": ("regex", "a+?b", "lazy"),
    "an open group": ("regex", "(a", "group|parenthes"),
    "no start": ("lark", "rule: /a/", "start"),
    "an undefined name": ("lark", "start: gone", "gone"),
    "a priority": ("lark", "start: A\nA.2: /a/", "priorit"),
    "a template": ("lark", "start: t{A}\nt{x}: x\nA: /a/", "template"),
    "declare": ("lark", "start: A\n%declare A", "declare"),
    "another import": ("lark", "start: A\n%import python.A", "import"),
    "a loop": ("lark", "start: start", "start"),
}


@pytest.mark.parametrize("name", INVALID)
def test_refused(client: OpenAI, model: str, name: str) -> None:
    syntax, definition, words = INVALID[name]
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, tools=[custom("write", syntax, definition)])
    assert caught.value.code == "invalid_grammar"
    assert str(caught.value.param).startswith("tools[0]")
    assert re.search(words, caught.value.message)
    assert re.search("line|column", caught.value.message)


@pytest.mark.parametrize(
    "form", [{"type": "grammar"}, {"type": "grammar", "grammar": {"syntax": "ebnf", "definition": "a"}}, {"type": "x"}]
)
def test_formats_that_are_none(client: OpenAI, model: str, form: Any) -> None:
    tool: Any = {"type": "custom", "custom": {"name": "write", "format": form}}
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, tools=[tool])
    assert str(caught.value.param).startswith("tools[0]")
