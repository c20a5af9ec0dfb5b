"""Votes on the answers to a request, on all endpoints whose model writes answers."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import ask, chat, error_of, served_as

if TYPE_CHECKING:
    import httpx

    import constrain

COLOURS = ["red", "green", "blue"]
SCHEMA = {
    "type": "object",
    "properties": {"sky": {"enum": COLOURS}, "gr/ass": {"enum": COLOURS}},
    "required": ["sky", "gr/ass"],
}
NAMED = {"name": "x", "schema": SCHEMA}
FORMAT = {"type": "json_schema", "json_schema": NAMED}
SAMPLED = {"temperature": 1.5, "seed": 5, "n": 5}
PROMPT = "The colours of the sky and of grass?"
MESSAGES = [{"role": "user", "content": PROMPT}]


def complete(application: Application, **fields: Any) -> httpx.Response:
    return ask(application, "POST", "/v1/completions", json={"model": "small", "response_format": FORMAT, **fields})


def respond(application: Application, **fields: Any) -> dict[str, Any]:
    body = {"model": "small", "input": PROMPT, "text": {"format": {"type": "json_schema", **NAMED}}, **fields}
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


@pytest.mark.slow
def test_a_chat_completion_is_what_n_answers_agree_on(application: Application) -> None:
    asked: dict[str, Any] = {"messages": MESSAGES, "response_format": FORMAT, **SAMPLED}
    several, voted = chat(application, **asked).json(), chat(application, vote=True, **asked).json()
    (choice,) = voted["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    samples = [each["message"]["content"] for each in several["choices"]]
    assert len(set(samples)) > 1
    require_majority(choice["message"]["content"], choice["constrain"]["agreement"], samples)
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert voted["usage"][name] == several["usage"][name]


@pytest.mark.slow
def test_a_response_is_what_n_answers_agree_on(application: Application) -> None:
    several = chat(application, messages=MESSAGES, response_format=FORMAT, **SAMPLED).json()
    voted = respond(application, vote=True, **SAMPLED)
    text = voted["output"][0]["content"][0]["text"]
    samples = [each["message"]["content"] for each in several["choices"]]
    require_majority(text, voted["constrain"]["agreement"], samples)
    assert voted["usage"]["output_tokens"] == several["usage"]["completion_tokens"]
    stored = ask(application, "GET", f"/v1/responses/{voted['id']}").json()
    assert stored == voted


@pytest.mark.slow
def test_answers_to_each_text_vote_by_themselves(application: Application) -> None:
    asked: dict[str, Any] = {"prompt": ["The sky is", "Grass is"], **SAMPLED}
    several, voted = complete(application, **asked).json(), complete(application, vote=True, echo=True, **asked).json()
    assert [choice["index"] for choice in voted["choices"]] == [0, 1]
    for number, choice in enumerate(voted["choices"]):
        samples = [each["text"] for each in several["choices"][5 * number : 5 * number + 5]]
        text = choice["text"].removeprefix(asked["prompt"][number])
        require_majority(text, choice["constrain"]["agreement"], samples)
    assert voted["usage"]["completion_tokens"] == several["usage"]["completion_tokens"]
    assert voted["usage"]["prompt_tokens"] == several["usage"]["prompt_tokens"]


def test_more_voters_than_there_is_room_for_are_refused(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings(max_queue=0))
    fields = {"model": "small", "vote": True, "n": 100}
    for path, body in (("chat/completions", {"messages": MESSAGES}), ("responses", {"input": "x"})):
        error = error_of(ask(application, "POST", f"/v1/{path}", json={**fields, **body}))
        assert (error["param"], error["code"]) == ("n", "integer_above_max_value")


@pytest.mark.slow
def test_answers_that_cannot_be_read_do_not_vote(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(schema: Any, **fields: Any) -> httpx.Response:
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        return chat(application, messages=MESSAGES, response_format=form, **fields)

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
