"""Time and memory to load the values of a table, and mask times of ``OneOf``, by the number of values.

python benchmarks/one_of.py llama-bpe.gguf

The values are names of customers, by turns: made of random words, with a running number behind a common beginning, and
short codes. Each walk reads one value token by token and computes every mask: some values with nothing known of the
table ("alone"), then many one after the other ("cold"), then the same once more ("warm"). The names are also an
``enum`` of constrain and of llguidance ("others"); where that fails or takes over two minutes, the reason is kept.
Each size has a process of its own. Writes one_of.json.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from about import origin
from masks import ENGINES, Tokens, longest_match

import constrain

SIZES = (1_000, 100_000, 1_000_000)
WALKS = 300
ALONE = 20
OTHERS = ("constrain", "llguidance")
PATIENCE = 120
SYLLABLES = (
    *("an", "ber", "co", "den", "el", "fir", "gar", "hol", "in", "jor", "ka", "len", "mar", "nor", "o", "pe"),
    *("quin", "ros", "sten", "tor", "ul", "van", "wil", "ya", "zim", "é", "ß"),
)


def values_of(kind: str, count: int) -> list[str]:
    """Returns different values; ``kind``: names, numbered or codes."""
    rng = random.Random(7)

    def word() -> str:
        return "".join(rng.choices(SYLLABLES, k=rng.randint(2, 3))).capitalize()

    if kind == "numbered":
        return [f"Customer {number:08}" for number in rng.sample(range(10 * count), count)]
    made: dict[str, None] = {}
    while len(made) < count:
        name = f"{word()} {word()} {word()}" if kind == "names" else f"{rng.randrange(36**6):06x}"
        made[name] = None
    return list(made)


def resident() -> int:
    """Returns the bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def walk(constraint: constrain.Constraint, answers: list[list[int]]) -> list[float]:
    """Returns the seconds of all masks."""
    row, seconds = constraint.allocate_bitmask()[0], []
    for tokens in answers:
        matcher = constraint.matcher()
        for token in tokens:
            begin = time.perf_counter()
            matcher.fill_bitmask(row)
            seconds.append(time.perf_counter() - begin)
            assert matcher.accept(token)
    return seconds


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Returns percentiles in microseconds."""
    return {f"p{at}": round(float(np.percentile(seconds, at)) * 1e6, 1) for at in (50, 90, 99, 100)}


def measure(path: str, kind: str, count: int) -> dict[str, Any]:
    """Returns the figures of one table."""
    vocabulary = constrain.Vocabulary.from_gguf(path)
    split = longest_match(Tokens.of(Path(path), vocabulary))
    values = values_of(kind, count)
    constrain.compile({"type": "string"}, vocabulary, cache=False).matcher().shortest_completion()
    before = resident()
    begin = time.perf_counter()
    annotation: Any = constrain.OneOf(values)
    loaded = time.perf_counter()
    grown = resident() - before
    constraint = constrain.compile(Annotated[str, annotation], vocabulary, cache=False)
    compiled = time.perf_counter()
    answers = [
        list(split(json.dumps(value, ensure_ascii=False).encode())) for value in random.Random(1).sample(values, WALKS)
    ]
    cold, warm = walk(constraint, answers), walk(constraint, answers)
    full = round((resident() - before) / 1e6, 1)
    alone = []
    for answer in answers[:ALONE]:
        fresh = constrain.Vocabulary.from_gguf(path)
        alone += walk(constrain.compile(Annotated[str, annotation], fresh, cache=False), [answer])
    return {
        "load_ms": round((loaded - begin) * 1e3, 1),
        "load_mb": round(grown / 1e6, 1),
        "compile_ms": round((compiled - loaded) * 1e3, 1),
        "alone_us": percentiles(alone),
        "cold_us": percentiles(cold),
        "warm_us": percentiles(warm),
        "all_mb": full,
    }


def measure_enum(path: str, engine: str, count: int) -> dict[str, Any]:
    """Returns the figures of an ``enum`` of names; its values are read when it is compiled."""
    tokens = Tokens.of(Path(path), constrain.Vocabulary.from_gguf(path))
    split, values = longest_match(tokens), values_of("names", count)
    made = ENGINES[engine].start(tokens)
    made.compile({"enum": ["one"]})
    before, begin = resident(), time.perf_counter()
    try:
        start = made.compile({"enum": values})
        seconds = time.perf_counter() - begin
        passes = []
        for _ in range(2):
            spent = []
            for value in random.Random(1).sample(values, WALKS):
                session, _ = start()
                for token in split(json.dumps(value, ensure_ascii=False).encode()):
                    begin = time.perf_counter()
                    session.mask()
                    spent.append(time.perf_counter() - begin)
                    session.accept(token)
            passes.append(percentiles(spent))
    except Exception as error:  # noqa: BLE001 - of any engine
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    grown = round((resident() - before) / 1e6, 1)
    return {"compile_ms": round(seconds * 1e3, 1), "cold_us": passes[0], "warm_us": passes[1], "all_mb": grown}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vocabulary", help="a GGUF file")
    parser.add_argument("--write", type=Path, default=Path("one_of.json"))
    parser.add_argument("--only", help="a kind and a number of values, measured in this process and printed")
    arguments = parser.parse_args()
    if arguments.only:
        kind, count = arguments.only.split()
        measured = measure_enum if kind in ENGINES else measure
        print(json.dumps(measured(arguments.vocabulary, kind, int(count))))
        return
    report: dict[str, Any] = {**origin(), "vocabulary": Path(arguments.vocabulary).name}
    for kind in ("names", "numbered", "codes", *OTHERS):
        for count in SIZES:
            command = [sys.executable, __file__, arguments.vocabulary, "--only", f"{kind} {count}"]
            try:
                done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
                found = json.loads(done.stdout)
            except subprocess.TimeoutExpired:
                found = {"error": f"more than {PATIENCE} seconds"}
            print(kind, count, found, flush=True)
            place = report.setdefault("others", {}) if kind in OTHERS else report
            place.setdefault(kind, {})[str(count)] = found
    arguments.write.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
