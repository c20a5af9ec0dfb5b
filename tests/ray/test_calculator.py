"""The calculator of ``benchmarks/cluster``: its model of cost, its simulation, and its command line."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "cluster"
STEPS = {1: 0.010, 2: 0.016, 4: 0.024, 8: 0.040}


@pytest.fixture(scope="module")
def parts() -> Iterator[Any]:
    """The modules of the program, and costs that are easy to reckon with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PROGRAM))
        import sample
        import simulation
        import work

        answer = work.Answer(prompt=150, evaluated=100, completion=60, steps=50, runs=(2, 3))
        runs = {1: 0.010, 2: 0.015, 4: 0.025}
        costs = work.Costs(2, 1, 8, STEPS, runs, 1000.0, 5.0, 2.0**29, 2.0**27, (answer,))
        yield SimpleNamespace(work=work, simulation=simulation, sample=sample, costs=costs, answer=answer)
        for name in ("work", "simulation", "sample", "measuring", "checking", "about"):
            sys.modules.pop(name, None)


def cluster(parts: Any, **changes: Any) -> Any:
    usual = parts.simulation.Cluster(
        documents=100_000, nodes=10, actors_per_node=4, parallel=8, batch_size=64, price=0.5, lost=0.0, node_start=60.0
    )
    return replace(usual, **changes)


def test_an_answer_costs_its_prompt_its_runs_and_its_share_of_the_steps(parts: Any) -> None:
    prompt, runs, steps = parts.costs.mean_work()
    assert prompt == pytest.approx(0.1)
    assert runs == pytest.approx(0.015 + 0.020)
    assert steps == 50
    assert parts.work.mean_seconds(parts.costs, 8) == pytest.approx(0.1 + 0.035 + 50 * 0.040 / 8)
    assert parts.work.mean_seconds(parts.costs, 1) == pytest.approx(0.1 + 0.035 + 50 * 0.010)
    assert parts.costs.step(3) == pytest.approx(0.020)
    assert parts.costs.run(14) == pytest.approx(0.025 + 10 / 1000)
    with pytest.raises(ValueError, match="16 answers at once were not measured"):
        parts.costs.step(16)


def test_a_batch_takes_longer_at_its_end(parts: Any) -> None:
    seconds = parts.work.batch_seconds
    serial = 0.1 + 0.035
    assert seconds(parts.costs, [parts.answer] * 8, 8) == pytest.approx(8 * serial + 50 * 0.040)
    assert seconds(parts.costs, [parts.answer] * 9, 8) == pytest.approx(9 * serial + 50 * 0.040 + 50 * 0.010)
    short = replace(parts.answer, steps=20)
    found = seconds(parts.costs, [parts.answer, short], 8)
    assert found == pytest.approx(2 * serial + 20 * 0.016 + 30 * 0.010)
    assert seconds(parts.costs, [], 8) == 0


@pytest.mark.slow
def test_a_long_job_answers_as_many_documents_as_the_formula_says(parts: Any) -> None:
    found = parts.simulation.simulate(parts.costs, cluster(parts, documents=1_000_000))
    formula = 40 * 3600 / parts.work.mean_seconds(parts.costs, 8)
    assert 0.95 * formula < found.documents_per_hour < formula
    assert found.cost == pytest.approx(0.5 * found.node_hours)
    assert found.node_hours == pytest.approx(10 * found.hours)
    assert found.lost_nodes == found.repeated_documents == 0


def test_a_job_takes_at_least_its_starts_and_one_batch(parts: Any) -> None:
    found = parts.simulation.simulate(parts.costs, cluster(parts, documents=1, nodes=1, actors_per_node=1))
    alone = parts.work.batch_seconds(parts.costs, [parts.answer], 8)
    assert 0.75 * 60 + 5 + alone <= 3600 * found.hours <= 1.25 * 60 + 5 + alone


@pytest.mark.slow
def test_lost_nodes_cost_time_and_answer_their_batches_again(parts: Any) -> None:
    calm, rough = (
        parts.simulation.simulate(parts.costs, cluster(parts, documents=1_000_000, lost=lost)) for lost in (0.0, 1.0)
    )
    assert rough.lost_nodes > 10
    assert 0 < rough.repeated_documents <= rough.lost_nodes * 4 * 64
    assert rough.hours > calm.hours
    assert rough.cost > calm.cost


def test_a_cluster_that_answers_nothing_is_refused(parts: Any) -> None:
    with pytest.raises(ValueError, match="answers nothing"):
        parts.simulation.simulate(parts.costs, cluster(parts, actors_per_node=0))


def test_costs_are_read_as_they_are_written(parts: Any) -> None:
    assert parts.work.Costs.read(json.loads(json.dumps(asdict(parts.costs)))) == parts.costs


def test_prompts_come_from_a_file(parts: Any, tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('"a"\n\n{"prompt": "b"}\n{"messages": [{"role": "user", "content": "c"}]}\n')
    assert parts.sample.make_prompts(3, str(path)) == ["a", "b", [{"role": "user", "content": "c"}]]
    with pytest.raises(ValueError, match="has 3 prompts, and 4 are needed"):
        parts.sample.make_prompts(4, str(path))
    path.write_text("7\n")
    with pytest.raises(TypeError, match=r"own.jsonl:1: a prompt is a text"):
        parts.sample.make_prompts(1, str(path))
    assert parts.sample.make_prompts(2, None) == parts.sample.make_prompts(3, None)[:2]


def program(patch: pytest.MonkeyPatch, *arguments: object) -> None:
    """Runs the program in this process."""
    patch.setattr(sys, "argv", [str(PROGRAM), *map(str, arguments)])
    runpy.run_path(str(PROGRAM), run_name="__main__")


@pytest.mark.slow
def test_a_prediction_is_printed_beside_the_formula_and_kept(
    parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({"costs": asdict(parts.costs)}))
    asked = ("predict", path, "--documents", 100_000, "--nodes", 10, "--cpus-per-node", 4, "--keep")
    for _ in range(2):
        program(monkeypatch, *asked)
    assert "10 nodes x 4 actors x 3600 / seconds = " in capsys.readouterr().out
    (plan,) = json.loads(path.read_text())["plans"]
    assert plan["formula_per_hour"] > plan["result"]["documents_per_hour"]
    assert plan["node_bytes"] == 2**27 + 4 * 2**29
    with pytest.raises(SystemExit, match="measure with --threads 2"):
        program(monkeypatch, *asked, "--cpus-per-actor", 2)
