"""What the decode loop costs beside the model: time per token outside ``llama_decode``, and wall time per token.

    python benchmarks/overhead.py                          the default model
    python benchmarks/overhead.py --model gemma.gguf ...   others, one after the other

Outside ``llama_decode`` is all that the loop does between two evaluations: mask, candidates, sampler chain, text,
bookkeeping. It is measured for grammars that allow a given number of tokens at each step: on the model, whose
evaluations leave little of anything else in the processor's caches, and without evaluations (warm), where only the
work itself counts. Beside it:

    bare             the candidates gathered with numpy from ids known beforehand, and the sampler chain: no mask
    whole vocabulary ``llama_sampler_sample`` without a constraint

and given as the median of all steps. The wall time with a constraint is that of a JSON string beside the same loop
without one, in slices that alternate.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from slices import alternate, ratio

import constrain
from constrain.language.grammar import Grammar, GrammarBuilder
from constrain.language.tree import CharClass, Literal, LiteralSet, Repetition
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.sampler import Chain, Sampling

sys.path.append(str(Path(__file__).parent.parent))  # behind what is installed: the sources may have no kernel

from tests.support.llama.prompts import prompt_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from constrain.language.tree import Expression
    from constrain.llama.contexts.context import Context

PROMPT = "Tell me a long story about the sea."
HEATS = (0.0, 0.8)
END = b"\x03\x02\x01"
"""Nothing a model says: the grammars here have no other end."""
SEED = 7


@dataclass(frozen=True)
class Step:
    """Microseconds outside of ``llama_decode``: medians over all steps."""

    model: str
    temperature: float
    allowed: int
    warm: bool
    ours: float
    bare: float
    whole_vocabulary: float


@dataclass(frozen=True)
class Wall:
    """Milliseconds per token of the loop without a constraint, and how many times that it takes with one."""

    model: str
    temperature: float
    unconstrained: float
    constrained: float
    rounds: list[float]


class Timed:
    """A context whose evaluations are timed, or (``warm``) left out, so that the logits are always the prompt's."""

    leaves_a_core = False  # no mask is computed in the shadow of an evaluation: all of it counts

    def __init__(self, context: Context, *, warm: bool) -> None:
        self.context = context
        self.warm = warm
        self.n_ctx, self.candidates = context.n_ctx, context.candidates
        self.prefill, self.logits, self.sample = context.prefill, context.logits, context.sample
        self.inside = 0.0

    def decode(self, tokens: Sequence[int], read: Any = None) -> None:
        if self.warm:
            return
        started = time.perf_counter()
        self.context.decode(tokens, read)
        self.inside += time.perf_counter() - started


def main() -> None:
    """Measures, prints tables and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", nargs="*", type=Path, default=[None], help="GGUF files; the default model if none")
    parser.add_argument("--allowed", nargs="*", type=int, default=[50, 1000, 100_000], help="numbers of allowed tokens")
    parser.add_argument("--tokens", type=int, default=100, help="steps of each measurement (100)")
    parser.add_argument("--rounds", type=int, default=40, help="slices of each loop, for the wall time (40)")
    parser.add_argument("--slice", type=int, default=8, help="tokens of a slice (8)")
    parser.add_argument("--threads", type=int, default=1, help="threads of llama.cpp (1)")
    parser.add_argument("--output", type=Path, default=Path("overhead.json"), help="where the numbers go")
    arguments = parser.parse_args()
    console = Console()
    steps: list[Step] = []
    walls: list[Wall] = []
    for path in arguments.model:
        models = [constrain.Model(path, n_ctx=1024, n_threads=arguments.threads) for _ in range(2)]
        steps += outside(console, models[0], arguments.allowed, arguments.tokens)
        walls += wall(console, models, arguments.rounds, arguments.slice)
    print_tables(console, steps, walls)
    about = {"llama_cpp": llama_cpp.__version__, "threads": arguments.threads}
    results = {"steps": [asdict(step) for step in steps], "walls": [asdict(wall) for wall in walls]}
    arguments.output.write_text(json.dumps({**about, **results}, indent=2))
    console.print(f"written to {arguments.output}")


def outside(console: Console, model: constrain.Model, numbers: list[int], tokens: int) -> list[Step]:
    """Time outside of ``llama_decode``, for each number of allowed tokens."""
    name = Path(model.llama.model_path).name
    found = []
    for number in numbers:
        constraint, allowed = allowing(model.vocabulary, number)
        for heat, warm in itertools.product(HEATS, (False, True)):
            console.print(f"{name}: {len(allowed)} allowed tokens, temperature {heat}{', warm' if warm else ''}")
            timed = Timed(model.context, warm=warm)
            microseconds = (
                per_step(timed, model, heat, constraint, tokens),
                bare(timed, model, heat, allowed, tokens),
                per_step(timed, model, heat, None, tokens),
            )
            found.append(Step(name, heat, len(allowed), warm, *microseconds))
    return found


def allowing(vocabulary: constrain.Vocabulary, number: int) -> tuple[constrain.Constraint, np.ndarray]:
    """A constraint under which about ``number`` tokens are allowed at each step, and which these are."""
    tokens = [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]
    characters = [text for text in tokens if len(text) > 2 and _is_character(text)]
    if number <= len(characters):
        return _endless(vocabulary, LiteralSet(tuple(sorted(characters[-number:]))))
    low, high = 0x21, 0x10FFFF
    while low < high:
        middle = (low + high) // 2
        _, allowed = _endless(vocabulary, CharClass(((0x20, middle),)))
        if len(allowed) < number:
            low = middle + 1
        else:
            high = middle
    return _endless(vocabulary, CharClass(((0x20, low),)))


def _is_character(text: bytes) -> bool:
    try:
        return len(text.decode()) == 1
    except UnicodeDecodeError:
        return False


def _endless(vocabulary: constrain.Vocabulary, unit: Expression) -> tuple[constrain.Constraint, np.ndarray]:
    constraint = constrain.compile(_repeated(unit), vocabulary)
    row = constraint.allocate_bitmask()[0]
    constraint.matcher().fill_bitmask(row)
    bits = np.unpackbits(row.view(np.uint8), count=vocabulary.n_vocab, bitorder="little")
    return constraint, np.flatnonzero(bits).astype(np.int32)


def _repeated(unit: Expression) -> Grammar:
    """``unit`` any number of times."""
    builder = GrammarBuilder()
    start = builder.rule("start")
    text, end = builder.terminal("text", Repetition(unit, 1, None)), builder.terminal("end", Literal(END))
    builder.define(start, [[text, end]])
    return builder.build()


def per_step(
    timed: Timed, model: constrain.Model, heat: float, constraint: constrain.Constraint | None, tokens: int
) -> float:
    """The median time of our loop between two evaluations, in microseconds."""
    steps = decoding(timed, model, heat, constraint).steps()
    next(steps)
    spent = []
    for _ in range(tokens):
        timed.inside = 0.0
        started = time.perf_counter()
        next(steps)
        spent.append(time.perf_counter() - started - timed.inside)
    return statistics.median(spent) * 1e6


def bare(timed: Timed, model: constrain.Model, heat: float, allowed: np.ndarray, tokens: int) -> float:
    """The median time of a gather and the sampler chain, in microseconds."""
    candidates = timed.candidates
    chain = Chain(Sampling(temperature=heat, seed=SEED), model.vocabulary.n_vocab, model.n_ctx)
    timed.prefill(prompt_tokens(model, PROMPT))
    spent = []
    for _ in range(tokens):
        started = time.perf_counter()
        logits = timed.logits()
        buffer = candidates.buffer[: len(allowed)]
        buffer["id"] = allowed
        buffer["logit"] = logits[allowed]
        token = chain.choose(candidates, len(allowed))
        spent.append(time.perf_counter() - started)
        timed.decode([token])
    return statistics.median(spent) * 1e6


def decoding(
    evaluator: Timed | Context, model: constrain.Model, heat: float, constraint: constrain.Constraint | None
) -> Decoding:
    """Our loop, which without a constraint goes on past the end of generation."""
    vocabulary = model.vocabulary
    answer = Answer(
        prompt_tokens(model, PROMPT),
        Chain(Sampling(temperature=heat, seed=SEED), vocabulary.n_vocab, model.n_ctx),
        None if constraint is None else constraint.matcher,
        eos=frozenset(vocabulary.eos) if constraint else frozenset(),
        encode=vocabulary.encode,
        token_bytes=vocabulary.token_bytes,
    )
    return Decoding(evaluator, answer)


def wall(console: Console, models: list[constrain.Model], rounds: int, tokens: int) -> list[Wall]:
    """Wall time per token with and without a constraint."""
    name = Path(models[0].llama.model_path).name
    constraint = constrain.compile(
        _repeated(CharClass(((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)))), models[0].vocabulary
    )
    other = constrain.compile(constraint.grammar, models[1].vocabulary)
    found = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        for heat in HEATS:
            task = progress.add_task(f"{name}, temperature {heat}, wall time", total=2 * (rounds + 1))

            def free(heat: float = heat) -> Iterator[int]:
                return decoding(models[0].context, models[0], heat, None).steps()

            def held(heat: float = heat, other: constrain.Constraint = other) -> Iterator[int]:
                return decoding(models[1].context, models[1], heat, other).steps()

            seconds = alternate({"free": free, "held": held}, rounds, tokens, lambda task=task: progress.advance(task))
            ratios = [one / other for one, other in zip(seconds["held"], seconds["free"], strict=True)]
            each = statistics.median(seconds["free"]) * 1e3
            found.append(Wall(name, heat, each, ratio(seconds["held"], seconds["free"]), ratios))
    return found


def print_tables(console: Console, steps: list[Step], walls: list[Wall]) -> None:
    """One row for each number of allowed tokens, and for each wall time."""
    table = Table(title="microseconds per token outside llama_decode, medians")
    for column in ("model", "temperature", "allowed tokens", "caches", "ours", "bare", "whole vocabulary"):
        table.add_column(column)
    for step in steps:
        numbers = (f"{number:.1f}" for number in (step.ours, step.bare, step.whole_vocabulary))
        table.add_row(step.model, str(step.temperature), str(step.allowed), "warm" if step.warm else "used", *numbers)
    console.print(table)
    table = Table(title="wall time per token")
    for column in ("model", "temperature", "unconstrained, ms", "constrained, times that"):
        table.add_column(column)
    for wall in walls:
        table.add_row(wall.model, str(wall.temperature), f"{wall.unconstrained:.2f}", f"{wall.constrained:.3f}")
    console.print(table)


if __name__ == "__main__":
    main()
