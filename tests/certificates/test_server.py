"""The field ``certificate``: all endpoints answer with the proof, which is made in the sandbox."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest

import constrain
from constrain.engine.constraint import Constraint
from constrain.generation.observers.certificate.replay import recompile, replay
from constrain.server.app import Application
from constrain.server.sandbox.worker import Limits
from constrain.server.settings import Settings
from tests.support import for_each
from tests.support.server.asking import ask, chat, chunks_of, error_of, served_as

SAID = "Ada is 36 years old."
SCHEMA = {
    "type": "object",
    "properties": {"age": {"type": "integer"}, "mood": {"enum": ["happy", "sad"]}},
    "required": ["age", "mood"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "it", "schema": SCHEMA}}
MESSAGES = [{"role": "user", "content": SAID}]

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": MESSAGES, "response_format": FORMAT}),
    "completions": ("/v1/completions", {"prompt": SAID, "response_format": FORMAT}),
    "responses": (
        "/v1/responses",
        {"input": SAID, "text": {"format": {"type": "json_schema", "name": "it", "schema": SCHEMA}}},
    ),
    "messages": (
        "/v1/messages",
        {
            "messages": MESSAGES,
            "max_tokens": 60,
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        },
    ),
    "ollama-chat": ("/api/chat", {"messages": MESSAGES, "format": SCHEMA, "stream": False}),
    "ollama-generate": ("/api/generate", {"prompt": SAID, "format": SCHEMA, "stream": False}),
}


def certificate_of(body: Mapping[str, Any]) -> dict[str, Any]:
    holder = body["choices"][0] if "choices" in body else body
    found: dict[str, Any] = holder["constrain"]["certificate"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("endpoint", REQUESTS)
def test_endpoints_answer_with_a_certificate(
    application: Application, model: constrain.Model, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Constraint) -> None:
        raise AssertionError("a grammar was compiled in the server's own process")

    path, body = REQUESTS[endpoint]
    with monkeypatch.context() as patch:
        patch.setattr(Constraint, "grammar", property(refuse))
        answer = ask(application, "POST", path, json={"model": "small", **body, "certificate": "prompt"})
    assert answer.status_code == 200, answer.text
    certificate = certificate_of(answer.json())
    constrain.certificates.verify_certificate(certificate)
    assert set(json.loads(certificate["text"])) == {"age", "mood"}
    recompile(certificate, model.vocabulary)
    assert replay(model, certificate) is None
    without = ask(application, "POST", path, json={"model": "small", **body, "certificate": False}).json()
    holder = without["choices"][0] if "choices" in without else without
    assert "certificate" not in holder.get("constrain", {})


def test_a_stream_ends_with_it(application: Application) -> None:
    chunks = chunks_of(chat(application, messages=MESSAGES, response_format=FORMAT, certificate=True, stream=True))
    (found,) = [each["choices"][0]["constrain"]["certificate"] for each in chunks if "constrain" in each["choices"][0]]
    assert set(found["prompt"]) == {"sha256", "count"}
    constrain.certificates.verify_certificate(found)


@pytest.mark.slow
def test_tools_have_it_too(application: Application) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}
    answer = chat(application, messages=MESSAGES, tools=[tool], tool_choice="required", certificate=True).json()
    certificate = certificate_of(answer)
    assert certificate["source"]["kind"] == "answer"
    constrain.certificates.verify_certificate(certificate)


@for_each(
    "fields, param",
    ({"certificate": "yes", "response_format": FORMAT}, "certificate"),
    ({"certificate": 1, "response_format": FORMAT}, "certificate"),
    ({"certificate": True}, "certificate"),
    ({"certificate": True, "response_format": FORMAT, "vote": True, "n": 3}, "certificate"),
)
def test_what_has_no_certificate_is_refused(application: Application, fields: dict[str, Any], param: str) -> None:
    answer = chat(application, messages=MESSAGES, **fields)
    assert answer.status_code == 400
    assert error_of(answer)["param"] == param


def test_an_answer_beyond_the_limits_of_the_sandbox_says_so(
    model: constrain.Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    application = Application(served_as(model, "small"), Settings())
    real = Limits(0.001, 1 << 30)
    monkeypatch.setattr("constrain.server.sandbox.session.Session.another", _with_limits(real))
    with caplog.at_level(logging.WARNING, "constrain.server"):
        (choice,) = chat(application, messages=MESSAGES, response_format=FORMAT, certificate=True).json()["choices"]
    assert choice["constrain"]["limited"]["limits"] == ["MAX_CERTIFICATE_WORK"]
    assert "certificate" not in choice["constrain"]
    assert set(json.loads(choice["message"]["content"])) == {"age", "mood"}
    assert "an answer has no certificate" in caplog.text


def _with_limits(limits: Limits) -> Any:
    from constrain.server.sandbox.session import Session

    def another(self: Session, _: float) -> Session:
        return Session(self._pool, limits)

    return another
