"""What a cache directory saves: time to first mask and time between masks in a process that finds constraints kept.

    pip install ".[bench]"
    python benchmarks/cache.py --vocabulary llama-bpe.gguf --schemas schemas.jsonl.xz --output cache.json

The largest schemas that compile (``--count``) go through fresh processes, on one core: *cold* ones without a cache; one
that keeps each constraint after ``precompute()``; ones that find them. So do others for constraints kept after their
instances were walked, so that all masks met are kept, too. Each process has compiled something small before: imports
and what all schemas share are not counted. Of ``--repeat`` processes of a kind the least time of every step counts.
*Warm* times are those of a second walk in the same process. All masks of all processes are compared, bit by bit.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from masks import Tokens, longest_match, read_schemas
from rich.console import Console
from rich.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

CLOCKS = {"wall": time.perf_counter_ns, "processor": time.thread_time_ns}
WARM_UP = {"type": "object", "properties": {"text": {"type": "string"}, "number": {"type": "number"}}}


def serve(
    cache: str, vocabulary_path: str, tasks: list[Any], keep: str, clock_name: str, core: int, answers: Connection
) -> None:
    """One process: all schemas, one after the other. ``keep``: "" or "precomputed" or "met"."""
    os.sched_setaffinity(0, {core})
    os.environ["CONSTRAIN_CACHE"] = cache
    import constrain

    vocabulary = constrain.Vocabulary.from_gguf(vocabulary_path)
    end = vocabulary.eos[0]
    constrain.compile(WARM_UP, vocabulary, cache=False).precompute(max_masks=50)
    clock = CLOCKS[clock_name]
    results, alive = [], []
    for text, instances in tasks:
        gc.collect()
        gc.disable()
        begin = clock()
        try:
            constraint = constrain.compile(text, vocabulary)
            row = constraint.allocate_bitmask()[0]
            constraint.matcher().fill_bitmask(row)
        except constrain.ConstrainError as error:
            results.append({"error": str(error)})
            continue
        finally:
            gc.enable()
        result: dict[str, Any] = {"first": clock() - begin}
        if keep == "met":
            for token_ids in instances:
                walk(constraint, row, token_ids, end, clock)
        if keep:
            begin = clock()
            done = constraint.precompute()
            result.update(keep=clock() - begin, masks=done.masks, bytes=done.file.stat().st_size)
        else:
            gc.disable()
            result["walks"] = [walk(constraint, row, token_ids, end, clock) for token_ids in instances]
            result["again"] = [walk(constraint, row, token_ids, end, clock) for token_ids in instances]
            gc.enable()
            result["digest"] = digest(constraint, row, instances)
        results.append(result)
        alive.append(constraint)
    answers.send(results)


def walk(constraint: Any, row: np.ndarray, token_ids: list[int], end: int, clock: Callable[[], int]) -> list[int]:
    """Nanoseconds of each mask and accept, as far as the tokens are allowed."""
    matcher = constraint.matcher()
    steps = []
    for token in [*token_ids, end]:
        begin = clock()
        matcher.fill_bitmask(row)
        accepted = matcher.accept(token)
        steps.append(clock() - begin)
        if not accepted:
            break
    return steps


def digest(constraint: Any, row: np.ndarray, instances: list[list[int]]) -> str:
    """Of all masks along the instances."""
    digest = hashlib.sha256()
    for token_ids in instances:
        matcher = constraint.matcher()
        for token in token_ids:
            matcher.fill_bitmask(row)
            digest.update(row.tobytes())
            if not matcher.accept(token):
                break
    return digest.hexdigest()


def in_a_process(*arguments: Any) -> list[dict[str, Any]]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    core = max(os.sched_getaffinity(0))
    process = context.Process(target=serve, args=(*arguments, core, theirs))
    process.start()
    theirs.close()
    try:
        results: list[dict[str, Any]] = ours.recv()
    finally:
        process.join()
    return results


def least(passes: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Of several processes that did the same, the least time of every step."""
    merged = []
    for same in zip(*passes, strict=True):
        result = dict(same[0])
        result["first"] = min(each["first"] for each in same)
        for kind in ("walks", "again"):
            result[kind] = [list(map(min, *walks)) if len(same) > 1 else walks[0] for walks in zip_walks(same, kind)]
        result["equal"] = len({each["digest"] for each in same}) == 1
        merged.append(result)
    return merged


def zip_walks(same: tuple[dict[str, Any], ...], kind: str) -> list[tuple[list[int], ...]]:
    return list(zip(*(each[kind] for each in same), strict=True))


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    import constrain

    vocabulary = constrain.Vocabulary.from_gguf(arguments.vocabulary)
    texts = [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]
    split = longest_match(Tokens(str(arguments.vocabulary), texts, sorted(vocabulary.special), vocabulary.eos[0]))
    entries = read_schemas(arguments.schemas)
    entries.sort(key=lambda entry: -len(json.dumps(entry["schema"])))
    tasks: list[Any] = []
    for entry in entries:
        if any(json.dumps(entry["schema"]) == text for text, _ in tasks):
            continue  # remembered
        try:
            constrain.compile(entry["schema"], vocabulary)
        except constrain.ConstrainError:
            continue
        instances = [json.dumps(t["data"], ensure_ascii=False).encode() for t in entry["tests"] if t["valid"]]
        tasks.append((json.dumps(entry["schema"]), [list(split(text)) for text in instances]))
        if len(tasks) == arguments.count:
            break
    path = str(arguments.vocabulary)
    repeat, clock = range(arguments.repeat), arguments.clock
    with tempfile.TemporaryDirectory() as folder:
        kept = {kind: in_a_process(f"{folder}/{kind}", path, tasks, kind, clock) for kind in ("precomputed", "met")}
        passes = {
            "cold": [in_a_process("", path, tasks, "", clock) for _ in repeat],
            "precomputed": [in_a_process(f"{folder}/precomputed", path, tasks, "", clock) for _ in repeat],
            "met": [in_a_process(f"{folder}/met", path, tasks, "", clock) for _ in repeat],
        }
    return report(tasks, kept, {kind: least(each) for kind, each in passes.items()}) | {
        "vocabulary": {"file": Path(path).name, "n_vocab": vocabulary.n_vocab},
        "repeat": arguments.repeat,
        "clock": arguments.clock,
    }


def report(tasks: list[Any], kept: dict[str, Any], found: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    def spread(values: list[float]) -> dict[str, float]:
        return {f"p{p:g}": round(float(np.percentile(values, p)) / 1000, 2) for p in (50, 90, 99, 100)}

    def steps(results: list[dict[str, Any]], kind: str) -> list[float]:
        return [step for result in results for walk in result[kind] for step in walk]

    cold = [result["first"] for result in found["cold"]]
    answer: dict[str, Any] = {
        "schemas": len(tasks),
        "instances": sum(len(instances) for _, instances in tasks),
        "cold": {
            "first_us": spread(cold),
            "between_us": spread(steps(found["cold"], "walks")),
            "warm_us": spread(steps(found["cold"], "again")),
        },
    }
    for kind in ("precomputed", "met"):
        ratios = [result["first"] / before for result, before in zip(found[kind], cold, strict=True)]
        between, warm = steps(found[kind], "walks"), steps(found[kind], "again")
        digests = [result["digest"] for result in found["cold"]]
        answer[kind] = {
            "first_us": spread([result["first"] for result in found[kind]]),
            "first_to_cold": {f"p{p}": round(float(np.percentile(ratios, p)), 3) for p in (50, 90, 100)},
            "first_within_a_fifth_of_cold": round(sum(ratio <= 0.2 for ratio in ratios) / len(ratios), 3),
            "first_by_schema_us": [
                (len(text), before / 1000, result["first"] / 1000)
                for (text, _), before, result in zip(tasks, cold, found[kind], strict=True)
            ],
            "between_us": spread(between),
            "warm_us": spread(warm),
            "p99_to_warm": round(float(np.percentile(between, 99) / np.percentile(warm, 99)), 2),
            "masks_equal": all(r["equal"] and r["digest"] == d for r, d in zip(found[kind], digests, strict=True)),
            "masks_computed": int(np.median([result["masks"] for result in kept[kind]])),
            "keep_ms": round(float(np.median([result["keep"] for result in kept[kind]])) / 1e6, 1),
            "file_kib": int(np.median([result["bytes"] for result in kept[kind]])) >> 10,
        }
    return answer


def print_table(answer: dict[str, Any]) -> None:
    console = Console(width=130)
    console.print(
        f"{answer['schemas']} schemas, {answer['instances']} instances; {answer['vocabulary']['file']}; microseconds"
    )
    names = ("", "first p50", "p90", "max", "to cold p50", "max", "between p50", "p99", "warm p99", "to warm")
    table = Table(*(Column(name, no_wrap=True) for name in names))
    for kind in ("cold", "precomputed", "met"):
        row = answer[kind]
        ratio = row.get("first_to_cold", {"p50": 1, "p100": 1})
        first, between = row["first_us"], row["between_us"]
        cells = (first["p50"], first["p90"], first["p100"], ratio["p50"], ratio["p100"], between["p50"], between["p99"])
        table.add_row(kind, *map(str, cells), str(row["warm_us"]["p99"]), str(row.get("p99_to_warm", "")))
    console.print(table)
    for kind in ("precomputed", "met"):
        row = answer[kind]
        console.print(
            f"{kind}: {row['masks_computed']} masks computed and kept in {row['keep_ms']} ms, {row['file_kib']} KiB "
            f"(medians); first mask within a fifth of cold: {row['first_within_a_fifth_of_cold']:.0%} of schemas; "
            f"masks equal: {row['masks_equal']}"
        )


def main() -> None:
    os.environ["CONSTRAIN_CACHE"] = ""
    data = Path(os.environ.get("CONSTRAIN_DATA", "."))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path, default=data / "vocabs" / "ggml-vocab-llama-bpe.gguf")
    parser.add_argument("--schemas", type=Path, default=data / "maskbench-dev.jsonl.xz")
    parser.add_argument("--count", type=int, default=50, help="the largest that compile (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="processes of each kind (default: %(default)s)")
    parser.add_argument(
        "--clock", choices=list(CLOCKS), default="wall", help="processor: on a machine that is not idle"
    )
    parser.add_argument("--output", type=Path, default=Path("cache.json"))
    arguments = parser.parse_args()
    for path in (arguments.vocabulary, arguments.schemas):
        if not path.is_file():
            parser.error(f"{path} is no file; set CONSTRAIN_DATA, or give --vocabulary and --schemas")
    answer = run(arguments)
    arguments.output.write_text(json.dumps(answer, indent=1))
    print_table(answer)


if __name__ == "__main__":
    sys.exit(main())
