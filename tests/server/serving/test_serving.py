"""Clients that leave, and servers that stop."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from constrain.llama.contexts.sequences import Sequences
from constrain.server.app import Application
from constrain.server.http.listening import listen
from constrain.server.run import Server
from constrain.server.settings import Settings
from tests.support.server.asking import CHAT, SECONDS, ask, served_as, serving

if TYPE_CHECKING:
    import constrain

LONG = {
    "type": "object",
    "properties": {"a": {"type": "string", "minLength": 3000, "maxLength": 3100}},
    "required": ["a"],
}
"""Takes hundreds of tokens."""

BODY: Any = {
    "model": "small",
    "messages": [{"role": "user", "content": "Write."}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": LONG}},
}


def is_free(model: constrain.Model) -> bool:
    model.scheduler.join()
    return not any(slot.busy for slot in model.scheduler.slots)


def require_abandoned(application: Application) -> None:
    """Nothing was written to its end."""
    metrics = ask(application, "GET", "/metrics").text
    assert "constrain_requests_abandoned_total 1.0" in metrics
    assert 'constrain_tokens_total{kind="completion"}' not in metrics
    assert "constrain_answers_admitted 0.0" in metrics


@pytest.mark.slow
def test_a_client_that_leaves_a_stream_frees_its_place(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings())
    with serving(application) as url:
        with httpx.stream("POST", url + CHAT, json={**BODY, "stream": True}, timeout=SECONDS) as response:
            next(response.iter_bytes())
        assert is_free(model)
    require_abandoned(application)


@pytest.mark.slow
def test_a_client_that_leaves_before_the_answer_frees_its_place(
    model: constrain.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = Application(served_as(model, "small"), Settings())
    evaluate, has_left = Sequences.evaluate, threading.Event()

    def wait_and_evaluate(*arguments: Any) -> Any:
        assert has_left.wait(SECONDS)
        return evaluate(*arguments)

    monkeypatch.setattr(Sequences, "evaluate", wait_and_evaluate)
    with serving(application) as url:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(url + CHAT, json=BODY, timeout=httpx.Timeout(SECONDS, read=0.3))
        has_left.set()
        assert is_free(model)
    require_abandoned(application)


@pytest.mark.slow
def test_a_server_that_stops_brings_streams_to_a_valid_end(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings())
    started: Any = threading.Event()
    found: list[str] = []

    def note(url: str) -> None:
        found.append(url)
        started.set()

    server = Server(application, listen("127.0.0.1", 0), grace_seconds=5, on_start=note)
    thread = threading.Thread(target=server.serve_until_stopped)
    thread.start()
    assert started.wait(SECONDS)
    with httpx.stream("POST", found[0] + CHAT, json={**BODY, "stream": True}, timeout=SECONDS) as response:
        lines = response.iter_lines()
        next(lines)
        server.stop()
        events = [line.removeprefix("data: ") for line in lines if line]
    assert events[-1] == "[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    assert 3000 <= len(json.loads(text)["a"]) <= 3100
    assert choices[-1]["finish_reason"] == "stop"
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert is_free(model)
