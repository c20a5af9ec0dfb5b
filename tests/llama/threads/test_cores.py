"""Threads beside programs that compute: on a scripted machine, beside a real program, and with a real model."""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path

import llama_cpp
import psutil
import pytest

import constrain
from constrain.llama.threads import cores, openmp, threads
from constrain.llama.threads.cores import Cores, Linux, Sample, shared_cores
from constrain.system import CLOCK_TICKS
from tests.support import for_each
from tests.support.waiting import wait_until


class Machine:
    """A machine with two cores, of which others use some."""

    count, spare = 2, 0

    def __init__(self, others: float = 0.0) -> None:
        self.others = others
        self.glances: list[int] = []
        self.slept = self.at = self.busy = self.own = 0.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.compute(seconds, 0)

    def sample(self) -> Sample:
        return Sample(self.at, self.busy, self.own)

    def others_running(self) -> int:
        return self.glances.pop(0) if self.glances else round(self.others)

    def compute(self, seconds: float, own: float) -> None:
        """Lets time go by while this process uses some cores."""
        self.at += seconds
        self.own += seconds * own
        self.busy += seconds * (own + self.others)


def evaluate(cores: Cores, machine: Machine, wanted: int = 2, seconds: float = 0.15) -> int:
    """One evaluation; returns with how many threads."""
    with cores.claim(wanted) as granted:
        machine.compute(seconds, min(granted, machine.count - machine.others / 2))
    return granted


def test_all_threads_compute_on_an_idle_machine() -> None:
    machine = Machine()
    cores = Cores(machine)
    assert [evaluate(cores, machine, seconds=seconds) for seconds in (0.01, 0.15, 2.0, 0.15)] == [2, 2, 2, 2]
    assert machine.slept == 0


def test_a_program_that_was_there_before_keeps_its_core_from_the_first_evaluation_on() -> None:
    machine = Machine(others=1)
    cores = Cores(machine)
    machine.compute(0.02, 1)
    assert evaluate(cores, machine) == 1
    assert 0 < machine.slept < 0.06


def test_a_program_that_comes_has_its_core_from_the_next_evaluation_on_and_leaves_it_again() -> None:
    machine = Machine()
    cores = Cores(machine)
    assert evaluate(cores, machine) == 2
    machine.others = 1
    assert [evaluate(cores, machine) for _ in range(4)] == [2, 1, 1, 1]
    machine.others = 0
    assert [evaluate(cores, machine) for _ in range(3)] == [1, 2, 2]


def test_one_thread_is_left_where_others_use_every_core() -> None:
    machine = Machine(others=2)
    assert evaluate(Cores(machine), machine) == 1


def test_a_program_that_comes_while_nothing_is_evaluated_is_noticed() -> None:
    machine = Machine()
    cores = Cores(machine)
    evaluate(cores, machine)
    machine.compute(600, 0)
    machine.others = 1
    assert evaluate(cores, machine) == 1
    machine.compute(1, 0)
    machine.others = 0
    assert evaluate(cores, machine) == 2


def test_a_long_evaluation_that_others_stopped_is_followed_by_one_with_a_thread_less_at_once() -> None:
    machine = Machine()
    cores = Cores(machine)
    evaluate(cores, machine)
    machine.others = 1
    assert [evaluate(cores, machine, seconds=3) for _ in range(3)] == [2, 1, 1]
    assert machine.slept < 0.003  # glances, once


def test_a_thread_that_computes_for_a_moment_and_a_program_that_uses_little_cost_nothing() -> None:
    machine = Machine()
    machine.glances = [1, 0]
    assert evaluate(Cores(machine), machine) == 2
    assert machine.slept < 0.002
    machine = Machine(others=0.3)
    cores = Cores(machine)
    assert [evaluate(cores, machine) for _ in range(5)] == [2] * 5


def test_cores_are_taken_back_the_later_the_oftener_that_was_too_early() -> None:
    machine = Machine()
    cores = Cores(machine)
    granted = []
    for _ in range(100):  # one that computes whenever two threads do not
        machine.others = 1.0 if granted and granted[-1] == 2 else 0.0
        granted.append(evaluate(cores, machine, seconds=0.1))
    assert 0 < sum(before < after for before, after in itertools.pairwise(granted)) < 15


def test_two_processes_come_to_a_thread_each_and_stay_there() -> None:
    machines = Machine(), Machine()
    both = [Cores(machine) for machine in machines]
    steps = []
    for _ in range(50):
        with both[0].claim(2) as first, both[1].claim(2) as second:
            share = min(1.0, 2 / (first + second))
            for machine, own, other in ((machines[0], first, second), (machines[1], second, first)):
                machine.others = share * other
                machine.compute(0.1, share * own)
            steps.append((first, second))
    assert steps[2:] == [(1, 1)] * 48


def test_evaluations_of_one_process_share_its_cores() -> None:
    cores = Cores(Machine())
    with cores.claim(2) as first, cores.claim(2) as second:
        assert (first, second) == (2, 1)
    with cores.claim(1) as first, cores.claim(2) as second:
        assert (first, second) == (1, 1)
    with cores.claim(2) as first:
        assert first == 2


def test_cores_that_this_process_may_not_use_are_for_others() -> None:
    machine = Machine()
    machine.spare = 2
    machine.glances = [2]
    assert evaluate(Cores(machine), machine) == 2
    assert machine.slept == 0


@pytest.mark.parametrize("name", ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT"])
def test_threads_are_not_limited_where_the_environment_says_how_they_wait(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_cores.cache_clear()
    monkeypatch.setenv(name, "passive" if name.startswith("OMP") else "100")
    try:
        assert shared_cores() is None
    finally:
        shared_cores.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_linux_counts_what_this_process_computes() -> None:
    machine = Linux()
    before, begun = machine.sample(), time.process_time()
    while time.process_time() - begun < 0.1:
        pass
    after = machine.sample()
    assert after.own - before.own >= 0.1
    assert after.busy - before.busy >= 0.1 - 3 / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@for_each("is_lower, busy", [(False, 10.0), (True, 12.0)])
def test_programs_of_a_lower_priority_count_only_beside_another_one(
    is_lower: bool, busy: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, nice, system = (seconds * CLOCK_TICKS for seconds in (6, 2, 4))
    monkeypatch.setattr(Path, "read_text", lambda *_: f"cpu  {user} {nice} {system} 9 9 0 0 0 0 0\n")
    monkeypatch.setattr(cores, "usable_processors", lambda: set(range(os.cpu_count() or 1)))
    monkeypatch.setattr(cores, "has_lower_priority", lambda: is_lower)
    assert Linux().sample().busy == busy


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """What models of this test see of other programs."""
    machine = Machine()
    cores = Cores(machine)
    monkeypatch.setattr(threads, "shared_cores", lambda: cores)
    return machine


@pytest.mark.slow
def test_a_model_computes_with_fewer_threads_and_gets_them_back(machine: Machine, tiny: Path) -> None:
    with constrain.Model(tiny, n_ctx=256, n_threads=2) as model:
        counts = []
        for others in (0, 1):
            machine.others = others
            machine.compute(1, 0)
            events = constrain.stream(model, "Count.", max_tokens=3, temperature=0)
            next(events)
            pointer = model.llama._ctx.ctx
            counts.append((llama_cpp.llama_n_threads(pointer), llama_cpp.llama_n_threads_batch(pointer)))
            assert model.context.leaves_a_core is False
            events.close()
            assert llama_cpp.llama_n_threads(pointer) == llama_cpp.llama_n_threads_batch(pointer) == 2
        assert counts[0] == (2, 2)
        assert counts[1][1] == 1


def test_answers_at_once_and_embeddings_compute_with_fewer_threads(
    machine: Machine, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.others = 1
    machine.compute(1, 0)
    used = []
    decode = llama_cpp.llama_decode

    def watched(context: object, batch: llama_cpp.llama_batch) -> int:
        count = llama_cpp.llama_n_threads if batch.n_tokens == 1 else llama_cpp.llama_n_threads_batch
        used.append(count(context))
        return int(decode(context, batch))

    monkeypatch.setattr(llama_cpp, "llama_decode", watched)
    with constrain.Model(tiny, n_ctx=256, n_threads=2, parallel=2) as model:
        constrain.generate_batch(model, ["Yes?", "No?"], schema=bool)
        assert used
        assert set(used) == {1}
        used.clear()
        model.embedder.embed([1, 2, 3])
        assert used == [1]


@pytest.mark.slow
def test_no_workers_are_left_by_an_answer(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "shared_cores", lambda: None)  # two threads, whatever else computes
    if openmp._pause() is None:
        pytest.skip("llama.cpp does not compute with GNU OpenMP here")
    model = constrain.Model(tiny, n_ctx=256, n_threads=2, parallel=2)
    count = psutil.Process().num_threads
    constrain.generate(model, "Yes or no?", schema=bool)  # starts the thread for masks, which stays
    before = count()
    events = constrain.stream(model, "Count.", max_tokens=4)
    next(events)
    assert count() == before + 1
    list(events)
    assert count() == before
    constrain.generate_batch(model, ["Yes?", "No?"], schema=bool)
    wait_until(lambda: count() <= before)  # the thread of the batch ends soon
    assert count() == before
    model.close()
