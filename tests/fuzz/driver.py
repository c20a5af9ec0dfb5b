"""The process that fuzzes: libFuzzer, by way of atheris, with what Python and the kernel have covered as its guide.

    python -m tests.fuzz.driver TARGET CORPUS SECONDS

Only ``python -m tests.fuzz`` starts it.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import random
import sys
from collections import Counter
from pathlib import Path

import atheris  # type: ignore[import-not-found]

os.environ["CONSTRAIN_CACHE"] = ""  # nobody's own cache is read or written to

_NAME, _CORPUS, _SECONDS = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])

_NOT_COVERED = ("constrain.cli", "constrain.batch", *(() if _NAME == "requests" else ("constrain.server",)))
"""Modules that the target has nothing to do with."""


def _import_all() -> None:
    """Imports the package's modules, most of which would be imported where they are first used, uninstrumented."""
    import constrain

    for module in pkgutil.walk_packages(constrain.__path__, "constrain."):
        if not module.name.startswith(_NOT_COVERED) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)


with atheris.instrument_imports(include=["constrain"], enable_loader_override=False):
    _import_all()

from tests.fuzz import targets  # noqa: E402 - what it imports is instrumented by now
from tests.fuzz.judge import judge  # noqa: E402

_TARGET = targets.load(_NAME)

_OF_ONE_KIND = 3
"""Inputs that are kept of one broken promise."""

_COSTLY = 40
"""Inputs that are kept for a replay with the kernel of users."""

_HANGS = 120
"""Seconds after which libFuzzer ends the process for an input that goes on."""

_BETWEEN_COUNTS = 100
"""Inputs after which it is written down what became of them."""

_seen: Counter[str] = Counter()
_outcomes: Counter[str] = Counter()


def _keep(folder: str, data: bytes, text: str, kind: str, most: int) -> None:
    _seen[kind] += 1
    if _seen[kind] > most:
        return
    path = _CORPUS / folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    if folder == "found":
        path.with_suffix(".txt").write_text(f"{kind}\n{text}\n", "utf-8", "backslashreplace")


def test_one_input(data: bytes) -> None:
    """Judges an input, and goes on whatever it did."""
    verdict = judge(_TARGET, data)
    _outcomes[verdict.outcome] += 1
    if _outcomes.total() % _BETWEEN_COUNTS == 0:  # libFuzzer ends the process without Python's knowing
        (_CORPUS / "outcomes.json").write_text(json.dumps(_outcomes))
    if verdict.problem:
        _keep("found", data, verdict.problem, verdict.signature, _OF_ONE_KIND)
        print(f"FOUND {verdict.signature!a}", flush=True)
    elif verdict.excess:
        _keep("costly", data, verdict.excess, "costly", _COSTLY)
        print(f"COSTLY {verdict.excess!a}", flush=True)


def mutated(data: bytes, max_size: int, seed: int) -> bytes:
    """What libFuzzer tries next."""
    rng = random.Random(seed)

    def mutate_bytes(piece: bytes) -> bytes:
        room = max_size - (len(data) - len(piece))
        return atheris.Mutate(piece[:room], room) if room > 0 else piece

    changed: bytes = _TARGET.mutate(data, rng, mutate_bytes)
    return changed if len(changed) <= max_size else data[:max_size]


def main() -> None:
    """Fuzzes until the time is up."""
    options = [
        sys.argv[0],
        *(f"-max_total_time={_SECONDS}", f"-max_len={_TARGET.MAX_SIZE}", f"-timeout={_HANGS}"),
        *("-report_slow_units=120", "-rss_limit_mb=8192", "-print_final_stats=1", "-len_control=0", "-reload=0"),
        f"-artifact_prefix={_CORPUS}/found/",
        str(_CORPUS / "inputs"),
        str(_CORPUS / "seeds"),
    ]
    atheris.Setup(options, test_one_input, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
