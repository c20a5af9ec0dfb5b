"""Documents an hour, hours and cost of a job on a cluster: measured here, predicted for there, and checked with Ray.

    python benchmarks/cluster measure --output costs.json                 two actors of one thread, the default model
    python benchmarks/cluster measure --model m.gguf --prompts own.jsonl --schema own.json --output costs.json
    python benchmarks/cluster predict costs.json --documents 10000000 --nodes 200 --cpus-per-node 8 --price 0.40
    python benchmarks/cluster check costs.json --documents 1000           answers them with Ray on this machine

``measure`` writes a file, which the others read. ``predict --keep`` and ``check`` add their results to it. A file of
prompts is one of ``constrain batch``; without it, made-up notes about people are read. ``measuring`` explains what is
measured, ``work`` the model of cost, ``simulation`` how a cluster is simulated, ``checking`` what Ray has to show.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # for the module about

from about import origin
from checking import check
from measuring import Setting, measure
from simulation import Cluster, simulate
from work import Costs, mean_seconds

STEADY = 1.1
"""Ratio of the median of the rounds to the least beyond which ``measure`` says that it was disturbed."""


def main() -> None:
    """Runs one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_measure(commands.add_parser("measure", help="measure the costs of this machine, and write them to a file"))
    _add_predict(commands.add_parser("predict", help="documents an hour, hours, cost and memory of a job on a cluster"))
    _add_check(commands.add_parser("check", help="compare the prediction with Ray on this machine"))
    arguments = parser.parse_args()
    commanded = {"measure": _measure, "predict": _predict, "check": _check}
    commanded[arguments.command](arguments)


def _add_measure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, help="GGUF file (the default model)")
    parser.add_argument("--actors", type=int, default=2, help="processes that compute at once, as on a node (2)")
    parser.add_argument("--threads", type=int, default=1, help="threads of each, the CPUs of an actor (1)")
    parser.add_argument("--parallel", type=int, default=8, help="answers that each writes at once (8)")
    parser.add_argument("--context", type=int, default=2048, help="tokens of context of each answer (2048)")
    parser.add_argument("--prompts", type=Path, help="file of prompts, as of constrain batch (made-up notes)")
    parser.add_argument("--schema", type=Path, help="JSON Schema of the answers (that of the made-up notes)")
    parser.add_argument("--max-tokens", type=int, default=200, help="the most tokens of an answer (200)")
    parser.add_argument("--sample", type=int, default=64, help="prompts whose tokens are counted (64)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each cost (5)")
    parser.add_argument("--output", type=Path, default=Path("cluster.json"), help="where the costs go (%(default)s)")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("costs", type=Path, help="a file that measure has written")
    parser.add_argument("--documents", type=int, default=10_000_000, help="documents (10,000,000)")
    parser.add_argument("--nodes", type=int, default=200, help="nodes (200)")
    parser.add_argument("--cpus-per-node", type=int, default=8, help="CPUs of a node (8)")
    parser.add_argument("--cpus-per-actor", type=int, help="CPUs of an actor (as measured)")
    parser.add_argument("--parallel", type=int, help="answers that an actor writes at once (as measured)")
    parser.add_argument("--batch-size", type=int, help="rows of a call of an actor (8 for each answer at once)")
    parser.add_argument("--price", type=float, default=0.4, help="price of a node for an hour (0.40)")
    parser.add_argument("--lost", type=float, default=0.0, help="nodes that are lost, for each node and hour (0)")
    parser.add_argument("--node-start", type=float, default=180, help="seconds until a new node is there (180)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulation (0)")
    parser.add_argument("--keep", action="store_true", help="write the prediction into the file, too")


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("costs", type=Path, help="a file that measure has written here, with the same prompts")
    parser.add_argument("--documents", type=int, default=1000, help="documents (1,000)")
    parser.add_argument("--batch-size", type=int, help="rows of a call of an actor (8 for each answer at once)")


def _measure(arguments: argparse.Namespace) -> None:
    setting = Setting(
        None if arguments.model is None else str(arguments.model.absolute()),
        arguments.actors,
        arguments.threads,
        arguments.parallel,
        arguments.context,
        None if arguments.prompts is None else str(arguments.prompts.absolute()),
        None if arguments.schema is None else str(arguments.schema.absolute()),
        arguments.max_tokens,
    )
    costs, about = measure(setting, arguments.sample, arguments.rounds)
    prompts, runs, steps = costs.mean_work()
    work = {
        "evaluated": costs.mean_evaluated(),
        "prompt_seconds": prompts,
        "runs": costs.mean_runs(),
        "run_seconds": runs,
    }
    work |= {"steps": steps, "seconds": mean_seconds(costs, costs.parallel)}
    report = {**origin(), **about, "setting": asdict(setting), "work": work, "costs": asdict(costs)}
    _write(arguments.output, report)
    print(explain(costs))
    measured, predicted = about["sample_seconds"], about["sample_predicted_seconds"]
    print(f"the sample: {measured:.1f} s, predicted {predicted:.1f} s ({predicted / measured:.2f})")
    if about["noise"] > STEADY:
        print(
            f"rounds differ by a factor of {about['noise']:.2f}: something else computes here; measure again without it"
        )
    print(f"written to {arguments.output}")


def _predict(arguments: argparse.Namespace) -> None:
    report = json.loads(arguments.costs.read_text(encoding="utf-8"))
    costs = Costs.read(report["costs"])
    threads = arguments.cpus_per_actor or costs.threads
    if threads != costs.threads:
        raise SystemExit(
            f"{arguments.costs} was measured with {costs.threads} threads: measure with --threads {threads}, too"
        )
    parallel = arguments.parallel or costs.parallel
    cluster = Cluster(
        arguments.documents,
        arguments.nodes,
        arguments.cpus_per_node // threads,
        parallel,
        arguments.batch_size or 8 * parallel,
        arguments.price,
        arguments.lost,
        arguments.node_start,
    )
    result = simulate(costs, cluster, arguments.seed)
    rate = cluster.nodes * cluster.actors_per_node * 3600 / mean_seconds(costs, parallel)
    memory = costs.node_bytes(cluster.actors_per_node)
    found = {"cluster": asdict(cluster), "cpus_per_node": arguments.cpus_per_node, "seed": arguments.seed}
    found |= {"result": asdict(result), "formula_per_hour": rate, "node_bytes": memory}
    print(explain(costs, parallel))
    print(f"formula: {cluster.nodes} nodes x {cluster.actors_per_node} actors x 3600 / seconds = {rate:,.0f} an hour")
    print(f"simulated: {result.documents_per_hour:,.0f} documents an hour; {result.hours:.2f} hours")
    print(f"node-hours: {result.node_hours:,.1f}; cost: {result.cost:,.2f}")
    print(f"lost nodes: {result.lost_nodes}; documents answered again: {result.repeated_documents:,}")
    print(f"memory of a node, without Ray's own: {memory / 2**30:.1f} GiB")
    if arguments.keep:
        report.setdefault("plans", [])
        report["plans"] = [one for one in report["plans"] if one["cluster"] != found["cluster"]] + [found]
        _write(arguments.costs, report)


def _check(arguments: argparse.Namespace) -> None:
    report = json.loads(arguments.costs.read_text(encoding="utf-8"))
    costs, setting = Costs.read(report["costs"]), Setting(**report["setting"])
    found = check(costs, setting, arguments.documents, arguments.batch_size or 8 * setting.parallel)
    report["check"] = {**origin(), **found}
    _write(arguments.costs, report)
    for name in ("one", "all"):
        one = found[name]
        print(
            f"{one['actors']} actors: {one['documents_per_hour']:,.0f} documents an hour, "
            f"{one['whole_per_hour']:,.0f} with the start; wall-clock {one['seconds']:.1f} s, "
            f"of these {one['start_seconds']:.1f} s until the first actor answers"
        )
    print(f"predicted: {found['predicted_per_hour']:,.0f}; predicted / measured: {found['ratio']:.3f}")
    print(f"with the start: {found['predicted_whole_per_hour']:,.0f}; ratio {found['whole_ratio']:.3f}")
    print(f"{setting.actors} actors are {found['times_one']:.2f} times as fast as one")
    print(f"rows equal to those of constrain batch: {found['equal_rows']} of {arguments.documents}")


def explain(costs: Costs, parallel: int | None = None) -> str:
    """Returns the model of cost with its numbers: the work of one answer in steady state."""
    parallel = parallel or costs.parallel
    prompt, runs, steps = costs.mean_work()
    one = costs.step(parallel) * 1000
    lines = [
        f"prompt: {costs.mean_evaluated():.1f} tokens at {costs.prompt_rate:.1f} a second = {prompt * 1000:.0f} ms",
        f"forced text: {costs.mean_runs():.1f} runs = {runs * 1000:.0f} ms",
        f"steps: {steps:.1f} x cost({parallel}) ({one:.1f} ms) / {parallel} = {steps * one / parallel:.0f} ms",
        f"seconds a document of one actor: {mean_seconds(costs, parallel):.3f}",
    ]
    return "\n".join(lines)


def _write(path: Path, report: dict[str, Any]) -> None:
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
