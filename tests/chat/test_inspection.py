"""Checks of lists of tools: what they cost, which are alike, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from constrain.chat.inspection import check_tools, read_tool_list
from constrain.chat.prompt.conversation import conversation_prompt
from constrain.errors import ToolError
from tests.support import each_row, for_each
from tests.support.chat.characters import Characters
from tests.support.chat.templates import template

TOKENIZER: Any = Characters()
QWEN = template("qwen2.5")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ABOUT = {"name": "weather", "description": "Tells the weather. It is slow."}
FUNCTION = {"type": "function", "function": {**ABOUT, "parameters": SCHEMA}}
MCP = {"tools": [{**ABOUT, "inputSchema": SCHEMA}]}


def _tool(name: str, description: str = "", **schema: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": schema}}


@for_each(
    "document",
    [
        [{"type": "function", **ABOUT, "parameters": SCHEMA}],
        [{**ABOUT, "input_schema": SCHEMA}],
        [{**ABOUT, "type": "custom", "input_schema": SCHEMA}],
        MCP,
        {"jsonrpc": "2.0", "id": 1, "result": MCP},
        {"model": "small", "tools": [FUNCTION], "messages": []},
    ],
)
def test_a_list_in_any_form_has_the_same_tools(document: object) -> None:
    assert check_tools(document, TOKENIZER, QWEN) == check_tools([FUNCTION], TOKENIZER, QWEN)


def test_tools_of_a_namespace_have_its_name_in_front_and_tools_of_servers_are_left_out() -> None:
    inner = {"type": "function", **ABOUT, "parameters": SCHEMA}
    listed, left_out = read_tool_list(
        [
            {"type": "namespace", "name": "sky", "tools": [inner]},
            {"type": "web_search"},
            {"type": "custom", "name": "a"},
        ]
    )
    assert ([one["name"] for one in listed], left_out) == (["sky.weather", "a"], ["web_search"])


def test_tokens_are_those_by_which_the_prompt_grows() -> None:
    found = check_tools([FUNCTION, _tool("b", "A tool. " * 99), _tool("c")], TOKENIZER, QWEN)
    assert [tool.name for tool in found.tools] == ["b", "weather", "c"]
    assert found.tokens == found.frame + sum(tool.tokens for tool in found.tools)
    lengths = [
        len(conversation_prompt(TOKENIZER, QWEN, "Hi", tools=tools).tokens)
        for tools in ([FUNCTION, FUNCTION], [FUNCTION])
    ]
    assert found.tools[1].tokens == lengths[0] - lengths[1]
    named = conversation_prompt(TOKENIZER, QWEN, "Hi", tools=[FUNCTION], by_name=True).tokens
    alone = check_tools([FUNCTION], TOKENIZER, QWEN)
    assert alone.short_tokens == len(named) - len(conversation_prompt(TOKENIZER, QWEN, "Hi").tokens)


@each_row(
    "one, two, reasons",
    (_tool("hub__create_issue"), _tool("hub__create_issue_comment"), 1),
    (_tool("hub__read_file"), _tool("disk.readFile"), 1),
    (_tool("list_issues"), _tool("list_pulls"), 0),
    (_tool("a", "Reads one file of the user"), _tool("b", "Reads a file of the user"), 1),
    (_tool("a", "Reads one file of the user"), _tool("b", "Writes one line to the end of a log"), 0),
    (_tool("a", "Reads it"), _tool("b", "Reads it"), 0),
    (_tool("get_user", "Returns the user of an id"), _tool("get_users", "Returns the users of an id"), 2),
)
def test_tools_are_alike_by_their_names_or_descriptions(one: Any, two: Any, reasons: int) -> None:
    alike = check_tools([one, two], TOKENIZER, QWEN).alike
    assert [len(pair.reasons) for pair in alike] == [reasons] * bool(reasons)


def test_what_is_not_enforced_is_told_with_its_tool() -> None:
    given = [
        _tool("refused", text={"type": "string", "pattern": "(a)\\1"}),
        _tool("narrowed", text={"type": "string", "format": "email"}),
        _tool("exact", text={"type": "string"}),
    ]
    found = check_tools(given, TOKENIZER, QWEN)
    by_name = {tool.name: tool for tool in found.tools}
    refused, narrowed, exact = (by_name[name] for name in ("refused", "narrowed", "exact"))
    assert not found.passed
    assert [finding.pointer for finding in refused.refused] == ["/properties/text/pattern"]
    assert [finding.pointer for finding in narrowed.narrowed] == ["/properties/text/format"]
    assert (exact.refused, exact.steps > 0, exact.edges > 0) == ((), True, True)
    assert check_tools(MCP, TOKENIZER, QWEN).passed


@pytest.mark.slow
def test_a_format_that_cannot_be_compiled_is_refused() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: missing"}
    found = check_tools([{"type": "custom", "name": "a", "format": grammar}], TOKENIZER, QWEN)
    assert ([finding.rule for finding in found.tools[0].refused], found.passed) == (["refused"], False)


@for_each(
    "document", [{}, "a", {"tools": 3}, [3], [{"name": 3, "input_schema": {}}], [{"name": "a b", "input_schema": {}}]]
)
def test_what_is_no_list_of_tools_is_an_error(document: object) -> None:
    with pytest.raises(ToolError):
        check_tools(document, TOKENIZER, QWEN)
