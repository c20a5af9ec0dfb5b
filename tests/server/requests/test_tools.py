"""Tools that the model cannot call, namespaces, and names, in the requests of every protocol."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from openai.types.responses import Response

from constrain.chat.answers.choice import read_choice
from constrain.chat.reading.events import ArgumentsDelta, CallEnded, CallStarted
from constrain.server.chat.request import ChatBody
from constrain.server.http.account import Account
from constrain.server.http.errors import ApiError
from constrain.server.messages.request import MessagesBody
from constrain.server.ollama.request import ChatBody as OllamaChatBody
from constrain.server.responses.events import EventWriter
from constrain.server.responses.output import ResponseHead, call_item, unfinished_response
from constrain.server.responses.request import ResponseBody, ResponsesRequest
from constrain.server.sandbox.reading import reading_key
from constrain.server.settings import Settings
from tests.support import each_row, for_each

USER = [{"role": "user", "content": "Hello"}]
PARAMETERS = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
FLAT = {"type": "function", "name": "f", "parameters": PARAMETERS}
NESTED = {"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}

HOSTED = (
    *("web_search", "web_search_preview_2025_03_11", "image_generation", "code_interpreter", "computer_use_preview"),
    *("mcp", "mcp_toolset", "file_search", "local_shell", "a_type_of_next_year"),
)


def chat(fields: dict[str, Any]) -> dict[str, Any]:
    return dict(ChatBody.ask({"model": "m", "messages": USER, **fields}, Settings()).question.options)


def responses(fields: dict[str, Any]) -> dict[str, Any]:
    return dict(ResponseBody.ask({"model": "m", "input": "Hello", **fields}, Settings()).options)


def messages(fields: dict[str, Any]) -> dict[str, Any]:
    body = {"model": "m", "max_tokens": 9, "messages": USER, **fields}
    options = dict(MessagesBody.ask(body, Settings()).question.options)
    del options["max_tokens"]
    return options


def ollama(fields: dict[str, Any]) -> dict[str, Any]:
    return dict(OllamaChatBody.ask({"model": "m", "messages": USER, **fields}, Settings()).options)


PROTOCOLS: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], dict[str, Any]]] = {
    "chat": (chat, NESTED),
    "responses": (responses, FLAT),
    "messages": (messages, {"name": "f", "input_schema": PARAMETERS}),
    "ollama": (ollama, NESTED),
}
"""The reader of each protocol, and a tool in its form."""


def named(options: dict[str, Any]) -> list[str]:
    return [tool.name for tool in options.get("tools", ())]


@for_each("protocol", PROTOCOLS)
@for_each("kind", HOSTED)
def test_tools_that_the_model_cannot_call_are_left_out_with_a_warning(
    protocol: str, kind: str, account: Account
) -> None:
    account.warnings = ()
    read, tool = PROTOCOLS[protocol]
    hosted = {"type": kind, "name": "f", "server_label": "x", "container": {"type": "auto"}}
    assert named(read({"tools": [hosted, tool, hosted]})) == ["f"]
    [warning] = account.warnings
    assert f"'{kind}'" in warning


@for_each("protocol", PROTOCOLS)
def test_only_tools_that_the_model_cannot_call_are_no_tools(protocol: str) -> None:
    read, _ = PROTOCOLS[protocol]
    assert read({"tools": [{"type": "web_search"}]}) == read({"tools": []})


@for_each("subset, warned", ("structural", 0), ("openai", 1))
def test_any_number_of_tools_is_read_and_openais_limit_is_a_warning(subset: Any, warned: int, account: Account) -> None:
    tools = [{**FLAT, "name": f"f{number}"} for number in range(300)]
    settings = Settings(strict_subset=subset)
    account.warnings = ()
    assert len(ResponseBody.ask({"model": "m", "input": "Hello", "tools": tools}, settings).options["tools"]) == 300
    functions = [{"name": tool["name"], "parameters": PARAMETERS} for tool in tools]
    assert len(ChatBody.ask({"model": "m", "messages": USER, "functions": functions}, settings).tools) == 300
    assert [warning.partition(";")[0] for warning in account.warnings] == ["The request has 300 tools"] * warned


@for_each(
    "choice, calls",
    ({"mode": "auto", "tools": [FLAT, {"type": "web_search"}]}, ("auto", ("f",))),
    ({"mode": "required", "tools": [{"type": "mcp", "server_label": "x"}, FLAT]}, ("required", ("f",))),
    ({"mode": "auto", "tools": [{"type": "web_search"}]}, ("none", None)),
    ({"mode": "auto", "tools": [{"type": "namespace", "name": "n"}]}, ("auto", ("n.f", "n.g"))),
    ({"mode": "auto", "tools": [{**FLAT, "namespace": "n"}]}, ("auto", ("n.f",))),
)
def test_allowed_tools_are_those_that_the_model_can_call(choice: dict[str, Any], calls: Any) -> None:
    space = {"type": "namespace", "name": "n", "tools": [FLAT, {**FLAT, "name": "g"}]}
    options = responses({"tools": [FLAT, space], "tool_choice": {"type": "allowed_tools", **choice}})
    found = read_choice(options["tool_choice"], options["tools"])
    assert (found.calls.value, found.allowed) == calls


def test_a_call_cannot_be_required_of_allowed_tools_that_were_left_out() -> None:
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}
    with pytest.raises(ApiError) as caught:
        responses({"tools": [FLAT, {"type": "web_search"}], "tool_choice": choice})
    assert (caught.value.status, caught.value.param) == (400, "tool_choice")


CUSTOM = {"type": "custom", "name": "patch", "description": "Edits."}
SPACE = {"type": "namespace", "name": "docs", "description": "Pages.", "tools": [FLAT, CUSTOM, {"type": "web_search"}]}


def with_space(**fields: Any) -> ResponsesRequest:
    return ResponseBody.ask({"model": "m", "input": "Hello", "tools": [SPACE, FLAT], **fields}, Settings())


def test_tools_of_a_namespace_are_called_by_both_names() -> None:
    assert named(dict(with_space().options)) == ["docs.f", "docs.patch", "f"]
    assert named(chat({"tools": [{**SPACE, "tools": [NESTED]}, NESTED]})) == ["docs.f", "f"]


@each_row(
    "called, is_custom, said",
    ("docs.f", False, {"name": "f", "namespace": "docs"}),
    ("docs.patch", True, {"name": "patch", "namespace": "docs"}),
    ("f", False, {"name": "f"}),
)
def test_a_call_has_the_namespace_beside_the_name_and_comes_back_so(
    called: str, is_custom: bool, said: dict[str, str]
) -> None:
    head = ResponseHead(with_space(), "resp_" + "a" * 48, 0.0, "m", 0.8)
    item = call_item(head, 0, "call_1", called, "{}", is_custom=is_custom, status="completed")
    assert {key: item[key] for key in ("name", "namespace") if key in item} == said
    result = {"type": f"{item['type']}_output", "call_id": "call_1", "output": "fine"}
    [_, caller, _] = with_space(input=[*USER, item, result]).messages()
    [call] = caller["tool_calls"]
    assert call[call["type"]]["name"] == called


def test_a_response_repeats_its_tools_as_they_were_sent() -> None:
    choice = {"type": "function", "name": "f", "namespace": "docs"}
    request = with_space(tool_choice=choice)
    assert read_choice(request.options["tool_choice"], request.options["tools"]).allowed == ("docs.f",)
    response = unfinished_response(ResponseHead(request, "resp_1", 0.0, "m", 0.8))
    assert isinstance(response, Response)
    shown = response.to_dict()
    strict = {**FLAT, "strict": False}
    custom = {**CUSTOM, "format": {"type": "text"}}
    assert shown["tools"] == [{**SPACE, "tools": [strict, custom]}, strict]
    assert shown["tool_choice"] == choice


@for_each(
    "protocol, name, is_allowed",
    ("chat", "a" * 64, True),
    ("chat", "a" * 65, False),
    ("chat", "files.read", False),
    ("responses", "a" * 65, False),
    ("messages", "a" * 128, True),
    ("messages", "a" * 129, False),
    ("messages", "files.read", False),
    ("ollama", "files.read/all-" + "a" * 200, True),
    ("ollama", "two words", False),
)
def test_names_are_those_of_the_protocol(protocol: str, name: str, is_allowed: bool) -> None:
    read, tool = PROTOCOLS[protocol]
    given = {**tool, "function": {**tool["function"], "name": name}} if "function" in tool else {**tool, "name": name}
    if is_allowed:
        assert named(read({"tools": [given]})) == [name]
        return
    with pytest.raises(ApiError, match="must match") as caught:
        read({"tools": [given]})
    assert "name=" not in caught.value.message


@for_each("protocol, code", ("messages", "code_execution_20250825"), ("responses", "programmatic"))
def test_a_tool_that_only_code_calls_is_left_out(protocol: str, code: str, account: Account) -> None:
    account.warnings = ()
    read, tool = PROTOCOLS[protocol]
    tools = [{**tool, "allowed_callers": ["direct", code]}, {**tool, "name": "g", "allowed_callers": [code]}]
    assert named(read({"tools": tools})) == ["f"]
    [warning] = account.warnings
    assert "'g'" in warning


LATER: dict[str, list[dict[str, Any]]] = {
    "responses": [
        {**FLAT, "defer_loading": True},
        {"type": "custom", "name": "g", "defer_loading": True},
        {"type": "tool_search"},
        {"type": "tool_search", "execution": "server"},
    ],
    "messages": [
        {"name": "f", "input_schema": PARAMETERS, "defer_loading": True},
        {"name": "g", "input_schema": PARAMETERS, "defer_loading": True},
        {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
        {"type": "tool_search_tool_bm25", "name": "tool_search_tool_bm25"},
    ],
}
"""Tools to be loaded later, and searches for them on the server, in the form of a protocol."""


@for_each("protocol", LATER)
def test_tools_that_are_to_be_loaded_later_can_be_called_and_need_no_search(protocol: str, account: Account) -> None:
    account.warnings = ()
    read, _ = PROTOCOLS[protocol]
    assert named(read({"tools": LATER[protocol]})) == ["f", "g"]
    assert not account.warnings


SEARCH_TOOL = {"type": "tool_search", "execution": "client", "parameters": PARAMETERS}


def searching(items: list[dict[str, Any]], **fields: Any) -> ResponsesRequest:
    search = {**SEARCH_TOOL, "description": "Finds."}
    return ResponseBody.ask({"model": "m", "input": [*USER, *items], "tools": [FLAT, search], **fields}, Settings())


def search_items(execution: str) -> list[dict[str, Any]]:
    asked = {"type": "tool_search_call", "call_id": "call_1", "execution": execution, "arguments": {"q": "mail"}}
    space = {**SPACE, "tools": [FLAT, {**CUSTOM, "defer_loading": True}]}
    found = {"type": "tool_search_output", "call_id": "call_1", "execution": execution, "tools": [FLAT, space]}
    return [asked, found]


def test_a_search_that_the_client_carries_out_is_called_like_a_function() -> None:
    request = searching([])
    assert named(dict(request.options)) == ["f", "tool_search"]
    head = ResponseHead(request, "resp_" + "a" * 48, 0.0, "m", 0.8)
    item = call_item(head, 0, "call_1", "tool_search", '{"q": "mail"}', is_custom=False, status="completed")
    assert (item["type"], item["execution"], item["arguments"]) == ("tool_search_call", "client", {"q": "mail"})
    writer = EventWriter(head)
    events = [
        event
        for each in (CallStarted(0, "call_1", "tool_search"), ArgumentsDelta(0, '{"q": "mail"}'), CallEnded(0))
        for event in writer.write(each)
    ]
    assert [event["type"] for event in events] == ["response.output_item.added", "response.output_item.done"]
    assert [event["item"]["status"] for event in events] == ["in_progress", "completed"]
    assert events[-1]["item"] == item
    response = unfinished_response(head).to_dict()
    assert response["tools"] == [{**FLAT, "strict": False}, {**SEARCH_TOOL, "description": "Finds."}]


@for_each("execution, roles", ("client", ["user", "assistant", "tool"]), ("server", ["user"]))
def test_tools_that_a_search_has_found_can_be_called(execution: str, roles: list[str], account: Account) -> None:
    account.warnings = ()
    request = searching(search_items(execution))
    assert named(dict(request.options)) == ["f", "tool_search", "docs.f", "docs.patch"]
    assert (request.namespaces["docs.f"], request.custom_tools) == (("docs", "f"), {"docs.patch"})
    assert [each["role"] for each in request.messages()] == roles
    assert not account.warnings
    more = searching([{"type": "additional_tools", "role": "developer", "tools": [{**FLAT, "name": "g"}]}])
    assert named(dict(more.options)) == ["f", "tool_search", "g"]
    assert [each["role"] for each in more.messages()] == ["user"]


def test_the_model_reads_what_its_search_has_found_and_continues_with_it() -> None:
    request = searching(search_items("client"))
    [_, caller, result] = request.messages()
    assert caller["tool_calls"][0]["function"] == {"name": "tool_search", "arguments": '{"q": "mail"}'}
    assert result["content"] == "[tool f]\n[tool docs.f]\n[tool docs.patch]"
    later = ResponseBody.ask({"model": "m", "input": "Go on", "parallel_tool_calls": False}, Settings())
    continued = later.asking(request.items)
    assert named(dict(continued.options)) == ["f", "docs.f", "docs.patch"]
    assert continued.options["parallel_tool_calls"] is False
    assert continued.questions[0].places.of_tools.keys() == {"f", "docs.f", "docs.patch"}


def test_a_wrong_tool_that_a_search_has_found_is_named_by_its_place() -> None:
    wrong = [{**each, "tools": [{**FLAT, "name": "two words"}]} for each in search_items("client")[1:]]
    with pytest.raises(ApiError, match="no tool can be called") as caught:
        searching([search_items("client")[0], *wrong])
    assert caught.value.param == "input[2].tools[0].name"
    assert reading_key({"input": [*USER, *wrong]})
    assert reading_key({"input": USER}) == b""


def test_blocks_of_a_search_on_anthropics_servers_need_no_warning(account: Account) -> None:
    account.warnings = ()
    reference = {"type": "tool_reference", "tool_name": "f"}
    blocks = [
        {"type": "server_tool_use", "id": "srv_1", "name": "tool_search_tool_regex", "input": {"query": "f"}},
        {
            "type": "tool_search_tool_result",
            "tool_use_id": "srv_1",
            "content": {"type": "tool_search_tool_search_result", "tool_references": [reference]},
        },
        {"type": "tool_use", "id": "t1", "name": "g", "input": {}},
    ]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [reference]}
    turns = [*USER, {"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
    asked = MessagesBody.ask({"model": "m", "max_tokens": 9, "messages": turns}, Settings())
    assert asked.question.prompt[-1]["content"] == "[tool f]"
    assert not account.warnings


@each_row(
    "protocol, name, value",
    ("messages", "mcp_servers", [{"url": "https://a.example"}]),
    ("messages", "container", "c"),
    ("chat", "web_search_options", {"search_context_size": "low"}),
)
def test_what_only_other_servers_run_is_left_out(protocol: str, name: str, value: Any, account: Account) -> None:
    read, _ = PROTOCOLS[protocol]
    assert read({name: value}) == read({})
    assert account.warnings == (f"'{name}' is left out: this server runs no tools.",)


@each_row(
    "result, problem",
    ('{"rows": [{"id": 1}, {"id": 2.0, "more": true}], "kind": "a"}', ""),
    ('{"kind": "\\u0061", "rows": []}\n', ""),
    ("fine", "does not match the tool's 'output_schema'."),
    ('{"rows": [{"id": 2.5}]}', "does not match the tool's 'output_schema'."),
    ('{"rows": [], "kinds": "a"}', "does not match the tool's 'output_schema'."),
    ("", "is not compared with the tool's 'output_schema': at /type: 'text' is no"),
)
def test_a_result_that_its_tool_cannot_give_is_named_in_a_warning(result: str, problem: str, account: Account) -> None:
    account.warnings = ()
    rows = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}
    output: dict[str, Any] = {
        "type": ["object", "null"],
        "properties": {"rows": rows, "kind": {"enum": ["a", "b"]}},
        "required": ["rows"],
        "additionalProperties": False,
    }
    if not result:
        output["type"] = "text"
    space = {**SPACE, "tools": [{**FLAT, "output_schema": output}]}
    call = {"type": "function_call", "call_id": "call_1", "namespace": "docs", "name": "f", "arguments": "{}"}
    given = {"type": "function_call_output", "call_id": "call_1", "output": result}
    request = with_space(tools=[space], input=[*USER, call, given])
    warning = f"The result of the call 'call_1' of 'docs.f' {problem}"
    assert [each[: len(warning)] for each in account.warnings] == ([warning] if problem else [])
    assert request.repeated["tools"][0]["tools"][0]["output_schema"] == output


def test_equal_tools_have_equal_keys_and_others_have_not() -> None:
    spelled = '{"tools": [{"name": "type", "type": "custom", "of": [1, "type", null, "\u00e9"]}], "n": 1}'
    key = reading_key(json.loads(spelled))
    assert key == reading_key(json.loads(spelled.replace("null", " null").replace('"n": 1', '"n": 2')))
    others = [spelled.replace("1,", other, 1) for other in ("1.0,", "true,", '"1",')]
    assert len({key, *(reading_key(json.loads(other)) for other in others)}) == 4


def test_a_request_whose_results_are_compared_is_never_known() -> None:
    space = {"tools": [{"type": "namespace", "name": "docs", "tools": [{**FLAT, "output_schema": {}}]}]}
    assert reading_key(space) != reading_key(space)
    space["tools"][0]["tools"] = [FLAT]
    assert reading_key(space) == reading_key(space)
