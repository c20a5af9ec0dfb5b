"""Fuzzes a target, or replays inputs.

    python -m tests.fuzz TARGET [--minutes 20] [--corpus DIR] [--sanitized DIR]
    python -m tests.fuzz TARGET --replay FILE...

Fuzzing takes a process of its own (``driver.py``), which is begun anew where an input ends it. What it finds is written
to ``DIR/found``: inputs that end the process or break a promise, each with a text that says how. What sanitizers and
instrumentation take is not what users wait for: inputs that take too much there are replayed last, each in a process
with the package that this one has, which says whether it is too much.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz import targets

_ROOT = Path(__file__).resolve().parent.parent.parent

_REPLAY_SECONDS = 60
"""Of computing, after which a replay is ended: far beyond all that is allowed."""


def main() -> int:
    """Does what the command line says; the exit status is 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=targets.NAMES)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--corpus", type=Path, help="where inputs are kept that reach something new")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="judge these inputs, and no more")
    parser.add_argument(
        "--sanitized", type=Path, help="where the package with the sanitizers' kernel is; see README.md"
    )
    options = parser.parse_args()
    if options.replay:
        return _replay(options.target, options.replay)
    corpus = options.corpus or _ROOT / "build" / "fuzz" / options.target
    environment = dict(os.environ) if options.sanitized is None else _with_sanitizers(options.sanitized.resolve())
    return _fuzz(options.target, options.minutes, corpus.resolve(), environment)


def _replay(name: str, files: list[Path]) -> int:
    from tests.fuzz.judge import judge

    target, wrong = targets.load(name), 0
    for file in files:
        verdict = judge(target, file.read_bytes())
        is_wrong = bool(verdict.problem or verdict.excess)
        wrong += is_wrong
        took = f"{verdict.seconds:.2f} s, {verdict.bytes >> 20} MiB"
        print(f"{'WRONG' if is_wrong else 'well '} {file}: {verdict.outcome}, {took} {verdict.excess}", flush=True)
        if verdict.problem:
            print(verdict.problem, flush=True)
    return min(wrong, 1)


def _with_sanitizers(package: Path) -> dict[str, str]:
    """The environment of a process whose kernel has AddressSanitizer, UndefinedBehaviorSanitizer and coverage.

    The interpreter is not instrumented, so the runtimes must be loaded first: that of the sanitizers, with libFuzzer in
    it; libstdc++, for exceptions to be intercepted; and what lets libFuzzer call a mutator in Python.
    """
    import atheris  # type: ignore[import-not-found]

    folder = Path(atheris.__file__).parent
    compiler = os.environ.get("CXX", "g++")
    found = subprocess.run([compiler, "-print-file-name=libstdc++.so"], check=True, capture_output=True, text=True)
    (mutator,) = folder.glob("custom_mutator.*.so")
    first = [str(folder.parent / "asan_with_fuzzer.so"), found.stdout.strip(), str(mutator)]
    path = os.pathsep.join((str(package), str(_ROOT), os.environ.get("PYTHONPATH", "")))
    return {
        **os.environ,
        "PYTHONPATH": path,
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=32",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "LD_PRELOAD": " ".join([*first, os.environ.get("LD_PRELOAD", "")]).strip(),
    }


def _fuzz(name: str, minutes: float, corpus: Path, environment: dict[str, str]) -> int:
    found = corpus / "found"
    for folder in (corpus / "inputs", found, corpus / "costly"):
        folder.mkdir(parents=True, exist_ok=True)
    seeds = corpus / "seeds"
    seeds.mkdir(exist_ok=True)
    for number, data in enumerate(targets.seeds_of(name)):
        (seeds / f"{number:03}").write_bytes(data)
    end, ended = time.monotonic() + 60 * minutes, 0
    executions, features = 0, 0
    while (left := end - time.monotonic()) > 1:
        log = corpus / f"log{ended}.txt"
        with log.open("wb") as output:
            command = [sys.executable, "-m", "tests.fuzz.driver", name, str(corpus), str(int(left))]
            # Not where the sources are: Python would import the package from there.
            done = subprocess.run(
                command, stdout=output, stderr=subprocess.STDOUT, check=False, env=environment, cwd=corpus
            )
        code = done.returncode
        written = log.read_text("utf-8", "replace")
        counts = [int(number) for number in re.findall(r"^#(\d+)\s", written, re.MULTILINE)]
        executions += max(counts, default=0)
        features = max([features, *(int(number) for number in re.findall(r" ft: (\d+)", written))])
        if code == 0:
            break
        ended += 1
        print(f"the process ended with {code}; the end of {log}:\n{written[-3000:]}", flush=True)
        if ended >= 20:
            break
    wrong = sorted(found.glob("*.txt"))
    costly = sorted(path for path in (corpus / "costly").iterdir() if path.suffix != ".txt")
    too_costly = [path for path in costly if not _is_cheap(name, path)]
    summary = {
        "target": name,
        "minutes": minutes,
        "executions": executions,
        "features": features,
        "corpus": len(list((corpus / "inputs").iterdir())),
        "ended processes": ended,
        "broken promises": len(wrong),
        "replayed for cost": len(costly),
        "too costly": [str(path) for path in too_costly],
    }
    text = json.dumps(summary, indent=2)
    (corpus / "summary.json").write_text(text)
    print(text)
    return 1 if ended or wrong or too_costly else 0


def _is_cheap(name: str, file: Path) -> bool:
    """Whether an input takes no more than it may of a process without sanitizers."""
    command = [sys.executable, "-m", "tests.fuzz", name, "--replay", str(file)]
    seconds = (_REPLAY_SECONDS, _REPLAY_SECONDS)
    done = subprocess.run(
        command, check=False, capture_output=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, seconds)
    )
    file.with_suffix(".txt").write_bytes(done.stdout + done.stderr)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
