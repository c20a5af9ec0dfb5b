"""Which requests of Ollama's clients are refused, and what the others become, before any model is asked."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from constrain.chat.prompt.messages import Call, check_messages
from constrain.server.http.account import Account
from constrain.server.http.errors import ApiError
from constrain.server.ollama.options import require_thinking
from constrain.server.ollama.request import ChatBody as OllamaChatBody
from constrain.server.ollama.request import GenerateBody, OllamaRequest
from constrain.server.ollama.texts import EmbedBody, OldEmbeddingsBody
from constrain.server.settings import Settings
from tests.support import for_each
from tests.support.server.ollama import THINKING, USER

CALL = {"function": {"name": "add", "arguments": {"a": 1}}}
CALLER = {"role": "assistant", "content": "", "tool_calls": [CALL]}
ADD = {"type": "function", "function": {"name": "add", "parameters": {"properties": {"a": {"type": "integer"}}}}}


def read_chat(fields: dict[str, Any]) -> OllamaRequest:
    return OllamaChatBody.ask({"model": "small", "messages": USER, **fields}, Settings())


def read_generate(fields: dict[str, Any]) -> OllamaRequest:
    return GenerateBody.ask({"model": "small", "prompt": "Hi", **fields}, Settings())


def messages_of(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    request = read_chat({"messages": list(messages)})
    assert isinstance(request.question.prompt, list)
    return request.question.prompt


def schema_of(request: OllamaRequest) -> Any:
    assert isinstance(request.question.schema, str)
    return json.loads(request.question.schema)


def test_the_template_for_tools_says_whether_a_model_with_tools_can_think() -> None:
    model: Any = SimpleNamespace(chat_template=THINKING, tool_template="{{ messages[0].content }}")
    require_thinking("small", model, {"thinking": True})
    with pytest.raises(ApiError, match="does not support thinking"):
        require_thinking("small", model, {"thinking": True, "tools": [ADD]})


@pytest.mark.parametrize("read", [read_chat, read_generate])
def test_fields_that_change_no_answer_are_accepted(read: Any) -> None:
    loading = ("num_keep", "num_batch", "num_gpu", "main_gpu", "low_vram", "f16_kv", "numa", "use_mmap", "num_thread")
    options: dict[str, Any] = {**dict.fromkeys(loading, 1), "use_mlock": False}
    options |= {"tfs_z": 1.0, "penalize_newline": False, "vocab_only": False}
    options |= {"num_ctx": 1 << 40, "logit_bias": {}, "format": None, "grammar": ""}
    for keep_alive, cut in (("5m", True), (0, "no"), ([], 1), (True, None)):
        fields: dict[str, Any] = {
            "options": options,
            "keep_alive": keep_alive,
            "truncate": cut,
            "shift": cut,
            "context": [],
        }
        assert read({**fields, "suffix": "", "something_new": 3, "template": None}).options == {}


@pytest.mark.parametrize("read", [read_chat, read_generate])
def test_unknown_options_are_warnings(account: Account, read: Any) -> None:
    assert read({"options": {"temprature": 1, "yarn": 1e6, "x" * 100: 1}}).options == {}
    assert account.warnings == (
        "'options.temprature' is no option (did you mean temperature?); it has no effect.",
        "'options.yarn' is no option; it has no effect.",
        f"'options.{'x' * 64}' is no option; it has no effect.",
    )


@pytest.mark.parametrize("read", [read_chat, read_generate])
def test_options_become_those_of_the_library(read: Any) -> None:
    given = {"temperature": 3, "top_p": 0.5, "top_k": 3, "min_p": 0.1, "seed": 7, "stop": "x", "repeat_penalty": 1.2}
    given |= {"mirostat": 2, "mirostat_tau": 4, "mirostat_eta": 0.2, "typical_p": 0.9, "repeat_last_n": 10}
    request = read({"options": {**given, "presence_penalty": 1, "frequency_penalty": 2, "num_predict": 5}})
    assert request.options.pop("max_tokens") == 5
    assert request.options == {**given, "stop": ["x"], "presence_penalty": 1, "frequency_penalty": 2}


@pytest.mark.parametrize("read", [read_chat, read_generate])
def test_what_is_kept_of_a_prompt_is_chosen(read: Any) -> None:
    assert [read({"cache_prompt": kept}).options for kept in (None, True, False, "whole")] == [
        {}, {"cache_prompt": True}, {"cache_prompt": False}, {"cache_prompt": "whole"}
    ]  # fmt: skip


@for_each("options", [{"seed": -1}, *({"num_predict": most} for most in (-100, -2, -1, 0, None))])
def test_numbers_that_mean_none_are_none(options: dict[str, Any]) -> None:
    assert read_chat({"options": options}).options == {}


def test_answers_are_streams_unless_they_are_not_wanted() -> None:
    wanted = [read_chat({"stream": stream}).streaming.is_wanted for stream in (None, True, False)]
    assert wanted == [True, True, False]


def test_a_format_is_json_or_a_schema() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    assert schema_of(read_chat({"format": "json"})) == {"type": "object"}
    assert schema_of(read_chat({"format": schema})) == schema
    assert schema_of(read_chat({"format": {}})) == {}
    for nothing in (None, ""):
        request = read_chat({"format": nothing})
        assert request.question.schema is None


@for_each(
    "think, most, expected",
    (None, None, {}),
    (False, None, {"thinking": False}),
    (True, None, {"thinking": True}),
    ("high", None, {"thinking": True, "reasoning_effort": "high"}),
    ("medium", None, {"thinking": True, "reasoning_effort": "medium", "max_reasoning_tokens": 2048}),
    ("low", None, {"thinking": True, "reasoning_effort": "low", "max_reasoning_tokens": 512}),
    ("low", 100, {"thinking": True, "reasoning_effort": "low", "max_reasoning_tokens": 50, "max_tokens": 100}),
    ("low", 1, {"thinking": True, "reasoning_effort": "low", "max_reasoning_tokens": 1, "max_tokens": 1}),
)
def test_thinking_has_levels(think: Any, most: int | None, expected: dict[str, Any]) -> None:
    assert read_chat({"think": think, "options": {"num_predict": most}}).options == expected


def test_results_find_their_calls() -> None:
    sub = {"function": {"name": "sub", "arguments": {}}}
    named = {"id": "mine", "function": {"index": 3, "name": "mul", "arguments": {"b": [1.5]}}}
    calls = {"role": "assistant", "content": "", "tool_calls": [CALL, sub, CALL, named]}
    results = [
        {"role": "tool", "tool_call_id": "mine", "content": "4"},
        {"role": "tool", "tool_name": "add", "content": "1"},
        {"role": "tool", "content": "2"},
        {"role": "tool", "tool_name": "add", "content": "3"},
    ]
    found = messages_of(*USER, calls, *results)
    ids = [call["id"] for call in found[1]["tool_calls"]]
    assert ids == ["call_1_0", "call_1_1", "call_1_2", "mine"]
    checked = check_messages(found)
    assert [(message.call_id, message.content) for message in checked[2:]] == [
        ("call_1_0", "1"), ("call_1_1", "2"), ("call_1_2", "3"), ("mine", "4")
    ]  # fmt: skip
    assert checked[1].calls[3] == Call("mine", "mul", '{"b": [1.5]}', {"b": [1.5]})


def test_results_with_ids_find_calls_that_came_without_theirs() -> None:
    calls = {"role": "assistant", "tool_calls": [CALL, {**CALL, "id": "b"}, CALL]}
    results = [{"role": "tool", "tool_call_id": name, "content": name} for name in ("a", "b", "c")]
    checked = check_messages(messages_of(*USER, calls, *results))
    assert [(each.call_id, each.content) for each in checked[2:]] == [("call_1_0", "a"), ("b", "b"), ("call_1_2", "c")]
    checked = check_messages(messages_of(*USER, {**calls, "tool_calls": calls["tool_calls"][1:2]}, *results))
    assert [each.is_orphan for each in checked[2:]] == [False, True, True]


@for_each(
    "said",
    [{**USER[0], "done": True}],
    [{"role": "tool", "content": "3"}],
    [*USER, CALLER, {"role": "tool"}, {"role": "tool", "thinking": "x"}],
    [{"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": "{}"}}]}, {"role": "tool"}],
    [{"role": "assistant", "tool_calls": [{"function": {**CALL["function"], "index": "1"}}]}, {"role": "tool"}],
)
def test_history_is_taken_as_it_is(said: list[dict[str, Any]]) -> None:
    assert len(messages_of(*said)) == len(said)


def test_a_result_may_have_images() -> None:
    result = {"role": "tool", "content": "Look:", "images": ["AAAA"]}
    assert messages_of(*USER, CALLER, result)[-1]["content"] == "Look:\n[image omitted]"


def test_messages_of_answers_can_be_sent_back() -> None:
    answer = {"role": "assistant", "content": "Hello", "thinking": "Hm.", "images": None, "tool_calls": None}
    found = messages_of(*USER, answer, *USER)[1]
    assert found == {"role": "assistant", "content": "Hello", "reasoning_content": "Hm."}
    assert messages_of(*USER, {"role": "assistant"}, *USER)[1]["content"] == ""


def test_a_tool_without_a_type_is_a_function() -> None:
    for tool in ({**ADD, "type": None}, {"function": ADD["function"]}):
        assert [each.name for each in read_chat({"tools": [tool]}).options["tools"]] == ["add"]


def test_several_types_in_one_text_are_several_types() -> None:
    properties = {"a": {"type": "string, integer", "description": "d"}, "b": {"type": "number"}, "c": True}
    function = {"name": "f", "parameters": {"type": "object", "properties": properties}}
    [tool] = read_chat({"tools": [{"function": function}]}).options["tools"]
    assert tool.parameters["properties"] == {  # type: ignore[union-attr]
        **properties, "a": {"type": ["integer", "string"], "description": "d"}
    }  # fmt: skip


def test_a_prompt_is_a_message_of_the_user() -> None:
    request = read_generate({"system": "Be brief."})
    assert request.question.prompt == [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}
    ]  # fmt: skip


def test_a_raw_prompt_is_continued() -> None:
    request = read_generate({"raw": True, "think": False, "format": "json"})
    assert (request.question.prompt, request.options) == ("Hi", {})
    assert schema_of(request) == {"type": "object"}


def test_requests_without_a_prompt_load_the_model() -> None:
    loading = [read_chat({"messages": nothing}) for nothing in ([], None)]
    loading += [read_generate({"prompt": nothing, "keep_alive": "10m"}) for nothing in ("", None)]
    assert [(request.questions, request.is_unloading) for request in loading] == [((), False)] * 4


@for_each("zero", [0, 0.0, "0", "0s", "-0.0m"])
def test_requests_without_a_prompt_and_without_time_unload_the_model(zero: object) -> None:
    for request in (read_chat({"messages": [], "keep_alive": zero}), read_generate({"prompt": "", "keep_alive": zero})):
        assert (request.questions, request.is_unloading) == ((), True)


@pytest.mark.parametrize("arguments", ['{"a": 1}', {"a": 1}])
def test_arguments_of_earlier_calls_are_objects_or_their_text(arguments: object) -> None:
    call = {"function": {"name": "add", "arguments": arguments}}
    found = messages_of(*USER, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "1"})
    assert found[1]["tool_calls"][0]["function"] == call["function"]


SIZES = [(None, None), (-1, None), (0, None), (20, 20), (1 << 40, 1 << 40)]


@for_each("given, found", SIZES)
def test_a_context_is_where_texts_are_cut(given: int | None, found: int | None) -> None:
    assert (
        EmbedBody.ask({"model": "small", "input": "a", "options": {"num_ctx": given}}, Settings()).max_tokens == found
    )


def test_texts_are_one_or_several_or_none() -> None:
    found = [EmbedBody.ask({"model": "m", "input": given}, Settings()).inputs for given in ("a", ["a", "b"], "", [])]
    assert found == [("a",), ("a", "b"), (), ()]
    assert [OldEmbeddingsBody.ask({"model": "m", "prompt": given}, Settings()).inputs for given in ("a", "", None)] == [
        ("a",),
        (),
        (),
    ]
