"""The inputs that fuzzing began with, and those that it found something with, judged as they are while fuzzing."""

from __future__ import annotations

from random import Random
from types import ModuleType

import pytest

import constrain
from tests.fuzz import targets
from tests.fuzz.judge import BrokenPromiseError, Meter, Verdict, judge
from tests.support import LONG


@pytest.mark.slow
@pytest.mark.parametrize("name", targets.NAMES)
def test_every_seed_is_answered_or_refused_as_declared(name: str) -> None:
    target, wrong = targets.load(name), []
    for number, data in enumerate(targets.seeds_of(name)):
        verdict = judge(target, data)
        if verdict.problem or verdict.excess:
            wrong.append(f"seed {number}, {data[:200]!r}: {verdict.problem or verdict.excess}")
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.slow(but=("gguf",))
@pytest.mark.parametrize("name", targets.NAMES)
def test_changed_seeds_are_still_read_and_answered_or_refused_as_declared(name: str) -> None:
    """Mutations that only ever break an input would find nothing."""
    target, rng = targets.load(name), Random(5)
    seeds = targets.seeds_of(name)

    def cut(data: bytes) -> bytes:
        return data[: rng.randrange(len(data) + 1)]

    changed = [target.mutate(rng.choice(seeds), rng, cut) for _ in range(60)]
    assert len(set(changed)) > 40
    wrong = [(data, problem) for data in changed[: 60 if LONG else 10] if (problem := judge(target, data).problem)]
    assert not wrong


class _Told:
    """A target that does as it is told."""

    DECLARED = (constrain.GrammarError, constrain.LimitError)

    def __init__(self, action: object) -> None:
        self.action = action

    def run(self, _: bytes, meter: Meter) -> str:
        with meter.call("call"):
            assert callable(self.action)
            return self.action()


def verdict_of(action: object) -> Verdict:
    target: ModuleType = _Told(action)  # type: ignore[assignment]
    return judge(target, b"")


def _raise(error: Exception) -> str:
    raise error


def test_the_judge_lets_declared_errors_pass_and_no_others() -> None:
    done = verdict_of(lambda: "done")
    assert (done.outcome, done.problem, done.excess) == ("done", "", "")
    assert not verdict_of(lambda: _raise(constrain.GrammarError("wrong"))).problem
    assert verdict_of(lambda: _raise(constrain.GrammarError(""))).problem
    for error in (
        KeyError("x"),
        RecursionError("deep"),
        MemoryError(),
        constrain.ModelError("x"),
        BrokenPromiseError("x"),
    ):
        verdict = verdict_of(lambda error=error: _raise(error))
        assert type(error).__name__ in verdict.problem
        assert verdict.signature


@pytest.mark.slow
def test_the_judge_sees_what_takes_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> str:
        return "" if sum(range(3_000_000)) else "x"

    def work_and_meet_a_limit() -> str:
        work()
        raise constrain.LimitError("too much (MAX_WORK)")

    monkeypatch.setattr("tests.fuzz.judge.MAX_SECONDS", 0.001)
    monkeypatch.setattr("tests.fuzz.judge.MAX_BYTES", 64 << 20)
    assert "call took" in verdict_of(work).excess
    assert not verdict_of(work_and_meet_a_limit).excess
    monkeypatch.setattr("tests.fuzz.judge.MAX_SECONDS", 60)
    assert "grew by" in verdict_of(lambda: "x" if bytes(b"1" * (200 << 20)) else "").excess
