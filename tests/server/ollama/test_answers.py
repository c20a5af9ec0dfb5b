"""Answers of a real model for Ollama's clients: everything asked for is enforced, and said in Ollama's shapes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import ask, served_as
from tests.support.server.ollama import ALWAYS_THINKING, THINKING, answer_of, chat, error_of, lines_of, post

pytestmark = pytest.mark.slow


BOOK = {
    "type": "object",
    "properties": {"title": {"type": "string", "maxLength": 20}, "year": {"type": "integer", "maximum": 2100}},
    "required": ["title", "year"],
}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Rome", "Zürich"]}, "days": {"type": "integer", "maximum": 9}},
            "required": ["city", "days"],
        },
    },
}
NUMBERS = {
    *("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"),
}
LAST = {"model", "created_at", "done", "done_reason", *NUMBERS}


def require_numbers(answer: dict[str, Any]) -> None:
    assert all(isinstance(answer[name], int) and answer[name] >= 0 for name in NUMBERS)
    assert answer["total_duration"] >= answer["prompt_eval_duration"] + answer["eval_duration"]
    assert answer["total_duration"] < 240 * 10**9


def test_an_answer_has_all_that_clients_read(application: Application) -> None:
    answer = answer_of(chat(application))
    assert set(answer) == {*LAST, "message"}
    assert (answer["model"], answer["done"], answer["done_reason"]) == ("small", True, "length")
    assert answer["message"].keys() == {"role", "content"}
    assert answer["eval_count"] == 8
    require_numbers(answer)


def test_a_stream_has_the_same_answer(application: Application) -> None:
    answer = answer_of(chat(application))
    *pieces, last = lines_of(chat(application, stream=True))
    assert "".join(piece["message"]["content"] for piece in pieces) == answer["message"]["content"]
    assert all(piece.keys() == {"model", "created_at", "message", "done"} for piece in pieces)
    assert last.keys() == answer.keys()
    assert last["message"] == {"role": "assistant", "content": ""}
    assert (last["done_reason"], last["eval_count"]) == (answer["done_reason"], answer["eval_count"])
    require_numbers(last)


@pytest.mark.parametrize("stream", [False, True])
def test_a_format_is_enforced(application: Application, stream: bool) -> None:
    response = chat(application, format=BOOK, stream=stream, options={"num_predict": 60, "temperature": 2.5, "seed": 3})
    answers = lines_of(response) if stream else [answer_of(response)]
    jsonschema.validate(json.loads("".join(each["message"]["content"] for each in answers)), BOOK)
    assert answers[-1]["done_reason"] == "stop"


def test_too_few_tokens_are_refused_by_the_name_of_the_option(application: Application) -> None:
    response = chat(application, format={"const": {"word": "constraint"}}, options={"num_predict": 2})
    assert response.status_code == 400
    assert "'options.num_predict'" in error_of(response)
    assert "are enough" in error_of(response)


@pytest.mark.parametrize("stream", [False, True])
def test_calls_have_arguments_as_objects(application: Application, stream: bool) -> None:
    response = chat(
        application, tools=[WEATHER], tool_choice="required", stream=stream, options={"num_predict": 90, "seed": 1}
    )
    answers = lines_of(response) if stream else [answer_of(response)]
    calls = [call for each in answers for call in each["message"].get("tool_calls", ())]
    assert calls
    for index, call in enumerate(calls):
        assert call.keys() == {"id", "function"}
        assert (call["function"]["index"], call["function"]["name"]) == (index, "get_weather")
        jsonschema.validate(call["function"]["arguments"], WEATHER["function"]["parameters"])  # type: ignore[index]
    assert answers[-1]["done_reason"] == "stop"


def test_generate_answers_a_prompt_and_continues_a_raw_one(application: Application) -> None:
    options = {"num_predict": 3, "temperature": 0}
    answer = answer_of(post(application, "generate", prompt="Say hello.", stream=False, options=options))
    assert set(answer) == {*LAST, "response"}
    assert answer["response"] == answer_of(chat(application, options=options))["message"]["content"]
    with_system = post(application, "generate", prompt="Say hello.", system="a " * 50, stream=False, options=options)
    assert answer_of(with_system)["prompt_eval_count"] > answer["prompt_eval_count"] + 20
    raw = answer_of(post(application, "generate", prompt="One, two,", raw=True, stream=False, options=options))
    assert raw["prompt_eval_count"] == 4
    *pieces, last = lines_of(post(application, "generate", prompt="One, two,", raw=True, options=options))
    assert "".join(piece["response"] for piece in pieces) == raw["response"]
    assert last["response"] == ""


def test_log_probabilities_come_with_every_token(application: Application) -> None:
    answers = lines_of(chat(application, logprobs=True, top_logprobs=2, stream=True, options={"num_predict": 4}))
    tokens = [token for each in answers for token in each.get("logprobs", ())]
    assert "".join(token["token"] for token in tokens) == "".join(each["message"]["content"] for each in answers)
    assert len(tokens) == 4
    assert all(token["logprob"] <= 0 and len(token["top_logprobs"]) == 2 for token in tokens)


def test_unknown_options_are_warned_of(application: Application) -> None:
    answer = answer_of(chat(application, options={"yarn": 1e6}))
    assert answer["constrain"]["warnings"] == ["'options.yarn' is no option; it has no effect."]


def test_a_model_that_cannot_reason_is_not_asked_to(application: Application) -> None:
    for think in (True, "low"):
        response = chat(application, think=think)
        assert response.status_code == 400
        assert error_of(response) == "'small' does not support thinking; leave 'think' out."
    assert answer_of(chat(application, think=False))["done"]


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_is_apart_from_the_answer(thinker: Application, stream: bool) -> None:
    fields: dict[str, Any] = {"model": "thinker", "stream": stream, "format": {"enum": ["yes", "no"]}}
    response = chat(thinker, **fields, think=True, options={"num_predict": 24})
    answers = lines_of(response) if stream else [answer_of(response)]
    assert json.loads("".join(each["message"]["content"] for each in answers)) in ("yes", "no")
    assert "".join(each["message"].get("thinking", "") for each in answers)
    response = chat(thinker, **fields, think=False, options={"num_predict": 24})
    for each in lines_of(response) if stream else [answer_of(response)]:
        assert "thinking" not in each["message"]


def test_a_model_that_always_reasons_is_not_asked_to_stop(always_thinker: Application) -> None:
    response = chat(always_thinker, model="always", think=False)
    assert response.status_code == 400
    assert error_of(response) == "'always' thinks before every answer; leave 'think' out."
    assert answer_of(chat(always_thinker, model="always", think=True))["message"]["thinking"]


def test_an_error_in_a_stream_is_its_last_line(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> Any:
        raise RuntimeError("broken")
        yield

    monkeypatch.setattr("constrain.server.serving.generation.Answers.events", fail)
    response = chat(application, stream=True)
    assert response.status_code == 200
    assert json.loads(response.text) == {"error": "The server had an error while processing your request."}
    assert response.text.endswith("}\n")


def test_the_form_of_errors_is_that_of_the_path(application: Application) -> None:
    for method, path, status in (
        ("GET", "/api/nothing", 404),
        ("GET", "/api/chat", 405),
        ("POST", "/api/tags", 405),
        ("POST", "/api/", 404),
    ):
        response = ask(application, method, path)
        assert response.status_code == status
        assert path in error_of(response)
    assert set(ask(application, "GET", "/apinothing").json()["error"]) == {"message", "type", "param", "code"}


# Models that reason.


@pytest.fixture(scope="module")
def thinker(model_file: Path) -> Iterator[Application]:
    """A model whose template turns reasoning on and off."""
    with constrain.Model(model_file, n_ctx=512, n_threads=1, parallel=1, chat_template=THINKING) as model:
        yield Application(served_as(model, "thinker"), Settings())


@pytest.fixture(scope="module")
def always_thinker(model_file: Path) -> Iterator[Application]:
    """A model whose template begins every answer with reasoning."""
    with constrain.Model(model_file, n_ctx=512, n_threads=1, parallel=1, chat_template=ALWAYS_THINKING) as model:
        yield Application(served_as(model, "always"), Settings())
