"""What copies of a model in faster formats bring, and what they cost: speed, divergence, right calls.

    python benchmarks/prepared.py                             the default model, limits of 0.02, 0.1 and infinity
    python benchmarks/prepared.py --accuracy accuracy.json    with the calls that benchmarks/accuracy.py found right

For each limit of divergence, ``constrain prepare`` makes a copy. The file and its copies then write answers to the same
prompts, one at a time and eight at a time, in turns. Prompts are evaluated before: rates count the tokens of answers.
``--accuracy`` names a report of ``benchmarks/accuracy.py`` that has the file and its copies by their file names; copies
are called as ``--keep`` shows.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llama_cpp
from about import origin
from batch import SCHEMA, SUBJECTS, SYSTEM

import constrain
from constrain.llama.model import default_model_path
from constrain.llama.weights.copies import prepare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AT_ONCE = 8
OPTIONS: dict[str, Any] = {"schema": SCHEMA, "show_schema": False, "temperature": 0}


def main() -> None:
    """Makes the copies, measures all, prints the numbers and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a GGUF file; the default model if none")
    parser.add_argument("--limits", type=float, nargs="*", default=[0.02, 0.1, math.inf], help="nats a token")
    parser.add_argument("--keep", type=Path, default=Path("prepared"), help="folder for the copies (%(default)s)")
    parser.add_argument("--prompts", type=int, default=8, help="how many prompts (%(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="rounds (%(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads (all cores)")
    parser.add_argument("--accuracy", type=Path, help="a report of benchmarks/accuracy.py")
    parser.add_argument("--output", type=Path, default=Path("prepared.json"), help="where the numbers go")
    arguments = parser.parse_args()
    source = arguments.model or default_model_path()
    rows: list[dict[str, Any]] = [{"limit": None, "path": source}]
    for limit in arguments.limits:
        rows.append({"limit": limit, **make(source, arguments.keep / f"prepared-{limit:g}.gguf", limit, arguments)})
        print(rows[-1], file=sys.stderr)
    files = {row["path"]: constrain.Model(row["path"], n_ctx=1024, n_threads=arguments.threads) for row in rows}
    rates = measure(files, arguments.prompts, arguments.repeat)
    right = {} if arguments.accuracy is None else json.loads(arguments.accuracy.read_text(encoding="utf-8"))["models"]
    for row in rows:
        path = row.pop("path")
        found = right.get(path.name, {}).get("constrained")
        row |= {"file": path.name, "tokens_per_second": rates[path], "calls": found and found.get("calls")}
    report = {
        **origin(),
        "llama_cpp": llama_cpp.__version__,
        "threads": arguments.threads,
        "model": source.name,
        "rows": [{**row, "limit": None if row["limit"] in (None, math.inf) else row["limit"]} for row in rows],
    }
    arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report["rows"], indent=1))


def make(source: Path, target: Path, limit: float, arguments: argparse.Namespace) -> dict[str, Any]:
    """Makes a copy, unless an earlier run has; returns what ``prepare`` found."""
    record = target.with_suffix(".json")
    if not record.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        found = prepare(source, target, n_threads=arguments.threads, max_divergence=limit)
        seconds = time.perf_counter() - started
        record.write_text(json.dumps({**asdict(found), "seconds": seconds}, default=str), encoding="utf-8")
    kept: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    return {**kept, "path": Path(kept["path"])}


def measure(files: Mapping[Path, constrain.Model], prompts: int, repeat: int) -> dict[Path, tuple[float, float]]:
    """Tokens per second of each file, one at a time and eight at a time: medians of rounds in turns."""
    asked = [
        [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Make up a book about {subject}."}]
        for subject in SUBJECTS[:prompts]
    ]
    for model in files.values():
        constrain.complete_batch(model, asked[:AT_ONCE], max_tokens=60, **OPTIONS)
        constrain.complete(model, asked[0], max_tokens=60, **OPTIONS)
    found: dict[Path, tuple[list[float], list[float]]] = {path: ([], []) for path in files}
    for _ in range(repeat):
        for path, model in files.items():
            one, several = found[path]
            one.append(rate([constrain.complete(model, prompt, **OPTIONS) for prompt in asked[:4]]))
            started = time.perf_counter()
            answers = constrain.complete_batch(model, asked, **OPTIONS)
            several.append(sum(each.usage.completion_tokens for each in answers) / (time.perf_counter() - started))
    return {path: (statistics.median(one), statistics.median(several)) for path, (one, several) in found.items()}


def rate(answers: Sequence[constrain.Completion]) -> float:
    """Tokens per second of answers that were written one after the other."""
    tokens = sum(each.usage.completion_tokens for each in answers)
    return tokens / sum(each.timings.generation for each in answers)


if __name__ == "__main__":
    main()
