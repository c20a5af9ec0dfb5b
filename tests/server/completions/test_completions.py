"""Completions of texts: prompts are gone on with as they are, and formats are kept."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import jsonschema
import pytest
from openai.types import Completion, CompletionChoice

import constrain
from constrain.llama.decoding.token_logprob import TokenLogprob
from constrain.server.app import Application
from constrain.server.completions.request import CompletionBody, CompletionRequest
from constrain.server.completions.response import TextLogprobs
from constrain.server.logs import JsonLines
from constrain.server.settings import Settings
from tests.server.chat.test_chat import BOOK, BOOK_FORMAT
from tests.support import for_each
from tests.support.server.asking import ask, chunks_of, error_of


def complete(application: Application, **fields: Any) -> httpx.Response:
    body = {"model": "small", "prompt": "One, two, three,", "temperature": 0, "max_tokens": 4, **fields}
    return ask(application, "POST", "/v1/completions", json=body)


def completion_of(response: httpx.Response) -> Completion:
    assert response.status_code == 200, response.text
    return Completion.model_validate_json(response.text)


def text_of(response: httpx.Response) -> str:
    (choice,) = completion_of(response).choices
    return choice.text


def test_a_text_is_gone_on_with(application: Application) -> None:
    body = complete(application).json()
    assert set(body) == {"id", "object", "created", "model", "choices", "usage"}
    assert body["object"] == "text_completion"
    assert body["id"].startswith("cmpl-")
    (choice,) = body["choices"]
    assert set(choice) == {"index", "text", "finish_reason", "logprobs"}
    assert choice["text"]
    assert (choice["index"], choice["finish_reason"], choice["logprobs"]) == (0, "length", None)
    assert body["usage"]["completion_tokens"] == 4


def test_tokens_stand_for_their_text(application: Application, model: constrain.Model) -> None:
    text = "One, two, three,"
    tokens = model.text_tokens(text)
    by_tokens, by_text = complete(application, prompt=tokens).json(), complete(application, prompt=text).json()
    assert by_tokens["choices"] == by_text["choices"]
    assert by_tokens["usage"]["prompt_tokens"] == by_text["usage"]["prompt_tokens"] == len(tokens)


def test_an_unknown_token_is_refused(application: Application) -> None:
    error = error_of(complete(application, prompt=[1, 999999]))
    assert (error["param"], error["code"]) == ("prompt", "invalid_value")
    assert "999999" in error["message"]


@pytest.mark.slow
def test_answers_to_several_prompts_follow_each_other(application: Application, unending: dict[str, int]) -> None:
    prompts = ["One, two, three,", "Monday, Tuesday,"]
    asked = {"prompt": prompts, "n": 2, "temperature": 1, "seed": 3, "max_tokens": 6, "logit_bias": unending}
    completion = completion_of(complete(application, **asked))
    assert [choice.index for choice in completion.choices] == [0, 1, 2, 3]
    alone = [completion_of(complete(application, **{**asked, "prompt": prompt})) for prompt in prompts]
    assert completion.usage is not None
    assert completion.usage.prompt_tokens == sum(one.usage.prompt_tokens for one in alone if one.usage)
    assert completion.usage.completion_tokens == 24
    streamed = chunks_of(complete(application, **asked, stream=True))
    for index, choice in enumerate(completion.choices):
        texts = [chunk["choices"][0]["text"] for chunk in streamed if chunk["choices"][0]["index"] == index]
        assert "".join(texts) == choice.text


@pytest.mark.parametrize("stream", [False, True])
def test_each_prompt_is_logged_once(
    application: Application, caplog: pytest.LogCaptureFixture, *, stream: bool
) -> None:
    asked = {"prompt": ["One, two,", "Monday,"], "n": 2, "max_tokens": 1}
    usage = completion_of(complete(application, **asked)).usage
    caplog.clear()
    with caplog.at_level(logging.INFO, "constrain.server"):
        complete(application, **asked, stream=stream)
    (logged,) = [one for one in caplog.records if one.name == "constrain.server.requests"]
    facts = json.loads(JsonLines().format(logged))
    assert usage is not None
    assert (facts["prompt_tokens"], facts["completion_tokens"]) == (usage.prompt_tokens, 4)


@pytest.mark.slow
def test_the_best_answers_are_those_that_the_model_finds_likeliest(application: Application) -> None:
    asked = {"prompt": ["One, two,", "Monday,"], "temperature": 1.5, "seed": 3, "max_tokens": 4, "logprobs": 0}
    complete(application, **asked)  # now the prompts are known for both
    every = completion_of(complete(application, **asked, n=3)).choices
    best = completion_of(complete(application, **asked, n=1, best_of=3))

    def likeliness(choice: CompletionChoice) -> float:
        assert choice.logprobs
        assert choice.logprobs.token_logprobs
        return sum(choice.logprobs.token_logprobs) / len(choice.logprobs.token_logprobs)

    likeliest = [max(group, key=likeliness) for group in (every[:3], every[3:])]
    assert [choice.text for choice in best.choices] == [choice.text for choice in likeliest]
    assert [choice.index for choice in best.choices] == [0, 1]
    assert best.usage is not None
    assert best.usage.completion_tokens == 24


def test_an_echo_is_the_prompt_in_front_of_the_answer(application: Application, model: constrain.Model) -> None:
    text = "Eins, zwei, drü,"
    whole = text + text_of(complete(application, prompt=text))
    assert text_of(complete(application, prompt=text, echo=True)) == whole
    assert text_of(complete(application, prompt=model.text_tokens(text), echo=True)) == whole
    streamed = chunks_of(complete(application, prompt=text, echo=True, stream=True))
    assert "".join(chunk["choices"][0]["text"] for chunk in streamed) == whole


def test_no_token_at_all_may_be_asked_for(application: Application) -> None:
    (choice,) = completion_of(complete(application, max_tokens=0, echo=True)).choices
    assert (choice.text, choice.finish_reason) == ("One, two, three,", "length")


def test_a_stop_text_is_no_part_of_the_answer(application: Application) -> None:
    whole = text_of(complete(application))
    (choice,) = completion_of(complete(application, stop=whole[2:5])).choices
    assert (choice.text, choice.finish_reason) == (whole[: whole.index(whole[2:5])], "stop")


def test_a_stream_is_the_answer_in_pieces(application: Application) -> None:
    whole = text_of(complete(application))
    asked = {"stream": True, "stream_options": {"include_usage": True}}
    *chunks, last = chunks_of(complete(application, **asked))
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}
    assert len({chunk["id"] for chunk in [*chunks, last]}) == 1
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == whole
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]
    assert all(chunk["usage"] is None for chunk in chunks)
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 4


@pytest.mark.slow
def test_a_format_is_kept(application: Application) -> None:
    asked = {"prompt": "A book, as JSON:", "response_format": BOOK_FORMAT, "max_tokens": None}
    (choice,) = completion_of(complete(application, **asked)).choices
    jsonschema.validate(json.loads(choice.text), {**BOOK, "additionalProperties": False})
    assert choice.finish_reason == "stop"
    error = error_of(complete(application, **{**asked, "max_tokens": 2}))
    assert (error["param"], error["code"]) == ("max_tokens", "integer_below_min_value")


def test_log_probabilities_run_beside_the_text(application: Application) -> None:
    body = complete(application, logprobs=2).json()
    (choice,) = body["choices"]
    told = choice["logprobs"]
    keys = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    assert set(told) == set(keys)
    assert "".join(told["tokens"]) == choice["text"]
    assert len(told["tokens"]) == body["usage"]["completion_tokens"]
    for token, logprob, top, offset in zip(*(told[key] for key in keys), strict=True):
        assert max(top.values()) == top[token] == logprob <= 0  # the most likely token was taken
        assert len(top) == 2
        assert choice["text"].startswith(token, offset)
    chunks = chunks_of(complete(application, logprobs=2, stream=True))
    pieces = [chunk["choices"][0]["logprobs"] for chunk in chunks[:-1]]
    assert {key: [each for piece in pieces for each in piece[key]] for key in keys} == told


def test_a_token_begins_in_a_character_that_may_be_unfinished() -> None:
    tokens = [TokenLogprob(0, "a", b"a", -1.0), TokenLogprob(1, "\\xc3", b"\xc3", -2.0)]
    tokens += [TokenLogprob(2, "\\xa4", b"\xa4", -3.0), TokenLogprob(3, "b", b"b", float("-inf"))]
    told = TextLogprobs().write(tokens)
    assert told["text_offset"] == [0, 1, 1, 2]
    assert told["token_logprobs"] == [-1.0, -2.0, -3.0, -9999.0]
    assert told["top_logprobs"] == [{"a": -1.0}, {"\\xc3": -2.0}, {"\\xa4": -3.0}, {"b": -9999.0}]


def test_a_prompt_that_overflows_the_context_is_refused(application: Application) -> None:
    error = error_of(complete(application, prompt=["a", "word " * 2000]))
    assert (error["code"], error["param"]) == ("context_length_exceeded", "prompt")


# What requests ask for.


def read(fields: dict[str, Any]) -> CompletionRequest:
    return CompletionBody.ask({"model": "small", "prompt": "Hello", **fields}, Settings())


@for_each(
    "prompt, read_as", [("a", ("a",)), (["a", "b"], ("a", "b")), ([1, 2], ((1, 2),)), ([[1, 2], [3]], ((1, 2), (3,)))]
)
def test_a_prompt_is_texts_or_tokens(prompt: object, read_as: tuple[Any, ...]) -> None:
    assert tuple(each.prompt for each in read({"prompt": prompt}).questions) == read_as


def test_a_text_is_short_unless_asked_for_more() -> None:
    assert read({}).question.options["max_tokens"] == 16
    assert read({"max_tokens": 0}).question.options["max_tokens"] == 0


def test_a_format_is_not_cut_where_nobody_asked_for_that() -> None:
    assert "max_tokens" not in read({"response_format": {"type": "json_object"}}).question.options
