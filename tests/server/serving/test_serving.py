"""Clients that leave, servers that stop, and requests whose time is up: what is begun comes to a valid end."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import constrain
from constrain.llama.contexts.sequences import Sequences
from constrain.server.app import Application
from constrain.server.http.listening import listen
from constrain.server.run import Server
from constrain.server.settings import Settings
from tests.support.server.asking import CHAT, SECONDS, ask, chat, chunks_of, error_of, served_as, serving

LONGEST = 2000
LONG = {"type": "object", "properties": {"a": {"type": "string", "maxLength": LONGEST}}, "required": ["a"]}

pytestmark = pytest.mark.slow


@pytest.fixture
def asked(unending: dict[str, int]) -> dict[str, Any]:
    """A request whose answer takes hundreds of tokens."""
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": LONG}}
    return {"response_format": form, "logit_bias": unending}


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has each token take a hundredth of a second at least."""
    evaluate, never = Sequences.evaluate, threading.Event()

    def wait_and_evaluate(*arguments: Any) -> Any:
        never.wait(0.01)
        return evaluate(*arguments)

    monkeypatch.setattr(Sequences, "evaluate", wait_and_evaluate)


@pytest.fixture
def application(model: constrain.Model) -> Application:
    return Application(served_as(model, "small"), Settings())


def body(asked: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "small", "messages": [{"role": "user", "content": "Write."}], **asked, **fields}


def is_free(model: constrain.Model) -> bool:
    model.scheduler.join()
    return not any(slot.busy for slot in model.scheduler.slots)


def require_abandoned(application: Application) -> None:
    """Nothing was written to its end."""
    metrics = ask(application, "GET", "/metrics").text
    assert "constrain_requests_abandoned_total 1.0" in metrics
    assert 'constrain_tokens_total{kind="completion"}' not in metrics
    assert "constrain_answers_admitted 0.0" in metrics


def test_a_client_that_leaves_a_stream_frees_its_place(
    model: constrain.Model, application: Application, asked: dict[str, Any]
) -> None:
    with serving(application) as url:
        with httpx.stream("POST", url + CHAT, json=body(asked, stream=True), timeout=SECONDS) as response:
            next(response.iter_bytes())
        assert is_free(model)
    require_abandoned(application)


def test_a_client_that_leaves_before_the_answer_frees_its_place(
    model: constrain.Model, application: Application, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate, has_left = Sequences.evaluate, threading.Event()

    def wait_and_evaluate(*arguments: Any) -> Any:
        assert has_left.wait(SECONDS)
        return evaluate(*arguments)

    monkeypatch.setattr(Sequences, "evaluate", wait_and_evaluate)
    with serving(application) as url:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(url + CHAT, json=body(asked), timeout=httpx.Timeout(SECONDS, read=0.3))
        has_left.set()
        assert is_free(model)
    require_abandoned(application)


@pytest.mark.parametrize(
    ("signals", "grace", "ended"),
    [
        ((signal.SIGTERM,), 2, "timeout"),
        ((signal.SIGTERM, signal.SIGTERM), 60, None),
        ((signal.SIGINT, signal.SIGINT), 60, "timeout"),
    ],
)
def test_a_server_that_stops_brings_streams_to_a_valid_end(
    model: constrain.Model,
    application: Application,
    asked: dict[str, Any],
    signals: tuple[signal.Signals, ...],
    grace: int,
    ended: str | None,
    request: pytest.FixtureRequest,
) -> None:
    if len(signals) == 1:
        request.getfixturevalue("slowly")
    started: Any = threading.Event()
    found: list[str] = []

    def note(url: str) -> None:
        found.append(url)
        started.set()

    server = Server(application, listen("127.0.0.1", 0), grace_seconds=grace, on_start=note)
    thread = threading.Thread(target=server.serve_until_stopped)
    thread.start()
    assert started.wait(SECONDS)
    with httpx.stream("POST", found[0] + CHAT, json=body(asked, stream=True), timeout=SECONDS) as response:
        lines = response.iter_lines()
        next(lines)
        for each in signals:
            server.handle_exit(each, None)
        events = [line.removeprefix("data: ") for line in lines if line]
    assert events[-1] == "[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    text = json.loads("".join(choice["delta"].get("content") or "" for choice in choices))["a"]
    assert choices[-1]["finish_reason"] == "stop"
    assert choices[-1].get("constrain", {}).get("ended_early") == ended
    assert (len(text) == LONGEST) == (ended is None)
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert is_free(model)


@pytest.mark.usefixtures("slowly")
def test_an_answer_whose_time_is_up_is_brought_to_a_valid_end(
    model: constrain.Model, asked: dict[str, Any], unending: dict[str, int]
) -> None:
    hasty = Application(served_as(model, "small"), Settings(timeout=1.5))
    chat(hasty, **asked, max_tokens=1)  # compiled
    choice = chat(hasty, **asked).json()["choices"][0]
    assert 0 < len(json.loads(choice["message"]["content"])["a"]) < LONGEST
    assert (choice["finish_reason"], choice["constrain"]["ended_early"]) == ("stop", "timeout")
    chunks = chunks_of(chat(hasty, stream=True, logit_bias=unending))
    assert len(chunks) < 300
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"


@pytest.fixture
def full(model: constrain.Model) -> Iterator[Application]:
    """A server whose places are all taken, for good."""
    slots = list(model.scheduler.slots)
    for slot in slots:
        slot.busy = True
    yield Application(served_as(model, "small"), Settings(timeout=0.3))
    model.scheduler.join()
    for slot in slots:
        slot.busy = False


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_waits_for_its_turn_too_long_is_asked_to_come_again(full: Application, stream: bool) -> None:
    response = chat(full, stream=stream)
    assert (response.status_code, error_of(response)["code"]) == (503, "timeout")
    assert int(response.headers["retry-after"]) > 0
