"""``python -m tests.soundness``: a search of any size, with its seeds; exits with 1 if anything is wrong."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.soundness.search import Case, Tally, walk_model, walk_schema
from tests.support import real_vocabulary, small_vocabulary

CHUNK = 50
"""Seeds that are searched between two looks at the clock."""


def search(what: str, size: int, values: int, vocabulary: str, seeds: range) -> Tally:
    """The part of a search that has some seeds."""
    tally = Tally()
    words = None if what == "schemas" else small_vocabulary() if vocabulary == "small" else real_vocabulary(vocabulary)
    for seed in seeds:
        try:
            if what == "schemas":
                Case(seed, tally).check(values)
            else:
                assert words is not None
                (walk_schema if what == "walks" else walk_model)(seed, words, tally)
        except Exception:  # noqa: BLE001 - the search goes on, and fails in the end
            tally.note("WRONG: an exception", f"{what} {seed}", traceback.format_exc()[-1_500:])
        if tally.counts[{"schemas": "schemas"}.get(what, "walks")] >= size:
            break
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soundness", description=__doc__)
    parser.add_argument("--schemas", type=int, default=0, help="random schemas to try texts with")
    parser.add_argument("--values", type=int, default=40, help="texts for each of them (%(default)s)")
    parser.add_argument("--walks", type=int, default=0, help="walks over random schemas")
    parser.add_argument("--models", type=int, default=0, help="walks over random Pydantic models")
    parser.add_argument("--vocabulary", default="small", help="of the walks: small, or a real one's name (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (%(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="processes (%(default)s)")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many")
    parser.add_argument(
        "--findings", type=Path, help="a file for what is wrong, disputed or unexplained, as JSON lines"
    )
    arguments = parser.parse_args()
    total = Tally()
    for what in ("schemas", "walks", "models"):
        if size := getattr(arguments, what):
            total.add(run(what, size, arguments))
    if arguments.findings:
        lines = [json.dumps(finding._asdict(), ensure_ascii=False) for finding in total.findings]
        arguments.findings.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for finding in total.wrong[:20]:
        print(*finding, sep=" | ")
    sys.exit(1 if total.wrong else 0)


def run(what: str, size: int, arguments: argparse.Namespace) -> Tally:
    """Searches until enough was compared; prints what came of it."""
    total, seed, start = Tally(), arguments.seed, time.monotonic()
    key = "schemas" if what == "schemas" else "walks"
    with ProcessPoolExecutor(arguments.processes) as pool:
        while total.counts[key] < size and time.monotonic() - start < arguments.seconds:
            blocks = [range(first, first + CHUNK) for first in range(seed, seed + CHUNK * arguments.processes, CHUNK)]
            seed += CHUNK * arguments.processes
            part = partial(search, what, size - total.counts[key], arguments.values, arguments.vocabulary)
            for tally in map(part, blocks) if arguments.processes == 1 else pool.map(part, blocks):
                total.add(tally)
    print(f"{what}: seeds {arguments.seed} to {seed - 1}, {time.monotonic() - start:.0f} s")
    for kind, count in sorted(total.counts.items()):
        print(f"  {count:8} {kind}")
    return total


if __name__ == "__main__":
    main()
