"""Messages: what is accepted, and how errors name the place."""

from __future__ import annotations

from typing import Any

import pytest

from constrain.chat.prompt.messages import Call, Message, check_messages, conversation, unread_members
from constrain.errors import MessageError
from tests.support import for_each

USER = {"role": "user", "content": "Hi"}


def call(call_id: str = "a", **other: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}, **other}


def calling(*calls: Any, **other: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **other}


def result(call_id: Any = "a", **other: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "r", **other}


def function(**fields: Any) -> dict[str, Any]:
    return call(function={"name": "f", "arguments": "{}", **fields})


WRONG: list[tuple[Any, str, str]] = [
    ("Hi", "messages", "must be a list, not str"),
    ([], "messages", "must not be empty"),
    (["Hi"], "messages[0]", "must be an object, not str"),
    ([{"content": "Hi"}], "messages[0].role", "None is none of system, developer"),
    ([USER, {"role": "bot", "content": "Hi"}], "messages[1].role", "'bot' is none of"),
    ([{"role": "user"}], "messages[0].content", "must be a string or a list of text parts, not null"),
    ([{"role": "user", "content": 5}], "messages[0].content", "not int"),
    ([{"role": "user", "contnet": "Hi"}], "messages[0].content", "not null ('contnet' is not read)"),
    ([{"role": "assistant", "contents": "Hi"}], "messages[0].content", "without tool_calls ('contents' is not read)"),
    ([{"rol": "user", "content": "Hi"}], "messages[0].role", "tool ('rol' is not read)"),
    ([{"role": "user", "content": []}], "messages[0].content", "must not be an empty list"),
    ([{"role": "user", "content": ["a"]}], "messages[0].content[0]", "'text'"),
    ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0]", "not 'image_url'"),
    ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text", "must be a string, not null"),
    ([{"role": "assistant"}], "messages[0].content", "is required in a message without tool_calls"),
    ([calling(call()), USER], "messages[1]", "calls have no result before it: 'a'"),
    ([calling(call(), call("b")), result()], "messages[1]", "calls have no result before it: 'b'"),
    ([calling(call(), call())], "messages[0].tool_calls[1].id", "two calls have the id 'a'"),
    ([calling("f()")], "messages[0].tool_calls[0]", "must be an object, not str"),
    ([calling(call(id=7))], "messages[0].tool_calls[0].id", "must be a string, not int"),
    ([calling(call(type="code"))], "messages[0].tool_calls[0].type", "neither 'function' nor 'custom'"),
    ([calling(call(type="custom"))], "messages[0].tool_calls[0].custom", "must be an object, not null"),
    ([{"role": "assistant", "content": "a", "tool_calls": "f"}], "messages[0].tool_calls", "must be a list, not str"),
    ([{"role": "assistant", "content": "a", "reasoning": 1}], "messages[0].reasoning", "must be a string, not int"),
    (
        [{"role": "assistant", "content": "a", "reasoning": "b", "reasoning_content": "c"}],
        "messages[0].reasoning",
        "differs from reasoning_content",
    ),
    ([{**USER, "name": 1}], "messages[0].name", "must be a string, not int"),
    ([{"role": "user", "content": "\ud800"}], "messages[0].content", "half of a surrogate pair (U+D800)"),
    ([USER, calling(call()), result("b")], "messages[2]", "calls have no result before it: 'a'"),
    ([calling(call(), call("b")), result(), result()], "messages[2]", "calls have no result before it: 'b'"),
    ([calling(function(name=""))], "messages[0].tool_calls[0].function.name", "must not be empty"),
    ([calling(function(name=None))], "messages[0].tool_calls[0].function.name", "must be a string, not null"),
    (
        [calling(function(arguments='{"a": "\ud800"}'))],
        "messages[0].tool_calls[0].function.arguments",
        "half of a surrogate pair (U+D800)",
    ),
    ([calling(function(arguments={"a": {1}}))], "messages[0].tool_calls[0].function.arguments", "must be JSON: "),
]


@for_each("messages, param, problem", WRONG)
def test_errors_name_the_place(messages: Any, param: str, problem: str) -> None:
    with pytest.raises(MessageError) as caught:
        check_messages(messages)
    assert caught.value.param == param
    assert str(caught.value).startswith(f"{param}: ")
    assert problem in str(caught.value)


def test_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert check_messages([{"role": "user", "content": parts}]) == [Message("user", "ab")]


def test_fields_that_clients_send_without_a_value_are_accepted() -> None:
    sent = {"role": "assistant", "content": "a", "refusal": None, "audio": None, "function_call": None}
    assert check_messages([USER, {**sent, "tool_calls": None, "annotations": []}])[1] == Message("assistant", "a")


def test_a_refusal_is_an_answer() -> None:
    refusal = {"role": "assistant", "content": None, "refusal": "No."}
    assert check_messages([USER, refusal])[1] == Message("assistant", "No.")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart(field: str) -> None:
    assert check_messages([USER, {"role": "assistant", "content": "a", field: "hm"}])[1].reasoning == "hm"


def test_results_get_the_order_of_the_calls_and_the_names_of_the_tools() -> None:
    second = {"id": "b", "type": "custom", "custom": {"name": "g", "input": "x"}}
    checked = check_messages([USER, calling(call(), second), result("b"), result("a")])
    assert checked[1].calls == (Call("a", "f", "{}", {}), Call("b", "g", '{"input": "x"}', {"input": "x"}))
    assert [(m.call_id, m.name) for m in checked[2:]] == [("a", "f"), ("b", "g")]


def test_ids_may_come_again_in_a_later_turn() -> None:
    assert len(check_messages([USER, calling(call()), result(), calling(call()), result()])) == 5


def test_arguments_as_a_value_are_what_their_text_says() -> None:
    checked = check_messages([USER, calling(function(arguments={1: (2,)})), result()])
    assert checked[1].calls == (Call("a", "f", '{"1": [2]}', {"1": [2]}),)


@for_each("given", ["", " ", "null", None])
def test_calls_without_arguments(given: str | None) -> None:
    assert check_messages([calling(function(arguments=given)), result()])[0].calls[0] == Call("a", "f", "{}", {})


DEEP = '{"a": ' * 99 + "1" + "}" * 99


@for_each(
    "given, text",
    ('{"a": ', '{"a":'),
    ("[1]", "[1]"),
    ([1], "[1]"),
    (5, "5"),
    ("f(x)", "f(x)"),
    ('{"a": NaN}', '{"a": NaN}'),
    ({"a": float("inf")}, '{"a": Infinity}'),
    ('{"a": "\\ud800"}', '{"a": "\\ud800"}'),
    (DEEP, DEEP),
    ('{"a": ' * 99999 + "1" + "}" * 99999, '{"a": ' * 99999 + "1" + "}" * 99999),
)
def test_arguments_that_are_no_object_are_an_object_with_their_text(given: Any, text: str) -> None:
    [checked] = check_messages([calling(function(arguments=given)), result()])[0].calls
    assert checked == Call("a", "f", text, {"arguments": text})


@for_each("name", ["a/b", "a:b", "a.b", "f g", "n" * 200])
def test_names_of_old_calls_are_any_text(name: str) -> None:
    assert check_messages([calling(function(name=name)), result()])[0].calls[0].name == name


@for_each(
    "messages, orphans",
    ([USER, result()], [1]),
    ([result(), USER], [0]),
    ([calling(call()), result(), result()], [2]),
    ([calling(call(), call("b")), result("b"), result("c"), result(), USER], [3]),
    ([USER, result(None)], [1]),
    ([calling(call()), result(None)], []),
    ([calling(call(), call("b")), result("b"), result(None)], []),
    ([calling(call(id=None), call(id="")), result(None), result("call_1")], []),
    ([calling(call()), result(None, name="g"), result(None, name="f")], [2]),
)
def test_results_whose_call_is_gone_are_kept(messages: list[dict[str, Any]], orphans: list[int]) -> None:
    checked = check_messages(messages)
    assert [index for index, message in enumerate(checked) if message.is_orphan] == orphans
    assert len(checked) == len(messages)


def test_members_that_nobody_reads_are_accepted() -> None:
    unknown = {"id": "1", "metadata": {"a": 1}, "reasoning_details": [1], "provider_specific_fields": {}, "audio": None}
    assert check_messages([{**USER, **unknown}]) == check_messages([USER])
    assert unread_members([{**USER, **unknown}, {"role": "assistant", "content": "a", **unknown}]) == []


@for_each(
    "message, told",
    ({"role": "assistant", "content": "a", "tool_call": [1]}, "messages[0].tool_call is not read; is 'tool_calls'"),
    ({"role": "assistant", "content": "a", "toolCalls": [1]}, "messages[0].toolCalls is not read; is 'tool_calls'"),
    (result(None, toolCallId="a"), "messages[0].toolCallId is not read; is 'tool_call_id' meant?"),
    ({**USER, "names": "Ann"}, "messages[0].names is not read; is 'name' meant?"),
    ({**USER, "tool_calls": [call()]}, "messages[0].tool_calls is not read: messages of the role 'user'"),
    (calling(function(argumets="{}")), "messages[0].tool_calls[0].function.argumets is not read; is 'arguments'"),
    ({**USER, "content": "", "contnet": "a"}, "messages[0].contnet is not read; is 'content' meant?"),
    ({**USER, "contents": "a"}, "messages[0].contents is not read; is 'content' meant?"),
    ({**USER, "context": "a", "role_id": 1, "content_type": "text", "contents": None}, ""),
    (calling(call(function={"name": "f", "args": "{}", "arguement": "{}"})), "function.arguement is not read"),
)
def test_a_misspelt_member_is_told(message: dict[str, Any], told: str) -> None:
    found = unread_members([message])
    assert [told in sentence for sentence in found] == ([True] if told else [])


def test_a_misspelt_member_is_a_warning_in_python() -> None:
    with pytest.warns(UserWarning, match="is 'name' meant"):
        conversation([{**USER, "names": "Ann"}])


def test_who_speaks_is_kept_for_the_template() -> None:
    assert check_messages([{**USER, "name": "Ann"}]) == [Message("user", "Hi", name="Ann")]
