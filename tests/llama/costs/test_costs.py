"""Costs of evaluations: estimates, measurements, and what is kept of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import constrain
from constrain.llama.contexts.batch import Piece
from constrain.llama.contexts.sequences import Sequences
from constrain.llama.costs import kept
from constrain.llama.costs.kept import costs_of
from constrain.llama.costs.measuring import SIZES, Measured, measure_sequences
from constrain.llama.costs.table import Costs, estimate
from constrain.llama.loading import llama_log
from tests.support import for_each

TABLE = {1: 1.0, 4: 2.0, 8: 6.0}
COSTS = Costs((1, 2), {}, TABLE, TABLE)


@for_each("count, seconds", [(1, 1.0), (2, 4 / 3), (4, 2.0), (6, 4.0), (8, 6.0), (16, 12.0)])
def test_costs_between_measured_numbers_are_linear_and_beyond_them_in_proportion(count: int, seconds: float) -> None:
    assert estimate(TABLE, count) == pytest.approx(seconds)


class Meter:
    """Counts how often it measures."""

    def __init__(self, *, is_steady: bool = True) -> None:
        self.calls = 0
        self.is_steady = is_steady

    def __call__(self) -> Measured:
        self.calls += 1
        return Measured(COSTS, self.is_steady)


@pytest.fixture
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_known", {})


@pytest.mark.usefixtures("new_process")
def test_costs_are_measured_once_for_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meter = Meter()
    for _ in range(2):
        assert costs_of(b"model", (1, 2), 8, str(tmp_path), meter) == COSTS
    monkeypatch.setattr(kept, "_known", {})  # as in another process
    assert costs_of(b"model", (1, 2), 8, str(tmp_path), meter) == COSTS
    assert meter.calls == 1


@pytest.mark.usefixtures("new_process")
@pytest.mark.parametrize(
    ("identity", "threads", "sequences"), [(b"other", (1, 2), 8), (b"model", (2, 2), 8), (b"model", (1, 2), 4)]
)
def test_other_models_threads_and_numbers_of_sequences_are_measured_apart(
    tmp_path: Path, identity: bytes, threads: tuple[int, int], sequences: int
) -> None:
    meter = Meter()
    costs_of(b"model", (1, 2), 8, str(tmp_path), meter)
    costs_of(identity, threads, sequences, str(tmp_path), meter)
    assert meter.calls == 2


@pytest.mark.usefixtures("new_process")
def test_disturbed_measurements_are_not_written(tmp_path: Path) -> None:
    costs_of(b"model", (1, 2), 8, str(tmp_path), Meter(is_steady=False))
    assert list(tmp_path.rglob("*.json")) == []


@pytest.mark.usefixtures("new_process")
@pytest.mark.parametrize("content", [b"", b"{", b"{}", b'{"n_threads": [1], "every": 0, "last": {}, "together": {}}'])
def test_a_damaged_file_is_measured_again(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    meter = Meter()
    costs_of(b"model", (1, 2), 8, str(tmp_path), meter)
    [path] = tmp_path.rglob("*.json")
    path.write_bytes(content)
    monkeypatch.setattr(kept, "_known", {})
    assert costs_of(b"model", (1, 2), 8, str(tmp_path), meter) == COSTS
    assert meter.calls == 2
    monkeypatch.setattr(kept, "_known", {})
    assert costs_of(b"model", (1, 2), 8, str(tmp_path), meter) == COSTS
    assert meter.calls == 2


def test_the_costs_of_sequences_are_measured_in_their_own_context(model: constrain.Model) -> None:
    with llama_log():
        sequences = Sequences(model.llama, 3, 64)
    try:
        costs = measure_sequences(sequences).costs
        assert tuple(costs.together) == (1, 2, 3)
        assert tuple(costs.last) == SIZES["last"]
        assert costs.every == {}
        assert all(seconds > 0 for seconds in (*costs.together.values(), *costs.last.values()))
        assert [sequences.length(number) for number in range(3)] == [0, 0, 0]
        sequences.evaluate([Piece(0, 0, model.llama.input_ids[:2] * 0 + 5, 1)])
    finally:
        sequences.close()
