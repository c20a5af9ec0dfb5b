"""Worker threads of llama.cpp: a thread that has evaluated keeps none."""

from __future__ import annotations

import psutil
import pytest

import constrain
from constrain.llama.threads import openmp
from constrain.llama.threads import threads as llama_threads
from tests.support.waiting import wait_until


@pytest.mark.slow
def test_no_workers_are_left_by_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_threads, "shared_cores", lambda: None)  # two threads, whatever else computes
    if openmp._pause() is None:
        pytest.skip("llama.cpp does not compute with GNU OpenMP here")
    model = constrain.Model(n_ctx=256, n_threads=2, parallel=2)
    threads = psutil.Process().num_threads
    constrain.generate(model, "Yes or no?", schema=bool)  # starts the thread for masks, which stays
    before = threads()
    events = constrain.stream(model, "Count.", max_tokens=4)
    next(events)
    assert threads() == before + 1
    list(events)
    assert threads() == before
    constrain.generate_batch(model, ["Yes?", "No?"], schema=bool)
    wait_until(lambda: threads() <= before)  # the thread of the batch ends soon
    assert threads() == before
    model.close()
