"""What becomes of a request whose time is up: its answer is ended, or refused if it was not begun."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from constrain.llama.contexts.sequences import Sequences
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import chat, chunks_of, error_of, served_as

if TYPE_CHECKING:
    from collections.abc import Iterator

    import constrain

LONG = {
    "type": "object",
    "properties": {"a": {"type": "string", "minLength": 3000, "maxLength": 3100}},
    "required": ["a"],
}
"""Takes hundreds of tokens."""

FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": LONG}}


@pytest.fixture
def hasty(model: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> Application:
    """A server that gives a request time for some hundred tokens."""
    evaluate, never = Sequences.evaluate, threading.Event()

    def evaluate_slowly(*arguments: Any) -> Any:
        never.wait(0.01)
        return evaluate(*arguments)

    monkeypatch.setattr(Sequences, "evaluate", evaluate_slowly)
    return Application(served_as(model, "small"), Settings(timeout=1.5))


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


@pytest.mark.slow
def test_an_answer_that_is_being_written_is_brought_to_a_valid_end(hasty: Application) -> None:
    chat(hasty, response_format=FORMAT, max_tokens=1)  # compiled
    choice = chat(hasty, response_format=FORMAT).json()["choices"][0]
    assert 3000 <= len(json.loads(choice["message"]["content"])["a"]) <= 3100
    assert (choice["finish_reason"], choice["constrain"]["ended_early"]) == ("stop", "timeout")


@pytest.mark.slow
def test_a_text_that_is_being_written_is_cut_and_says_so(hasty: Application) -> None:
    logit_bias = {"2": -100}  # no end of generation
    chunks = chunks_of(chat(hasty, stream=True, logit_bias=logit_bias))
    assert len(chunks) < 300
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_waits_for_its_turn_too_long_is_asked_to_come_again(full: Application, stream: bool) -> None:
    response = chat(full, stream=stream)
    assert (response.status_code, error_of(response)["code"]) == (503, "timeout")
    assert int(response.headers["retry-after"]) > 0
