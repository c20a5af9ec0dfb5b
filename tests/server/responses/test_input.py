"""Input items of responses: what conversation they stand for, and which cannot be used."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import ResponseItem
from pydantic import TypeAdapter

from constrain.chat.prompt.messages import check_messages
from constrain.server.http.account import Account
from constrain.server.http.errors import ApiError, convert_field_errors
from constrain.server.responses.input import add_ids, conversation, read_items
from constrain.server.responses.output import finished_response
from tests.support import for_each
from tests.support.server.response_answers import ANSWERS

Item = dict[str, Any]


def _call(call_id: str, arguments: str = "{}") -> Item:
    return {"type": "function_call", "call_id": call_id, "name": "weather", "arguments": arguments}


def _result(call_id: str, output: Any = "fine") -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _thought(*texts: str) -> Item:
    content = [{"type": "reasoning_text", "text": text} for text in texts]
    return {"type": "reasoning", "id": "rs_1", "summary": [], "content": content}


def _messages(given: Any, instructions: str | None = None) -> list[dict[str, Any]]:
    return conversation(read_items(given), instructions)


def _error(given: Any) -> ApiError:
    with pytest.raises(ApiError) as caught, convert_field_errors():
        _messages(given)
    assert (caught.value.status, caught.value.kind) == (400, "invalid_request_error")
    return caught.value


USER = {"role": "user", "content": "Hello"}
ASKED = {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
TOOL_CALL = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


def test_a_text_is_a_message_of_the_user() -> None:
    assert _messages("Hello") == [USER]


@for_each("role", ["user", "system", "developer", "assistant"])
def test_messages_need_no_type(role: str) -> None:
    spoken = "system" if role == "developer" else role
    assert _messages([{"role": role, "content": "Hello"}]) == [{"role": spoken, "content": "Hello"}]


def test_parts_of_text_are_joined() -> None:
    parts = [{"type": "input_text", "text": "Hel"}, {"type": "input_text", "text": "lo"}]
    assert _messages([{"type": "message", "role": "user", "content": parts}]) == [USER]


def test_a_message_of_the_output_may_hold_text_and_a_refusal() -> None:
    parts = [{"type": "output_text", "text": "Well, ", "annotations": []}, {"type": "refusal", "refusal": "no."}]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts}
    assert _messages([item]) == [{"role": "assistant", "content": "Well, no."}]


def test_a_call_and_its_result_become_two_messages() -> None:
    assert _messages([ASKED, _call("a"), _result("a")])[1:] == [
        {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]},
        {"role": "tool", "tool_call_id": "a", "content": "fine"},
    ]


def test_an_output_that_no_call_asked_for_is_a_message_of_the_user() -> None:
    output = {"type": "function_call_output", "name": "goal", "namespace": "agent", "output": "Read it."}
    said = {"role": "user", "content": "Output of agent.goal:\nRead it."}
    assert _messages([ASKED, _call("a"), _result("a"), output])[3:] == [said]
    assert read_items([output]) == [{**output, "status": "completed"}]
    assert _error([{**output, "name": None}]).param == "input[0].call_id"


def test_a_custom_call_and_its_result_become_two_messages() -> None:
    call = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "sum", "input": "1+2"}
    result = {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "3"}]}
    custom = {"id": "c", "type": "custom", "custom": {"name": "sum", "input": "1+2"}}
    assert _messages([call, result]) == [
        {"role": "assistant", "content": None, "tool_calls": [custom]},
        {"role": "tool", "tool_call_id": "c", "content": "3"},
    ]


@pytest.mark.parametrize(
    "output", ["fine", [{"type": "input_text", "text": "fi"}, {"type": "input_text", "text": "ne"}]]
)
def test_results_are_a_text_or_parts(output: Any) -> None:
    assert _messages([_call("a"), _result("a", output)])[-1]["content"] == "fine"


def test_reasoning_text_and_calls_side_by_side_are_one_message() -> None:
    text = {"role": "assistant", "content": "Let me see."}
    first, *results = _messages([_thought("Well, ", "well."), text, _call("a"), _call("b"), _result("b"), _result("a")])
    assert (first["reasoning_content"], first["content"]) == ("Well, well.", "Let me see.")
    assert [call["id"] for call in first["tool_calls"]] == ["a", "b"]
    assert [result["tool_call_id"] for result in results] == ["a", "b"]


def test_reasoning_without_content_leaves_no_trace() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    assert _messages([ASKED, item]) == [USER]


def test_thoughts_may_be_kept_as_output() -> None:
    item = {"type": "reasoning", "id": "r_1", "summary": None, "content": [{"type": "output_text", "text": "Hm."}]}
    [kept] = read_items([item])
    assert kept["content"] == [{"type": "reasoning_text", "text": "Hm."}]


def test_a_summary_stands_for_reasoning_that_has_no_content() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    assert _messages([item, {"role": "assistant", "content": "Yes."}]) == [
        {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
    ]


def test_a_result_may_come_after_another_message() -> None:
    messages = _messages([_call("a"), {"role": "user", "content": "Well?"}, _result("a")])
    assert [message["role"] for message in messages] == ["assistant", "tool", "user"]


def test_text_after_calls_stays_in_their_message() -> None:
    messages = _messages([_call("a"), {"role": "assistant", "content": "A moment."}, _result("a")])
    assert [message["role"] for message in messages] == ["assistant", "tool"]
    assert messages[0]["content"] == "A moment."


def test_an_id_may_be_used_again_in_a_later_turn() -> None:
    messages = _messages([_call("a"), _result("a", "1"), _call("a"), _result("a", "2")])
    assert [message["content"] for message in messages if message["role"] == "tool"] == ["1", "2"]


@for_each("name", ANSWERS)
def test_the_output_of_every_response_can_be_sent_back(name: str) -> None:
    answer = ANSWERS[name]
    output = finished_response(answer.head, answer.completion, completed_at=0.0, reasoning_tokens=0).output
    items = [item.to_dict(mode="json") for item in output]
    results = [
        {"type": f"{item['type']}_output", "call_id": item["call_id"], "output": "fine"}
        for item in items
        if "call_id" in item
    ]
    messages = _messages([ASKED, *items, *results, {"role": "user", "content": "Go on."}])
    assert [message.role for message in check_messages(messages)][-1] == "user"
    said = "".join(message["content"] or "" for message in messages if message["role"] == "assistant")
    assert answer.completion.text in said


def test_a_result_without_its_call_is_refused() -> None:
    error = _error([ASKED, _result("z")])
    assert error.message == "No tool call found for function call output with call_id z."
    assert error.param == "input"


def test_a_second_result_of_a_call_is_refused() -> None:
    assert _error([_call("a"), _result("a"), _result("a")]).message.startswith("No tool call found")


def test_a_result_of_the_other_kind_of_call_is_refused() -> None:
    result = {"type": "custom_tool_call_output", "call_id": "a", "output": "fine"}
    assert _error([_call("a"), result]).message == "No tool call found for custom tool call output with call_id a."


def test_a_call_without_its_result_is_refused() -> None:
    error = _error([_call("a"), ASKED])
    assert (error.message, error.param) == ("No tool output found for function call a.", "input")


@for_each("arguments", ["", "null", "no JSON", "[1]", {"a": 1}, [1], None])
def test_arguments_of_old_calls_are_taken_as_they_are(arguments: Any) -> None:
    given = [{**_call("a"), "arguments": arguments}, _result("a")]
    [call] = conversation(read_items(given))[0]["tool_calls"]
    written = call["function"]["arguments"]
    assert written == (arguments or "" if isinstance(arguments, str | None) else json.dumps(arguments))


def test_items_are_listed_in_openais_types() -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "sum", "input": "1+2"}
    result = {"type": "custom_tool_call_output", "call_id": "c", "output": "3"}
    parts = [{"type": "input_text", "text": "fine"}]
    given = [
        ASKED,
        {"role": "assistant", "content": "Hi"},
        _thought("x"),
        _call("a"),
        _result("a", parts),
        call,
        result,
    ]
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseItem)
    items = add_ids(read_items(given), "resp_0123")
    assert [adapter.validate_python(item).to_dict(exclude_unset=True) for item in items] == items
    assert len({item["id"] for item in items}) == len(items)


@pytest.mark.parametrize("kind", ["web_search_call", "local_shell_call_output", "compaction", "an_item_of_next_year"])
def test_items_that_the_model_cannot_read_are_left_out_with_a_warning(account: Account, kind: str) -> None:
    items = read_items([ASKED, {"type": kind, "id": "x_1", "status": "completed"}, _call("a"), _result("a")])
    assert [item["type"] for item in items] == ["message", "function_call", "function_call_output"]
    [warning] = account.warnings
    assert f"'{kind}'" in warning


@pytest.mark.parametrize(("kind", "text"), [("input_image", "[image omitted]"), ("input_file", "[file omitted]")])
def test_a_result_may_have_what_is_no_text(kind: str, text: str) -> None:
    parts = [{"type": "input_text", "text": "Look: "}, {"type": kind, "file_id": "f"}]
    assert _messages([ASKED, _call("a"), _result("a", parts)])[-1]["content"] == f"Look: {text}"


def test_a_reference_to_nothing_is_left_out() -> None:
    assert _messages([ASKED, {"type": "item_reference", "id": "msg_1"}, {"id": "rs_2"}]) == _messages([ASKED])
