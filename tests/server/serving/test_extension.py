"""What answers have beyond the APIs: warnings, limits, confidence, quotes, drafts as reasoning, and votes."""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import replace
from typing import Any

import httpx
import jsonschema
import pytest

import constrain
from constrain.generation.completion import Completion, Finished, Timings, Usage, limits_object
from constrain.server.app import Application
from constrain.server.chat.request import ChatBody
from constrain.server.chat.stream import ChunkWriter
from constrain.server.completions.request import CompletionBody
from constrain.server.completions.response import CompletionWriter
from constrain.server.http.account import Account
from constrain.server.logs import JsonLines, log_request
from constrain.server.serving.ended import count_usage
from constrain.server.serving.extension import MAX_WARNINGS, log_warnings
from constrain.server.settings import Settings
from tests.support.server.asking import ask, chat, chunks_of, error_of, served_as
from tests.support.server.response_answers import completion

pytestmark = pytest.mark.slow


WARNED = {"type": "object", "properties": {"a": {"enum": [1], "format": "shoe-size"}}, "required": ["a"], "x-mine": 1}
LONG = {"type": "array", "items": {"type": "string", "minLength": 8}, "minItems": 1}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": WARNED}}
LONG_FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": LONG}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": WARNED}}
LONG_TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"properties": {"a": LONG}, "required": ["a"]}},
}


def flat(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of chat completions as those of responses."""
    found = dict(fields)
    if form := found.pop("response_format", None):
        found["text"] = {"format": {"type": "json_schema", **form["json_schema"]}}
    if "max_tokens" in found:
        found["max_output_tokens"] = found.pop("max_tokens")
    if "tools" in found:
        found["tools"] = [{"type": "function", **tool["function"]} for tool in found["tools"]]
    return found


def respond(application: Application, **fields: Any) -> httpx.Response:
    body = {"model": "small", "input": "Say hello.", "temperature": 0, **flat(fields)}
    return ask(application, "POST", "/v1/responses", json=body)


def complete(application: Application, **fields: Any) -> httpx.Response:
    body = {"model": "small", "prompt": "Say hello.", "temperature": 0, **fields}
    return ask(application, "POST", "/v1/completions", json=body)


def extensions(application: Application, **fields: Any) -> list[dict[str, Any] | None]:
    """The member of the answers of both endpoints, whole and streamed."""
    whole = chat(application, **fields).json()["choices"][0]
    *others, last = [chunk["choices"][0] for chunk in chunks_of(chat(application, stream=True, **fields))]
    assert last["finish_reason"] == whole["finish_reason"]
    assert not any("constrain" in one for one in others)
    response = respond(application, **fields).json()
    stored = ask(application, "GET", f"/v1/responses/{response['id']}").json()
    assert stored == response
    *_, event, end = respond(application, stream=True, **fields).text.split("\n\n")
    assert end == ""
    streamed = json.loads(event.partition("data: ")[2])
    assert streamed["type"] == f"response.{response['status']}"
    return [one.get("constrain") for one in (whole, last, response, streamed["response"])]


@pytest.mark.parametrize("fields", [{"response_format": FORMAT}, {"tools": [TOOL], "tool_choice": "required"}])
def test_warnings_of_a_constraint_are_told_and_logged(
    application: Application, caplog: pytest.LogCaptureFixture, fields: dict[str, Any]
) -> None:
    with caplog.at_level(logging.WARNING, "constrain.server"):
        told = extensions(application, max_tokens=60, parallel_tool_calls=False, **fields)
    for one in told:
        assert one is not None
        assert any("shoe-size" in warning for warning in one["warnings"])
        assert any("x-mine" in warning for warning in one["warnings"])
    lines = [json.loads(JsonLines().format(one)) for one in caplog.records if one.name == "constrain.server"]
    assert [line["event"] for line in lines] == ["constraint_warnings"] * 4
    assert "shoe-size" in lines[0]["message"]
    assert told[0] is not None
    assert lines[0]["warnings"] == told[0]["warnings"]


@pytest.mark.parametrize(
    "fields", [{"response_format": LONG_FORMAT}, {"tools": [LONG_TOOL], "tool_choice": "required"}]
)
def test_json_that_the_limit_has_closed_says_so(
    application: Application, unending: dict[str, int], fields: dict[str, Any]
) -> None:
    asked = {**fields, "max_tokens": 40, "parallel_tool_calls": False, "logit_bias": unending}
    for one in extensions(application, **asked):
        assert one is not None
        assert one["ended_early"] == "length"


def test_completions_have_it_too(application: Application, unending: dict[str, int]) -> None:
    fields = {"response_format": LONG_FORMAT, "max_tokens": 8, "logit_bias": unending}
    assert complete(application, **fields).json()["choices"][0]["constrain"]["ended_early"] == "length"
    last = chunks_of(complete(application, stream=True, **fields))[-1]["choices"][0]
    assert (last["finish_reason"], last["constrain"]["ended_early"]) == ("stop", "length")


def test_where_the_api_says_it_nothing_is_added(application: Application) -> None:
    assert extensions(application, max_tokens=2) == [None] * 4
    assert chat(application, max_tokens=2).json()["choices"][0]["finish_reason"] == "length"
    plain = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["yes"]}}}
    assert extensions(application, response_format=plain) == [None] * 4


def test_an_answer_that_time_has_ended_says_so() -> None:
    from constrain.server.serving.extension import extension

    timed_out = completion("text", "text", finish_reason="timeout")
    assert extension(timed_out, is_cut=True) == {"constrain": {"ended_early": "timeout"}}
    assert extension(completion("text", "text", finish_reason="length"), is_cut=True) == {}


def test_warnings_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "constrain.server"):
        log_warnings(["x" * 10_000] * 50)
    [record] = caplog.records
    assert len(record.getMessage()) < 10_000
    assert record.getMessage().endswith(f"and {50 - MAX_WARNINGS} more")


# Limits.


WHOLE = Completion("a", "a", (1,), Usage(3, 0, 1), Timings(0, 0, 0, 0), "stop", None)
LIMITED = replace(WHOLE, limited_masks=2, limits_met=("MAX_MASK_WORK",))
TOLD = {"masks": 2, "limits": ["MAX_MASK_WORK"]}


def writers() -> list[Any]:
    served: Any = None  # no prompt is repeated
    asked = {"model": "m", "n": 2, "messages": [{"role": "user", "content": "a"}]}
    return [
        ChunkWriter(ChatBody.ask(asked, Settings())),
        CompletionWriter(CompletionBody.ask({"model": "m", "n": 2, "prompt": "a"}, Settings()), served),
    ]


@pytest.mark.parametrize("which", [0, 1], ids=["chat", "completions"])
def test_each_answer_tells_its_own_limits(which: int) -> None:
    choices = writers()[which].response([LIMITED, WHOLE])["choices"]
    assert choices[0]["constrain"]["limited"] == TOLD
    assert "constrain" not in choices[1]


@pytest.mark.parametrize("which", [0, 1], ids=["chat", "completions"])
def test_the_last_chunk_of_an_answer_tells_them(which: int) -> None:
    writer = writers()[which]
    assert '"limited":' in "".join(writer.write(0, Finished(LIMITED))).replace(" ", "")
    assert '"limited":' not in "".join(writer.write(1, Finished(WHOLE))).replace(" ", "")


def test_an_answer_that_met_none_tells_nothing() -> None:
    assert limits_object(WHOLE) == {}


def test_an_answer_without_its_captures_tells_the_limit() -> None:
    assert limits_object(replace(WHOLE, limits_met=("MAX_CAPTURE_WORK",))) == {
        "limited": {"masks": 0, "limits": ["MAX_CAPTURE_WORK"]}
    }


def test_the_log_tells_them(caplog: pytest.LogCaptureFixture) -> None:
    account = Account(until=0)
    account.add(LIMITED, is_first=True)
    account.add(replace(LIMITED, limits_met=("MAX_CALL_WORK",)), is_first=False)
    with caplog.at_level("INFO", logger="constrain.server.requests"):
        log_request(account, {"method": "POST", "path": "/v1/chat/completions"})
    assert "4 masks limited by MAX_MASK_WORK and MAX_CALL_WORK" in caplog.text
    (record,) = caplog.records
    assert (record.limited_masks, record.limits_met) == (4, ["MAX_MASK_WORK", "MAX_CALL_WORK"])  # type: ignore[attr-defined]


# Confidence.


ADA = [{"role": "user", "content": "Ada is 36 and happy."}]
MOODY = {
    "type": "object",
    "properties": {"age": {"type": "integer"}, "mood": {"enum": ["happy", "sad"]}},
    "required": ["age", "mood"],
    "additionalProperties": False,
}
MOOD = {"type": "json_schema", "json_schema": {"name": "it", "schema": MOODY, "strict": True}}


def check(fields: dict[str, Any], text: str) -> None:
    value = json.loads(text)
    assert list(fields) == ["", "/age", "/mood"]
    for pointer, field in fields.items():
        part = value[pointer[1:]] if pointer else value
        assert json.loads(text[field["begin"] : field["end"]]) == part
        assert 0 <= field["mass"] <= 1
        assert 0 <= field["probability"] <= 1
        assert field["logprob"] <= 0
    assert {each["value"] for each in fields["/mood"]["alternatives"]} <= {"happy", "sad"}


def test_choices_have_the_probabilities_of_their_parts(application: Application) -> None:
    answer = chat(application, messages=ADA, response_format=MOOD, confidence=True, n=2, max_tokens=40).json()
    for choice in answer["choices"]:
        check(choice["constrain"]["fields"], choice["message"]["content"])


def test_responses_have_them_too(application: Application) -> None:
    text = {"format": {"type": "json_schema", "name": "it", "schema": MOODY, "strict": True}}
    body = {"model": "small", "input": "Ada is 36 and happy.", "text": text, "confidence": True, "temperature": 0}
    answer = ask(application, "POST", "/v1/responses", json=body).json()
    check(answer["constrain"]["fields"], answer["output"][0]["content"][0]["text"])


def test_a_wrong_value_is_refused(application: Application) -> None:
    assert error_of(chat(application, messages=ADA, confidence="yes"))["param"] == "confidence"


# Quotes.


PROMPT = "Ada Lovelace was born in London."
SAID = [{"role": "user", "content": PROMPT}]
SOURCES = {"notes": ["First note.", "Second note."]}


def asked_for(quote: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"quote": {"type": "string", "x-quote": quote}},
        "required": ["quote"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "it", "schema": schema, "strict": True}}


def test_quotes_of_given_sources(application: Application) -> None:
    wanted = asked_for({"source": "notes", "min_length": 6})
    (choice,) = chat(application, messages=SAID, response_format=wanted, sources=SOURCES, seed=1).json()["choices"]
    quote = json.loads(choice["message"]["content"])["quote"]
    (place,) = choice["constrain"]["quotes"]
    assert SOURCES["notes"][place["text"]][place["start"] : place["end"]] == quote


def test_a_source_that_is_not_there_is_named(application: Application) -> None:
    error = error_of(chat(application, messages=SAID, response_format=asked_for("notes")))
    assert "there is no source 'notes'" in error["message"]


@pytest.mark.parametrize(
    ("sources", "param"), [([], "sources"), ({"a": 1}, "sources.a"), ({"a": ["", 1]}, "sources.a[1]")]
)
def test_malformed_sources_are_refused(application: Application, sources: Any, param: str) -> None:
    error = error_of(chat(application, messages=SAID, response_format=asked_for("a"), sources=sources))
    assert error["param"] == param


def test_sources_without_a_schema_are_refused(application: Application) -> None:
    for format_ in ({}, {"guided_regex": "[ab]"}):
        error = error_of(chat(application, messages=SAID, sources=SOURCES, **format_))
        assert (error["param"], error["code"]) == ("sources", "invalid_value")


PARAMETERS = {
    "type": "object",
    "properties": {"a/b": {"type": "string", "x-quote": {"min_length": 3}}},
    "required": ["a/b"],
    "additionalProperties": False,
}


def test_quotes_of_arguments_in_a_chat(application: Application) -> None:
    function = {"name": "look_up", "parameters": PARAMETERS, "strict": True}
    tools = [{"type": "function", "function": function}]
    answer = chat(application, messages=SAID, tools=tools, tool_choice="required", seed=1, max_tokens=80).json()
    (choice,) = answer["choices"]
    calls = choice["message"]["tool_calls"]
    places = choice["constrain"]["quotes"]
    assert [place["path"] for place in places] == [f"/calls/{number}/arguments/a~1b" for number in range(len(calls))]
    for place, call in zip(places, calls, strict=True):
        assert PROMPT[place["start"] : place["end"]] == json.loads(call["function"]["arguments"])["a/b"]


# Drafts.


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 120}},
    "required": ["name", "age"],
}
PERSON_FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
GREET = {"name": "greet", "parameters": {"type": "object", "properties": {"loud": {"type": "boolean"}}}}
QUESTION = "Ada is 36 years old. Who is she?"
MESSAGES: Any = [{"role": "user", "content": QUESTION}]
BUDGET = 80


def check_usage(usage: dict[str, Any], details: str, name: str, most: int = BUDGET) -> None:
    drafted = usage[details]["reasoning_tokens"]
    assert 0 < drafted < usage[name] <= most


def test_a_chat_completion_has_the_draft_as_reasoning_in_front(application: Application) -> None:
    asked: dict[str, Any] = {"messages": MESSAGES, "response_format": PERSON_FORMAT, "draft": 16, "max_tokens": BUDGET}
    chunks = chunks_of(chat(application, **asked, stream=True, stream_options={"include_usage": True}))
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    thoughts = [index for index, delta in enumerate(deltas) if delta.get("reasoning_content")]
    content = [index for index, delta in enumerate(deltas) if delta.get("content")]
    assert thoughts[-1] < content[0]
    body = chat(application, **asked).json()
    whole = body["choices"][0]["message"]
    jsonschema.validate(json.loads(whole["content"]), PERSON)
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 16
    assert "".join(deltas[index]["reasoning_content"] for index in thoughts) == whole["reasoning_content"]
    assert "".join(deltas[index]["content"] for index in content) == whole["content"]
    check_usage(chunks[-1]["usage"], "completion_tokens_details", "completion_tokens")


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_calls_follow_a_draft(choice: Any, application: Application) -> None:
    tools = [{"type": "function", "function": GREET}]
    body = chat(application, tools=tools, tool_choice=choice, draft=8, max_tokens=BUDGET, n=2).json()
    for each in body["choices"]:
        assert each["message"]["reasoning_content"]
        if choice != "auto":
            assert each["message"]["tool_calls"][0]["function"]["name"] == "greet"
    check_usage(body["usage"], "completion_tokens_details", "completion_tokens", 2 * BUDGET)


def test_a_response_has_the_draft_as_an_item_of_its_own(application: Application) -> None:
    body = respond(application, response_format=PERSON_FORMAT, draft=16, max_tokens=BUDGET).json()
    reasoning, message = body["output"]
    assert (reasoning["type"], reasoning["status"]) == ("reasoning", "completed")
    assert reasoning["content"][0]["text"]
    jsonschema.validate(json.loads(message["content"][0]["text"]), PERSON)
    assert body["status"] == "completed"
    check_usage(body["usage"], "output_tokens_details", "output_tokens")
    assert body["usage"]["output_tokens_details"]["reasoning_tokens"] <= 16


ERRORS: dict[str, tuple[dict[str, Any], str, str]] = {
    "another type": ({"response_format": PERSON_FORMAT, "draft": "yes"}, "draft", "invalid_type"),
    "none": ({"response_format": PERSON_FORMAT, "draft": 0}, "draft", "integer_below_min_value"),
    "all": ({"response_format": PERSON_FORMAT, "draft": 30, "max_tokens": 30}, "draft", "invalid_value"),
    "too much": (
        {"response_format": PERSON_FORMAT, "draft": 30, "max_tokens": 32},
        "max_tokens",
        "integer_below_min_value",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_field(case: str, application: Application) -> None:
    fields, param, code = ERRORS[case]
    error = error_of(chat(application, messages=MESSAGES, **{"draft": True, **fields}))
    assert (error["param"], error["code"]) == (param, code)
    if param == "max_tokens":
        assert "too few for any answer after a draft" in error["message"]
    else:
        assert "'draft'" in error["message"]


# Votes.


COLOURS = ["red", "green", "blue"]
SCHEMA = {
    "type": "object",
    "properties": {"sky": {"enum": COLOURS}, "gr/ass": {"enum": COLOURS}},
    "required": ["sky", "gr/ass"],
}
NAMED = {"name": "x", "schema": SCHEMA}
COLOURS_FORMAT = {"type": "json_schema", "json_schema": NAMED}
SAMPLED = {"temperature": 1.5, "seed": 5, "n": 5}
COLOURS_PROMPT = "The colours of the sky and of grass?"
COLOURS_ASKED = [{"role": "user", "content": COLOURS_PROMPT}]


def respond_colours(application: Application, **fields: Any) -> dict[str, Any]:
    body = {"model": "small", "input": COLOURS_PROMPT, "text": {"format": {"type": "json_schema", **NAMED}}, **fields}
    response = ask(application, "POST", "/v1/responses", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def require_majority(text: str, agreement: dict[str, float], samples: list[str]) -> None:
    value, others = json.loads(text), [json.loads(each) for each in samples]
    for name, pointer in (("sky", "/sky"), ("gr/ass", "/gr~1ass")):
        counts = Counter(each[name] for each in others)
        assert counts[value[name]] == max(counts.values())
        assert agreement[pointer] == counts[value[name]] / len(others)
    assert agreement[""] == sum(each == value for each in others) / len(others)
    assert agreement.keys() == {"", "/sky", "/gr~1ass"}


def test_a_chat_completion_is_what_n_answers_agree_on(application: Application) -> None:
    asked: dict[str, Any] = {"messages": COLOURS_ASKED, "response_format": COLOURS_FORMAT, **SAMPLED}
    several, voted = chat(application, **asked).json(), chat(application, vote=True, **asked).json()
    (choice,) = voted["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    samples = [each["message"]["content"] for each in several["choices"]]
    assert len(set(samples)) > 1
    require_majority(choice["message"]["content"], choice["constrain"]["agreement"], samples)
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert voted["usage"][name] == several["usage"][name]


def test_a_response_is_what_n_answers_agree_on(application: Application) -> None:
    several = chat(application, messages=COLOURS_ASKED, response_format=COLOURS_FORMAT, **SAMPLED).json()
    voted = respond_colours(application, vote=True, **SAMPLED)
    text = voted["output"][0]["content"][0]["text"]
    samples = [each["message"]["content"] for each in several["choices"]]
    require_majority(text, voted["constrain"]["agreement"], samples)
    assert voted["usage"]["output_tokens"] == several["usage"]["completion_tokens"]
    stored = ask(application, "GET", f"/v1/responses/{voted['id']}").json()
    assert stored == voted


def test_more_voters_than_there_is_room_for_are_refused(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings(queue=0))
    fields = {"model": "small", "vote": True, "n": 100}
    for path, body in (("chat/completions", {"messages": COLOURS_ASKED}), ("responses", {"input": "x"})):
        error = error_of(ask(application, "POST", f"/v1/{path}", json={**fields, **body}))
        assert (error["param"], error["code"]) == ("n", "integer_above_max_value")


def test_answers_that_cannot_be_read_do_not_vote(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(schema: Any, **fields: Any) -> httpx.Response:
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        return chat(application, messages=COLOURS_ASKED, response_format=form, **fields)

    options: dict[str, Any] = {"schema": {"enum": ["red", [[["deep"]]], "blue"]}, "temperature": 1, "seed": 1, "n": 6}
    samples = [json.loads(choice["message"]["content"]) for choice in asked(**options).json()["choices"]]
    counts = Counter(each for each in samples if isinstance(each, str))
    assert 0 < counts.total() < 6
    monkeypatch.setattr("constrain.types.answer_text.MAX_ANSWER_NESTING", 2)
    (choice,) = asked(vote=True, **options).json()["choices"]
    winner = json.loads(choice["message"]["content"])
    assert counts[winner] == max(counts.values())
    assert choice["constrain"]["agreement"][""] == counts[winner] / counts.total()
    response = asked({"const": [[[]]]}, vote=True, n=2)
    assert response.status_code == 400
    assert "The answer cannot be read: the answer is nested more than 2 levels" in error_of(response)["message"]


def test_a_prompt_counts_once_and_tools_that_were_shown_for_each_answer() -> None:
    answers = [replace(WHOLE, usage=Usage(10 + shown, 3, 2, 0, shown)) for shown in (4, 0, 6)]
    counted = count_usage(answers)
    assert (counted["prompt_tokens"], counted["completion_tokens"], counted["total_tokens"]) == (20, 6, 26)
    account = Account(0)
    for number, each in enumerate(answers):
        account.add(each, is_first=number == 0)
    assert (account.prompt_tokens, account.completion_tokens) == (20, 6)
