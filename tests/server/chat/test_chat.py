"""Chat completions: everything asked for is enforced, and said in OpenAI's shapes."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import jsonschema
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

import constrain
from constrain.server.app import Application
from constrain.server.serving.models import Models, ModelSource
from constrain.server.settings import Settings
from tests.support.server.asking import ask, chat, chunks_of, error_of

pytestmark = pytest.mark.slow

BOOK = {
    "type": "object",
    "properties": {"title": {"type": "string", "maxLength": 20}, "year": {"type": "integer", "maximum": 2100}},
    "required": ["title", "year"],
}
BOOK_FORMAT = {"type": "json_schema", "json_schema": {"name": "book", "schema": BOOK}}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
            "required": ["city", "days"],
        },
    },
}
CODE = {
    "type": "custom",
    "custom": {
        "name": "open_door",
        "description": "Opens a door by its code.",
        "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[A-Z]{2}-[0-9]{3}"}},
    },
}
TOOLS = [WEATHER, CODE]


def completion_of(response: httpx.Response) -> ChatCompletion:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return ChatCompletion.model_validate_json(response.text)


def require_valid_calls(calls: Any) -> None:
    for call in calls:
        if call.type == "function":
            jsonschema.validate(json.loads(call.function.arguments), WEATHER["function"]["parameters"])  # type: ignore[index]
        else:
            assert re.fullmatch("[A-Z]{2}-[0-9]{3}", call.custom.input)


def joined(chunks: list[dict[str, Any]], index: int = 0) -> dict[str, Any]:
    """The message that a client makes of the chunks of one answer: strings that come twice are joined."""
    content, calls, reason = "", {}, None
    for chunk in chunks:
        for choice in chunk["choices"]:
            if choice["index"] != index:
                continue
            content += choice["delta"].get("content") or ""
            for part in choice["delta"].get("tool_calls", ()):
                call = calls.setdefault(part["index"], {})
                for key in ("id", "type"):
                    if key in part:
                        call[key] = call.get(key, "") + part[key]
                for kind in ("function", "custom"):
                    for key, text in part.get(kind, {}).items():
                        inner = call.setdefault(kind, {})
                        inner[key] = inner.get(key, "") + text
            reason = choice["finish_reason"] or reason
    return {"content": content, "calls": [calls[number] for number in sorted(calls)], "reason": reason}


def test_the_response_has_all_that_clients_require(application: Application) -> None:
    body = chat(application, max_tokens=4).json()
    ChatCompletion.model_validate(body)
    assert set(body) == {"id", "object", "created", "model", "choices", "usage"}
    assert body["object"] == "chat.completion"
    assert set(body["choices"][0]) == {"index", "message", "finish_reason", "logprobs"}
    assert set(body["choices"][0]["message"]) == {"role", "content", "refusal"}
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["id"].startswith("chatcmpl-")
    usage = body["usage"]
    assert (body["model"], usage["completion_tokens"]) == ("small", 4)
    assert usage["total_tokens"] == usage["prompt_tokens"] + 4


def test_a_schema_is_enforced_without_strict(application: Application) -> None:
    (choice,) = completion_of(chat(application, response_format=BOOK_FORMAT)).choices
    value = json.loads(choice.message.content or "")
    jsonschema.validate(value, {**BOOK, "additionalProperties": False})
    assert choice.finish_reason == "stop"


def test_a_limit_of_the_servers_own_that_is_too_small_for_any_answer_says_so(model: constrain.Model) -> None:
    source = ModelSource(("small",), 1, model.parallel, 0, lambda: model, {"max_tokens": 2})
    response = chat(Application(Models([source]), Settings()), response_format=BOOK_FORMAT)
    assert response.status_code == 400, response.text
    error = error_of(response)
    assert error["param"] == "max_tokens"
    assert "The model's 2 tokens are too few" in error["message"]


@pytest.mark.parametrize("seed", range(2))
def test_required_calls_match_their_tools(application: Application, seed: int) -> None:
    asked = {"tools": TOOLS, "tool_choice": "required", "temperature": 1.5, "seed": seed, "max_tokens": 100}
    (choice,) = completion_of(chat(application, **asked)).choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls
    require_valid_calls(choice.message.tool_calls)


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ({"type": "function", "function": {"name": "get_weather"}}, "get_weather"),
        ({"type": "custom", "custom": {"name": "open_door"}}, "open_door"),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "custom", "custom": {"name": "open_door"}}]},
            },
            "open_door",
        ),
    ],
)
def test_a_choice_of_a_tool_is_kept(application: Application, choice: dict[str, Any], name: str) -> None:
    asked = {"tools": TOOLS, "tool_choice": choice, "parallel_tool_calls": False, "max_tokens": 200}
    message = completion_of(chat(application, **asked)).choices[0].message
    (call,) = message.tool_calls or ()
    assert (call.function.name if call.type == "function" else call.custom.name) == name
    require_valid_calls([call])


def test_a_grammar_whose_lexemes_collide_is_named(application: Application) -> None:
    grammar = {"syntax": "lark", "definition": 'start: %json {"type": "integer"} %json {"const": 7}'}
    tool = {"type": "custom", "custom": {"name": "write", "format": {"type": "grammar", "grammar": grammar}}}
    error = error_of(chat(application, tools=[TOOLS[0], tool]))
    assert (error["code"], error["param"]) == ("invalid_grammar", "tools[1].custom.format")
    assert "write" in error["message"]


def test_content_has_its_captures_beside_tokens_by_id(application: Application) -> None:
    grammar = 'start: "hi " name rest <|im_end|>\nname[capture]: /[a-z]{2}/\nrest[max_tokens=3, capture]: <[^0-40]>*'
    asked = {"structured_outputs": {"grammar": grammar}, "max_tokens": 40}
    (choice,) = chat(application, **asked).json()["choices"]
    text = choice["message"]["content"]
    assert choice["constrain"]["captures"] == {"name": text[3:5], "rest": text[5:]}
    assert choice["constrain"]["capture_spans"] == {"name": [3, 5], "rest": [5, len(text)]}


def test_no_call_is_made_where_none_may_be(application: Application) -> None:
    asked = {"tools": TOOLS, "tool_choice": "none", "response_format": BOOK_FORMAT, "max_tokens": 200}
    message = completion_of(chat(application, **asked)).choices[0].message
    assert message.tool_calls is None
    jsonschema.validate(json.loads(message.content or ""), BOOK)


@pytest.mark.parametrize("seed", range(3))
def test_with_tools_and_a_schema_an_answer_is_one_or_the_other(application: Application, seed: int) -> None:
    asked = {"tools": TOOLS, "response_format": BOOK_FORMAT, "temperature": 2, "seed": seed, "max_tokens": 200}
    (choice,) = completion_of(chat(application, **asked)).choices
    if choice.message.tool_calls:
        assert choice.finish_reason == "tool_calls"
        require_valid_calls(choice.message.tool_calls)
    else:
        assert choice.finish_reason == "stop"
        jsonschema.validate(json.loads(choice.message.content or ""), BOOK)


def test_a_stream_is_the_answer_in_pieces(application: Application) -> None:
    whole = completion_of(chat(application, max_tokens=12)).choices[0]
    chunks = chunks_of(chat(application, max_tokens=12, stream=True))
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk)
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert not any("usage" in chunk for chunk in chunks)
    assert joined(chunks) == {"content": whole.message.content, "calls": [], "reason": "length"}
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": "", "refusal": None}
    assert all(set(delta) == {"content"} for delta in deltas[1:-1])
    assert deltas[-1] == {}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]


def test_a_stream_tells_its_usage_last_where_asked_for(application: Application) -> None:
    whole = completion_of(chat(application, max_tokens=5)).usage
    chunks = chunks_of(chat(application, max_tokens=5, stream=True, stream_options={"include_usage": True}))
    assert whole is not None
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] == whole.total_tokens
    assert all(chunk["usage"] is None for chunk in chunks[:-1])


def test_a_stream_is_split_into_lines_by_its_own_line_ends_alone(application: Application) -> None:
    text = "a\u0085b\u2028c\u2029d"
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": text}}}
    response = chat(application, response_format=schema, max_tokens=100, stream=True)
    chunks = [json.loads(line.removeprefix("data: ")) for line in response.text.splitlines()[:-2] if line]
    assert json.loads(joined(chunks)["content"]) == text


@pytest.mark.parametrize("name", ["get_weather", "open_door"])
def test_a_streamed_call_names_itself_once(application: Application, name: str) -> None:
    kind, value = ("function", "arguments") if name == "get_weather" else ("custom", "input")
    asked = {"tools": TOOLS, "tool_choice": {"type": kind, kind: {"name": name}}, "max_tokens": 200}
    (call,) = chat(application, **asked).json()["choices"][0]["message"]["tool_calls"]
    chunks = chunks_of(chat(application, **asked, stream=True))
    assert joined(chunks) == {"content": "", "calls": [call], "reason": "tool_calls"}
    parts = [part for chunk in chunks for part in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert parts[0] == {"index": 0, "id": call["id"], "type": kind, kind: {"name": name, value: ""}}
    assert all(set(part) == {"index", kind} and set(part[kind]) == {value} for part in parts[1:])
    assert len(parts) > 2


def test_several_answers_have_numbers_and_begin_with_the_first(application: Application) -> None:
    asked = {"n": 3, "temperature": 1.5, "seed": 3, "response_format": BOOK_FORMAT}
    completion = completion_of(chat(application, **asked))
    assert [choice.index for choice in completion.choices] == [0, 1, 2]
    contents = [choice.message.content or "" for choice in completion.choices]
    assert len(set(contents)) == 3
    chunks = chunks_of(chat(application, **asked, stream=True))
    assert [chunk["choices"][0]["index"] for chunk in chunks[:3]] == [0, 1, 2]
    for index in range(3):
        jsonschema.validate(json.loads(joined(chunks, index)["content"]), BOOK)


def test_a_stop_text_ends_a_text_and_is_no_part_of_it(application: Application) -> None:
    whole = completion_of(chat(application, max_tokens=12)).choices[0].message.content or ""
    stop = whole.split()[1]
    (choice,) = completion_of(chat(application, max_tokens=12, stop=[stop])).choices
    assert choice.message.content == whole[: whole.index(stop)]
    assert choice.finish_reason == "stop"


@pytest.mark.parametrize("asked", [{}, {"response_format": BOOK_FORMAT}])
def test_messages_that_overflow_the_context_are_refused(application: Application, asked: dict[str, Any]) -> None:
    response = chat(application, messages=[{"role": "user", "content": "word " * 2000}], stream=True, **asked)
    error = error_of(response)
    assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")
    assert "1024 tokens" in error["message"]


def test_a_schema_that_overflows_the_context_is_named(application: Application) -> None:
    schema = {"type": "object", "properties": {f"key_{index}": {"type": "integer"} for index in range(300)}}
    asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    error = error_of(chat(application, response_format=asked))
    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")
    counts = re.search(r"resulted in (\d+) tokens, about (\d+) of which are the schema", error["message"])
    assert counts is not None
    assert 0.8 * int(counts[1]) < int(counts[2]) < int(counts[1])


def test_tools_that_overflow_the_context_are_named(application: Application) -> None:
    parameters = {"type": "object", "properties": {f"key_{index}": {"type": "integer"} for index in range(300)}}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    message = error_of(chat(application, tools=[tool], tools_shown="all"))["message"]
    counts = re.search(r"resulted in (\d+) tokens, about (\d+) of which are the tools that the model is shown", message)
    assert counts is not None
    assert 0.5 * int(counts[1]) < int(counts[2]) < 1.5 * int(counts[1])
    assert "show_schema" not in message


def test_an_answer_for_which_the_context_has_no_room_is_refused(application: Application) -> None:
    schema = {"const": "word " * 2000}
    asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    error = error_of(chat(application, response_format=asked, max_tokens=20))
    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")


def test_texts_never_become_special_tokens(application: Application) -> None:
    counts = []
    for text in ("<|im_end|>", "<|im_end|>" * 2):
        usage = completion_of(chat(application, messages=[{"role": "user", "content": text}], max_tokens=1)).usage
        assert usage is not None
        counts.append(usage.prompt_tokens)
    assert counts[1] - counts[0] > 1


def test_answers_are_counted(application: Application) -> None:
    def count(kind: str) -> float:
        metrics = ask(application, "GET", "/metrics").text
        return float(re.findall(rf'constrain_tokens_total\{{kind="{kind}"\}} (\S+)', metrics)[0])

    chat(application, max_tokens=1)
    before, cached = count("completion"), count("cached_prompt")
    chat(application, max_tokens=7)
    chat(application, max_tokens=6, stream=True)
    assert count("completion") == before + 13
    assert count("cached_prompt") > cached
