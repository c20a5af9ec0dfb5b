"""Chats with the ``ollama`` package: answers, streams, formats, tools, reasoning and options."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import ollama
import pytest
from pydantic import BaseModel
from samples import MESSAGES, Person, get_weather, mix, weather_talk

if TYPE_CHECKING:
    import httpx

COUNTS = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration")
OF_NEWER_CLIENTS = {"id", "index", "bytes"}
"""Members of calls and of tokens that Ollama writes and that the package does not read."""


def chat(client: ollama.Client, model: str, **more: Any) -> ollama.ChatResponse:
    options = {"temperature": 0, **more.pop("options", {})}
    return client.chat(**{"model": model, "messages": MESSAGES, **more}, options=options)


def require_known(value: Any, kind: type[BaseModel], written: Any) -> None:
    """Every member that was written is one that the package's type has."""
    assert set(written) - OF_NEWER_CLIENTS <= set(kind.model_fields)
    for name in written.keys() & kind.model_fields.keys():
        inner = getattr(value, name)
        if isinstance(inner, BaseModel):
            require_known(inner, type(inner), written[name])


def test_an_answer_has_all_that_the_type_has(client: ollama.Client, model: str) -> None:
    response = chat(client, model, options={"num_predict": 8})
    assert response.model == model
    assert (response.done, response.done_reason) == (True, "length")
    assert (response.message.role, response.eval_count) == ("assistant", 8)
    assert response.message.content
    assert all(getattr(response, name) >= 0 for name in COUNTS)
    assert response.total_duration > response.eval_duration > 0


@pytest.mark.parametrize("stream", [False, True])
def test_nothing_is_written_that_the_types_do_not_know(raw: httpx.Client, model: str, stream: bool) -> None:
    for path, kind in (("chat", ollama.ChatResponse), ("generate", ollama.GenerateResponse)):
        body = {"model": model, "messages": MESSAGES} if path == "chat" else {"model": model, "prompt": "Hi"}
        options = {"num_predict": 4}
        response = raw.post(f"/api/{path}", json={**body, "stream": stream, "options": options, "logprobs": True})
        for line in response.text.splitlines():
            written = json.loads(line)
            require_known(kind.model_validate(written, strict=True), kind, written)


def test_a_stream_has_the_same_answer(client: ollama.Client, model: str) -> None:
    whole = chat(client, model, options={"num_predict": 8})
    *parts, last = chat(client, model, options={"num_predict": 8}, stream=True)
    assert "".join(part.message.content for part in parts) == whole.message.content
    assert [part.done for part in parts] == [False] * len(parts)
    assert (last.done, last.done_reason, last.eval_count) == (True, "length", 8)
    assert all(getattr(last, name) is not None for name in COUNTS)


@pytest.mark.parametrize("stream", [False, True])
def test_a_type_is_enforced(client: ollama.Client, model: str, stream: bool) -> None:
    options = {"temperature": 1.5, "seed": 5}
    answer = chat(client, model, format=Person.model_json_schema(), stream=stream, options=options)
    text = "".join(part.message.content for part in answer) if stream else answer.message.content
    assert Person.model_validate_json(text).mood in ("good", "bad")


def test_json_is_any_object(client: ollama.Client, model: str) -> None:
    response = chat(client, model, format="json", options={"num_predict": 40})
    assert isinstance(json.loads(response.message.content), dict)


def test_characters_of_any_script_are_whole(client: ollama.Client, model: str) -> None:
    value = {"text": "äöü 漢字 🎉 \u2028 \u0085 end"}
    *parts, _ = chat(client, model, format={"const": value}, stream=True)
    assert json.loads("".join(part.message.content for part in parts)) == value


def test_stop_texts_end_an_answer(client: ollama.Client, model: str) -> None:
    whole = chat(client, model, options={"num_predict": 12}).message.content
    stopped = chat(client, model, options={"num_predict": 12, "stop": [whole[6:9]]})
    assert stopped.message.content == whole[: whole.index(whole[6:9])]
    assert stopped.done_reason == "stop"


def test_options_of_the_type_are_accepted(client: ollama.Client, model: str) -> None:
    loading = ollama.Options(num_ctx=512, num_batch=64, num_gpu=0, num_thread=2, use_mmap=True, numa=False)
    sampling = {"seed": 3, "num_predict": 2, "top_k": 5, "top_p": 0.9, "tfs_z": 1.0, "mirostat": 0, "num_keep": 4}
    recent = {"repeat_penalty": 1.1, "repeat_last_n": 64}
    for penalties in (recent, {"presence_penalty": 0.5, "frequency_penalty": 0.5}):
        options = loading.model_dump(exclude_none=True) | sampling | penalties
        for given in (options, ollama.Options(**options)):
            response = client.chat(model, MESSAGES, options=given, keep_alive="5m")
            assert response.eval_count == 2


def test_a_seed_gives_the_same_answer(client: ollama.Client, model: str) -> None:
    options = {"seed": 11, "temperature": 1.2, "num_predict": 6}
    first, second = (chat(client, model, options=options).message.content for _ in range(2))
    assert first == second


def test_log_probabilities_come_with_every_token(client: ollama.Client, model: str) -> None:
    response = chat(client, model, logprobs=True, top_logprobs=2, options={"num_predict": 4})
    assert "".join(token.token for token in response.logprobs) == response.message.content
    assert [len(token.top_logprobs) for token in response.logprobs] == [2] * 4
    parts = chat(client, model, logprobs=True, stream=True, options={"num_predict": 4})
    assert len([token for part in parts for token in part.logprobs or ()]) == 4


@pytest.mark.parametrize("stream", [False, True])
def test_python_functions_are_called(client: ollama.Client, model: str, stream: bool) -> None:
    messages = weather_talk()
    answer = chat(client, model, messages=messages, tools=[get_weather], stream=stream, options={"num_predict": 60})
    parts = list(answer) if stream else [answer]
    [call] = [call for part in parts for call in part.message.tool_calls or ()]
    assert call.function.name == "get_weather"
    result = get_weather(**call.function.arguments)
    said = ollama.Message(role="assistant", content="", tool_calls=[call])
    messages += [said, {"role": "tool", "tool_name": call.function.name, "content": result}]
    response = chat(client, model, messages=messages, tools=[get_weather], options={"num_predict": 20})
    assert response.message.content
    assert parts[-1].done_reason == "stop"


def test_functions_with_several_types_are_tools(client: ollama.Client, model: str) -> None:
    response = chat(client, model, tools=[mix, get_weather], options={"num_predict": 8})
    assert response.done


def test_tools_are_taken_as_objects(client: ollama.Client, model: str) -> None:
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": ["integer", "null"]}}}}
    for tool in ({"type": "function", "function": function}, ollama.Tool(function=ollama.Tool.Function(name="g"))):
        assert chat(client, model, tools=[tool], options={"num_predict": 4}).done


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_is_apart_from_the_answer(thinker: ollama.Client, stream: bool) -> None:
    more: dict[str, Any] = {"format": {"enum": ["yes", "no"]}, "stream": stream, "options": {"num_predict": 24}}
    for think, expected in ((True, True), ("low", True), (False, False)):
        answer = chat(thinker, "thinker", think=think, **more)
        parts = list(answer) if stream else [answer]
        assert json.loads("".join(part.message.content for part in parts)) in ("yes", "no")
        assert bool("".join(part.message.thinking or "" for part in parts)) == expected


def test_answers_with_reasoning_can_be_sent_back(thinker: ollama.Client) -> None:
    response = chat(thinker, "thinker", think=True, options={"num_predict": 16})
    assert response.message.thinking
    messages = [*MESSAGES, response.message, {"role": "user", "content": "Go on."}]
    assert chat(thinker, "thinker", messages=messages, think=False, options={"num_predict": 4}).message.thinking is None


def test_no_messages_load_the_model(client: ollama.Client, model: str) -> None:
    response = client.chat(model)
    assert (response.done, response.done_reason, response.message.content) == (True, "load", "")
    [part] = client.chat(model, stream=True)
    assert part.done_reason == "load"
