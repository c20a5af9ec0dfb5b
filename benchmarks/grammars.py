"""What masks of Lark grammars cost: ours beside llguidance's, on the ready grammars and the texts of their tables.

    pip install ".[bench]"
    python benchmarks/grammars.py --vocabulary llama-bpe.gguf sql_select python_expression arithmetic file_patch

Each engine compiles each grammar anew for every pass and is fed the accepted texts, tokens always being the longest
that fit: *cold* times. Of ``--repeat`` passes, which alternate, the least time of every step counts. Time to first mask
is compile, matcher and mask; time between masks is mask and accept of one token. Of a text that some engine does not
take to its end, all are fed what it takes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomllib
from masks import LlguidanceEngine, LlguidanceSession, OurSession, Session, Tokens, longest_match
from rich.console import Console
from rich.table import Table

import constrain

if TYPE_CHECKING:
    from collections.abc import Callable

TABLES = Path(__file__).parent.parent / "grammars" / "tests"
OURS, PEER = "constrain", "llguidance"


@dataclass
class Times:
    """Seconds: to the first mask, and between masks, step by step; the least of all passes."""

    first: float = float("inf")
    steps: list[np.ndarray] = field(default_factory=list)

    def add(self, first: float, steps: list[np.ndarray]) -> None:
        self.first = min(self.first, first)
        known = self.steps or steps
        self.steps = [np.minimum(one, other) for one, other in zip(known, steps, strict=True)]


def ours(vocabulary: constrain.Vocabulary) -> Callable[[str], Callable[[], Session]]:
    def make(text: str) -> Callable[[], Session]:
        constraint = constrain.compile(constrain.Lark(text).grammar(), vocabulary, cache=False)
        return lambda: OurSession(constraint)

    return make


def llguidance(tokens: Tokens) -> Callable[[str], Callable[[], Session]]:
    engine = LlguidanceEngine(tokens)

    def make(text: str) -> Callable[[], Session]:
        grammar = engine.llguidance.LLMatcher.grammar_from_lark(text)
        matcher = engine.llguidance.LLMatcher(engine.tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return lambda: LlguidanceSession(matcher.deep_copy(), engine.n_vocab)

    return make


def walk(make: Callable[[str], Callable[[], Session]], grammar: str, texts: list[list[int]]) -> tuple[float, list[Any]]:
    """Time to first mask, and of each text the time of each step."""
    begin = time.thread_time()
    start = make(grammar)
    start().mask()
    first = time.thread_time() - begin
    steps = []
    for token_ids in texts:
        session = start()
        taken = []
        for token in token_ids:
            begin = time.thread_time()
            session.mask()
            session.accept(token)
            taken.append(time.thread_time() - begin)
        steps.append(np.array(taken))
    return first, steps


def agreed(makes: dict[str, Callable[[str], Callable[[], Session]]], grammar: str, token_ids: list[int]) -> list[int]:
    """The part of a text that all engines take."""
    return token_ids[: min(taken(make(grammar)(), token_ids) for make in makes.values())]


def taken(session: Session, token_ids: list[int]) -> int:
    """How many of the tokens a session takes."""
    count = 0
    with contextlib.suppress(RuntimeError):
        for token in token_ids:
            session.mask()
            session.accept(token)
            count += 1
    return count


def main() -> None:
    """Prints a row for each grammar, and one for all of them."""
    os.environ["CONSTRAIN_CACHE"] = ""
    data = Path(os.environ.get("CONSTRAIN_DATA", "."))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(constrain.grammars.names()), help="all, if none is given")
    parser.add_argument("--vocabulary", type=Path, default=data / "vocabs" / "ggml-vocab-llama-bpe.gguf")
    parser.add_argument("--repeat", type=int, default=3, help="passes (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("grammars.json"))
    arguments = parser.parse_args()
    vocabulary = constrain.Vocabulary.from_gguf(arguments.vocabulary)
    texts = [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]
    tokens = Tokens(str(arguments.vocabulary), texts, sorted(vocabulary.special), vocabulary.eos[0])
    split = longest_match(tokens)
    makes = {OURS: ours(vocabulary), PEER: llguidance(tokens)}
    times: dict[str, dict[str, Times]] = {}
    for name in arguments.names:
        grammar = constrain.grammars.load(name).text
        accepted = tomllib.loads((TABLES / f"{name}.toml").read_text(encoding="utf-8"))["accepted"]
        walked = [agreed(makes, grammar, list(split(text.encode()))) for text in accepted]
        times[name] = {engine: Times() for engine in makes}
        for number in range(arguments.repeat):
            for engine in sorted(makes, reverse=number % 2 == 1):
                times[name][engine].add(*walk(makes[engine], grammar, walked))
    report(times, arguments.output)


def report(times: dict[str, dict[str, Times]], output: Path) -> None:
    columns = ("grammar", "tokens", "first mask, ms", "p50, us", "p99, us", "to llguidance: first", "p50", "p99")
    table = Table(*columns, title=f"{OURS} / {PEER}")
    rows: dict[str, Any] = {}
    for name, engines in times.items():
        rows[name] = row(engines)
    if len(times) > 1:
        together = {
            engine: Times(
                float(np.median([engines[engine].first for engines in times.values()])),
                [step for engines in times.values() for step in engines[engine].steps],
            )
            for engine in (OURS, PEER)
        }
        rows["all"] = row(together)
    for name, found in rows.items():
        pairs = [f"{found[OURS][key]:.1f} / {found[PEER][key]:.1f}" for key in ("first_ms", "p50_us", "p99_us")]
        ratios = [f"{found[OURS][key] / found[PEER][key]:.2f}" for key in ("first_ms", "p50_us", "p99_us")]
        table.add_row(name, str(found["tokens"]), *pairs, *ratios)
    Console().print(table)
    output.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def row(engines: dict[str, Times]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for engine, times in engines.items():
        steps = np.concatenate(times.steps) * 1e6
        found["tokens"] = len(steps)
        p50, p99 = np.percentile(steps, (50, 99))
        found[engine] = {"first_ms": times.first * 1e3, "p50_us": float(p50), "p99_us": float(p99)}
    return found


if __name__ == "__main__":
    main()
