"""What becomes of a request whose time is up: its answer is ended, or refused if it was not begun."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import chat, chunks_of, error_of, served_as

if TYPE_CHECKING:
    from collections.abc import Iterator

    import constrain

LONG = {
    "type": "object",
    "properties": {"a": {"type": "string", "minLength": 900, "maxLength": 1000}},
    "required": ["a"],
}
"""Takes hundreds of tokens."""

FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": LONG}}


@pytest.fixture
def hasty(model: constrain.Model) -> Application:
    """A server that gives a request just time enough to be begun."""
    _ = model.scheduler
    return Application(served_as(model, "small"), Settings(timeout=3))


@pytest.fixture
def full(model: constrain.Model) -> Iterator[Application]:
    """A server whose places are all taken, for good."""
    slots = list(model.scheduler.slots)
    for slot in slots:
        slot.busy = True
    yield Application(served_as(model, "small"), Settings(timeout=1))
    model.scheduler.join()
    for slot in slots:
        slot.busy = False


@pytest.mark.slow
def test_an_answer_that_is_being_written_is_brought_to_a_valid_end(hasty: Application) -> None:
    chat(hasty, response_format=FORMAT, max_tokens=1)  # compiled
    choice = chat(hasty, response_format=FORMAT).json()["choices"][0]
    assert 900 <= len(json.loads(choice["message"]["content"])["a"]) <= 1000
    assert choice["finish_reason"] == "stop"


@pytest.mark.slow
def test_a_text_that_is_being_written_is_cut_and_says_so(hasty: Application) -> None:
    logit_bias = {"2": -100}  # no end of generation
    choice = chunks_of(chat(hasty, stream=True, logit_bias=logit_bias))[-1]["choices"][0]
    assert choice["finish_reason"] == "length"


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_waits_for_its_turn_too_long_is_asked_to_come_again(full: Application, stream: bool) -> None:
    response = chat(full, stream=stream)
    assert (response.status_code, error_of(response)["code"]) == (503, "timeout")
    assert int(response.headers["retry-after"]) > 0
