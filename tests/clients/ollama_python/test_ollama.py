"""What the ``ollama`` package alone asks for: its types, options, functions as tools, reasoning, models and errors."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import httpx
import ollama
import pytest
from adapter import Chat
from pydantic import BaseModel
from shared import KEY, MODEL, PROMPT, SECONDS

CLIENT = Chat().client
THINKER = ollama.Client(host=os.environ["CONSTRAIN_THINKER_URL"], timeout=SECONDS)
RAW = httpx.Client(
    base_url=os.environ["OLLAMA_HOST"], headers={"Authorization": f"Bearer {KEY}"}, timeout=SECONDS
)  # fmt: skip
MESSAGES: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": PROMPT}]
OF_NEWER_CLIENTS = {"id", "index", "bytes"}
"""Members of calls and of tokens that Ollama writes and that the package does not read."""

BOTH = pytest.mark.parametrize("stream", [False, True])


def chat(client: ollama.Client = CLIENT, **more: Any) -> Any:
    options = {"temperature": 0, **more.pop("options", {})}
    return client.chat(**{"model": MODEL, "messages": MESSAGES, **more}, options=options)


def require_known(value: Any, kind: type[BaseModel], written: Any) -> None:
    """Every member that was written is one that the package's type has."""
    assert set(written) - OF_NEWER_CLIENTS <= set(kind.model_fields)
    for name in written.keys() & kind.model_fields.keys():
        inner = getattr(value, name)
        if isinstance(inner, BaseModel):
            require_known(inner, type(inner), written[name])


@BOTH
def test_nothing_is_written_that_the_types_do_not_know(stream: bool) -> None:
    for path, kind in (("chat", ollama.ChatResponse), ("generate", ollama.GenerateResponse)):
        body = {"model": MODEL, "messages": MESSAGES} if path == "chat" else {"model": MODEL, "prompt": "Hi"}
        options = {"num_predict": 4}
        response = RAW.post(f"/api/{path}", json={**body, "stream": stream, "options": options, "logprobs": True})
        for line in response.text.splitlines():
            written = json.loads(line)
            require_known(kind.model_validate(written, strict=True), kind, written)


def test_a_stream_has_the_same_answer_and_its_counts() -> None:
    whole = chat(options={"num_predict": 8})
    *parts, last = chat(options={"num_predict": 8}, stream=True)
    assert "".join(part.message.content for part in parts) == whole.message.content
    assert [part.done for part in parts] == [False] * len(parts)
    for end in (whole, last):
        assert (end.model, end.done, end.done_reason, end.eval_count) == (MODEL, True, "length", 8)
        assert end.total_duration > end.eval_duration > 0
        assert min(end.load_duration, end.prompt_eval_count, end.prompt_eval_duration) >= 0


def test_characters_of_any_script_are_whole() -> None:
    value = {"text": "äöü 漢字 🎉 \u2028 \u0085 end"}
    *parts, _ = chat(format={"const": value}, stream=True)
    assert json.loads("".join(part.message.content for part in parts)) == value


def test_options_of_the_type_are_accepted() -> None:
    loading = ollama.Options(num_ctx=512, num_batch=64, num_gpu=0, num_thread=2, use_mmap=True, numa=False)
    sampling = {"seed": 3, "num_predict": 2, "top_k": 5, "top_p": 0.9, "tfs_z": 1.0, "mirostat": 0, "num_keep": 4}
    recent = {"repeat_penalty": 1.1, "repeat_last_n": 64}
    for penalties in (recent, {"presence_penalty": 0.5, "frequency_penalty": 0.5}):
        options = loading.model_dump(exclude_none=True) | sampling | penalties
        for given in (options, ollama.Options(**options)):
            assert CLIENT.chat(MODEL, MESSAGES, options=given, keep_alive="5m").eval_count == 2


def test_log_probabilities_come_with_every_token() -> None:
    response = chat(logprobs=True, top_logprobs=2, options={"num_predict": 4})
    assert "".join(token.token for token in response.logprobs) == response.message.content
    assert [len(token.top_logprobs) for token in response.logprobs] == [2] * 4
    parts = chat(logprobs=True, stream=True, options={"num_predict": 4})
    assert len([token for part in parts for token in part.logprobs or ()]) == 4


def get_weather(city: str) -> str:
    """Tells the weather of a city.

    Args:
        city: Name of the city.
    """
    return f"{city}: sun"


def weather_talk() -> list[Any]:
    """A conversation in which the model has called a tool three times, so that it does so again."""
    said: list[Any] = []
    for city in ("Paris", "Madrid", "Bern"):
        call = {"function": {"name": "get_weather", "arguments": {"city": city}}}
        said += [
            {"role": "user", "content": f"What is the weather in {city}?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_name": "get_weather", "content": get_weather(city)},
            {"role": "assistant", "content": f"There is sun in {city}."},
        ]
    return [*said, {"role": "user", "content": "What is the weather in Rome?"}]


@BOTH
def test_python_functions_are_called(stream: bool) -> None:
    messages = weather_talk()
    answer = chat(messages=messages, tools=[get_weather], stream=stream, options={"num_predict": 60})
    parts = list(answer) if stream else [answer]
    [call] = [call for part in parts for call in part.message.tool_calls or ()]
    assert (call.function.name, parts[-1].done_reason) == ("get_weather", "stop")
    result = get_weather(**call.function.arguments)
    said = ollama.Message(role="assistant", content="", tool_calls=[call])
    messages += [said, {"role": "tool", "tool_name": call.function.name, "content": result}]
    assert chat(messages=messages, tools=[get_weather], options={"num_predict": 20}).message.content


def test_tools_are_taken_as_objects() -> None:
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": ["integer", "null"]}}}}
    for tool in ({"type": "function", "function": function}, ollama.Tool(function=ollama.Tool.Function(name="g"))):
        assert chat(tools=[tool], options={"num_predict": 4}).done


@BOTH
def test_reasoning_is_apart_from_the_answer(stream: bool) -> None:
    more: dict[str, Any] = {"format": {"enum": ["yes", "no"]}, "stream": stream, "options": {"num_predict": 24}}
    for think, expected in ((True, True), ("low", True), (False, False)):
        answer = chat(THINKER, model="thinker", think=think, **more)
        parts = list(answer) if stream else [answer]
        assert json.loads("".join(part.message.content for part in parts)) in ("yes", "no")
        assert bool("".join(part.message.thinking or "" for part in parts)) == expected


def test_reasoning_is_sent_back_and_of_texts_and_described() -> None:
    response = chat(THINKER, model="thinker", think=True, options={"num_predict": 16})
    messages = [*MESSAGES, response.message, {"role": "user", "content": "Go on."}]
    again = chat(THINKER, model="thinker", messages=messages, think=False, options={"num_predict": 4})
    assert again.message.thinking is None
    assert THINKER.generate("thinker", PROMPT, think="low", options={"num_predict": 12}).thinking
    assert "thinking" in THINKER.show("thinker").capabilities


def test_nothing_to_answer_loads_the_model() -> None:
    for response in (CLIENT.chat(MODEL), *CLIENT.chat(MODEL, stream=True), CLIENT.generate(MODEL, keep_alive=-1)):
        assert (response.done, response.done_reason) == (True, "load")


def test_vectors_of_every_form() -> None:
    response = CLIENT.embed(MODEL, ["Hello", "The sun is shining."])
    [first, _] = response.embeddings
    assert response.prompt_eval_count > 2
    assert math.hypot(*first) == pytest.approx(1)
    assert CLIENT.embed(MODEL, "Hello", truncate=True, options={"num_ctx": 64}).embeddings == [first]
    assert list(CLIENT.embeddings(MODEL, "Hello").embedding) == first
    assert CLIENT.embed(MODEL, []).embeddings == []


def test_models_are_listed_described_and_pulled() -> None:
    [listed] = CLIENT.list().models
    assert (listed.model, listed.details.format) == (f"{MODEL}:latest", "gguf")
    assert listed.size > 10_000_000
    assert listed.modified_at.tzinfo is not None
    shown = CLIENT.show(listed.model)
    assert shown.details == listed.details
    assert shown.modelinfo["general.architecture"] == "llama"
    assert "completion" in shown.capabilities
    assert "<|im_start|>" in shown.template
    [running] = CLIENT.ps().models
    assert (running.model, running.digest, running.context_length) == (listed.model, listed.digest, 4096)
    assert CLIENT.pull(MODEL).status == "success"
    assert [part.status for part in CLIENT.pull(f"{MODEL}:latest", stream=True)] == ["success"]


def refusal(ask: Any, status: int) -> str:
    with pytest.raises(ollama.ResponseError) as caught:
        ask()
    assert caught.value.status_code == status
    return caught.value.error


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"messages": [{"role": "user", "content": "x", "images": [b"png"]}]}, 400, "images"),
    ({"format": {"type": "integer", "minimum": 3, "maximum": 2}}, 400, "minimum"),
    ({"options": {"mirostat": 3}}, 400, "options.mirostat"),
    ({"think": True}, 400, "does not support thinking"),
    ({"messages": [{"role": "user", "content": "word " * 20_000}]}, 400, "context"),
    ({"messages": [{"role": "robot", "content": "x"}]}, 400, "messages[0]"),
]


@BOTH
@pytest.mark.parametrize(("more", "status", "says"), REFUSED)
def test_errors_say_what_is_wrong(more: dict[str, Any], status: int, says: str, stream: bool) -> None:
    assert says in refusal(lambda: list(chat(**more, stream=stream)), status)


def test_what_cannot_be_done_is_refused() -> None:
    for more in ({"suffix": "end"}, {"template": "{{ .Prompt }}"}, {"context": [1, 2]}, {"images": [b"png"]}):
        assert next(iter(more)) in refusal(lambda more=more: CLIENT.generate(MODEL, PROMPT, **more), 400)
    response = RAW.post("/api/generate", content="{}", headers={"Content-Type": "text/plain"})
    assert response.status_code == 415
    assert "--json" in response.json()["error"]
    assert RAW.head("/").status_code == 200


def test_the_functions_of_the_package_find_the_server() -> None:
    assert os.environ["OLLAMA_HOST"]
    assert ollama.generate(MODEL, PROMPT, options={"num_predict": 2}).eval_count == 2
