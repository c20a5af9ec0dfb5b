"""Requests for messages: what is refused, what the fields mean, and conversations as chat messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrain.chat.answers.choice import read_choice
from constrain.chat.answers.choices import Calls
from constrain.server.http.account import Account
from constrain.server.http.errors import ApiError
from constrain.server.messages.conversation import read_conversation
from constrain.server.messages.request import CountBody, MessagesBody, MessagesRequest
from constrain.server.requests.limits import RANGES
from constrain.server.settings import Settings
from tests.support import each_row, for_each

BASE = {"model": "small", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
OPEN_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOLS = [{"name": "f", "input_schema": OPEN_SCHEMA}, {"name": "g", "input_schema": {"type": "object"}}]


def read(fields: dict[str, Any]) -> MessagesRequest:
    return MessagesBody.ask({**BASE, **fields}, Settings())


def options(**fields: Any) -> dict[str, Any]:
    return dict(read(fields).question.options)


def test_a_count_needs_no_limit() -> None:
    asked = {name: value for name, value in BASE.items() if name != "max_tokens"}
    assert "max_tokens" not in CountBody.ask(asked, Settings()).question.options
    with pytest.raises(ApiError, match="max_tokens"):
        MessagesBody.ask(asked, Settings())


def test_numbers_and_stop_sequences_become_options() -> None:
    found = options(temperature=0.5, top_p=0.9, top_k=3, stop_sequences=["a", "b"], max_tokens=7)
    assert found == {"temperature": 0.5, "top_p": 0.9, "top_k": 3, "stop": ["a", "b"], "max_tokens": 7}


def test_stop_sequences_are_limited() -> None:
    most = RANGES["stop_sequences"][1]
    assert len(options(stop_sequences=["a"] * most)["stop"]) == most
    with pytest.raises(ApiError, match="'stop_sequences': array too long"):
        options(stop_sequences=["a"] * (most + 1))


@for_each(
    "given, expected",
    (None, {}),
    ({"type": "disabled"}, {"thinking": False}),
    ({"type": "adaptive"}, {"thinking": "adaptive"}),
    ({"type": "enabled", "budget_tokens": 50}, {"thinking": True, "max_reasoning_tokens": 50}),
)
def test_thinking_is_the_models_reasoning(given: Any, expected: dict[str, Any]) -> None:
    assert options(thinking=given) == {"max_tokens": 100, **expected}


@pytest.mark.parametrize(("display", "shown"), [(None, True), ("summarized", True), ("omitted", False)])
def test_the_text_of_thinking_may_be_left_out(display: str | None, shown: bool) -> None:
    assert read({"thinking": {"type": "adaptive", "display": display}}).shows_thinking is shown


@pytest.mark.parametrize("field", ["output_config", "output_format"])
def test_a_format_is_a_schema_in_either_field(field: str) -> None:
    document = {"type": "json_schema", "schema": OPEN_SCHEMA}
    question = read({field: {"format": document} if field == "output_config" else document}).question
    assert json.loads(str(question.schema)) == OPEN_SCHEMA


def test_a_grammar_is_a_format_too() -> None:
    question = read({"structured_outputs": {"regex": "[0-9]+"}}).question
    assert question.content is not None
    assert question.content.place.param == "structured_outputs.regex"


@for_each(
    "given, calls, allowed, parallel",
    (None, Calls.AUTO, None, True),
    ({"type": "auto"}, Calls.AUTO, None, True),
    ({"type": "auto", "disable_parallel_tool_use": True}, Calls.AUTO, None, False),
    ({"type": "any"}, Calls.REQUIRED, None, True),
    ({"type": "any", "disable_parallel_tool_use": True}, Calls.REQUIRED, None, False),
    ({"type": "tool", "name": "g"}, Calls.REQUIRED, ("g",), True),
    ({"type": "none"}, Calls.NONE, None, True),
)
def test_every_tool_choice_is_one_of_the_library(given: Any, calls: Calls, allowed: Any, parallel: bool) -> None:
    found = options(tools=TOOLS, tool_choice=given)
    choice = read_choice(found.get("tool_choice"), found["tools"])
    assert (choice.calls, choice.allowed, found["parallel_tool_calls"]) == (calls, allowed, parallel)


def test_the_model_sees_the_examples_of_a_tool() -> None:
    given = {"name": "f", "description": "Does.", "input_schema": OPEN_SCHEMA, "input_examples": [{"a": "é"}, {}]}
    (tool,) = options(tools=[given])["tools"]
    assert tool.description == 'Does.\nExample: {"a": "é"}\nExample: {}'
    (tool,) = options(tools=[{**given, "description": None, "input_examples": None}])["tools"]
    assert tool.description == ""


TEXT = {"type": "text", "text": "Hi"}


def use(identifier: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": "f", "input": arguments}


def result(identifier: str, content: Any = "1", **members: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identifier, "content": content, **members}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {**user(*content), "role": "assistant"}


def call(identifier: str, **arguments: Any) -> dict[str, Any]:
    return {"id": identifier, "type": "function", "function": {"name": "f", "arguments": arguments}}


def answer(identifier: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identifier, "content": content}


def converted(*messages: dict[str, Any], system: Any = None) -> list[dict[str, Any]]:
    return read_conversation(list(messages), system)


@for_each(
    "system, text",
    ("Be brief.", "Be brief."),
    ([{"type": "text", "text": "Be brief."}, {**TEXT, "cache_control": {"type": "ephemeral"}}], "Be brief.\n\nHi"),
    (None, None),
    ("", None),
    ([], None),
)
def test_a_system_prompt_is_the_first_message(system: Any, text: str | None) -> None:
    first = [] if text is None else [{"role": "system", "content": text}]
    assert converted(user("Hi"), system=system) == [*first, {"role": "user", "content": "Hi"}]


def test_texts_of_one_turn_are_one_message() -> None:
    turns = (
        user(TEXT, {"type": "text", "text": ""}, TEXT),
        user("there"),
        assistant("Yes"),
        assistant("?"),
        user("No"),
    )
    assert converted(*turns) == [
        {"role": "user", "content": "Hi\n\nHi\n\nthere"},
        {"role": "assistant", "content": "Yes\n\n?"},
        {"role": "user", "content": "No"},
    ]


def test_a_system_message_may_stand_between_others() -> None:
    later = {"role": "system", "content": [TEXT]}
    assert converted(user("a"), assistant("b"), later, user("c"))[2] == {"role": "system", "content": "Hi"}


def test_calls_have_their_results_behind_them_and_texts_follow() -> None:
    found = converted(
        user("a"),
        assistant(TEXT, use("x", a=1), use("y")),
        user(result("y", [TEXT, TEXT]), result("x")),
        user("And now?"),
    )
    assert found[1:] == [
        {"role": "assistant", "content": "Hi", "tool_calls": [call("x", a=1), call("y")]},
        answer("y", "Hi\n\nHi"),
        answer("x", "1"),
        {"role": "user", "content": "And now?"},
    ]


def test_an_id_may_come_again_in_a_later_turn() -> None:
    turns = (assistant(use("x")), user(result("x")))
    assert len(converted(*turns, *turns)) == 4


@for_each(
    "content, members, text",
    ("no file", {"is_error": True}, "Error: no file"),
    (None, {"is_error": True}, "Error"),
    (None, {}, ""),
    ([], {}, ""),
    ("fine", {"is_error": False}, "fine"),
)
def test_the_model_is_told_of_calls_that_failed(content: Any, members: dict[str, Any], text: str) -> None:
    assert converted(assistant(use("x")), user(result("x", content, **members)))[-1] == answer("x", text)


def test_thinking_is_reasoning_and_what_nobody_can_read_is_left_out() -> None:
    blocks = (
        {"type": "thinking", "thinking": "Well.", "signature": "s"},
        {"type": "redacted_thinking", "data": "AAAA"},
        {"type": "thinking", "thinking": "", "signature": "s"},
        TEXT,
    )
    assert converted(user("a"), assistant(*blocks), user("b"))[1] == {
        "role": "assistant",
        "content": "Hi",
        "reasoning_content": "Well.",
    }


def test_a_misspelt_member_of_a_block_is_a_warning(account: Account) -> None:
    block = {"type": "tool_use", "id": "x", "name": "f", "inptu": {}, "caller": {"type": "direct"}}
    converted(assistant(block), user(result("x")))
    assert list(account.warnings) == ["messages[0].content[0].inptu is not read; is 'input' meant?"]


def test_results_are_read_before_the_texts_around_them() -> None:
    found = converted(assistant(use("x"), use("y")), user(TEXT, result("x"), TEXT, result("y")))
    assert found[1:] == [answer("x", "1"), answer("y", "1"), {"role": "user", "content": "Hi\n\nHi"}]


@each_row(
    "block, text, is_told",
    ({"type": "tool_reference", "tool_name": "g"}, "[tool g]", False),
    ({"type": "image", "source": {"type": "base64", "data": "AA"}}, "[image omitted]", True),
    ({"type": "document", "source": {}}, "[document omitted]", True),
    ({"type": "a_block_of_next_year"}, "[a_block_of_next_year omitted]", True),
)
def test_a_result_may_have_what_is_no_text(account: Account, block: Any, text: str, *, is_told: bool) -> None:
    found = converted(assistant(use("x")), user(result("x", [TEXT, block])))
    assert found[-1] == answer("x", f"Hi\n\n{text}")
    assert any(text in warning for warning in account.warnings) == is_told


@pytest.mark.parametrize("kind", ["server_tool_use", "web_search_tool_result", "mcp_tool_use", "compaction", "image"])
def test_blocks_that_the_model_cannot_read_are_left_out_of_answers(account: Account, kind: str) -> None:
    found = converted(user("a"), assistant({"type": kind, "id": "s"}, TEXT), user("b"))
    [warning] = account.warnings
    assert found[1] == {"role": "assistant", "content": "Hi"}
    assert f"'{kind}'" in warning


def test_unknown_blocks_of_the_user_are_left_out(account: Account) -> None:
    assert converted(user({"type": "a_block_of_next_year"}, TEXT)) == [{"role": "user", "content": "Hi"}]
    [warning] = account.warnings
    assert "'a_block_of_next_year'" in warning
