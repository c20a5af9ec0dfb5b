"""Forced tokens: how many there are, what they save, and whether they are the tokenizer's own.

    CONSTRAIN_DATA=data python benchmarks/forced.py                          the default model
    CONSTRAIN_DATA=data python benchmarks/forced.py --model gemma.gguf ...   others, one after the other

Schemas of MaskBench like Kubernetes' and function calls' are answered without white space, at temperature 0.8. Right
after each answer the model writes as many tokens without a constraint, after the same prompt. The prompts are
evaluated before the clock starts.

    share       of the tokens were not sampled
    times       tokens per second with the constraint / without; the median over the schemas
    predicted   the same from nothing but the cost of llama_decode: n tokens one by one / the runs that were evaluated
    of it       times / predicted
    not own     places where the tokens are not those the tokenizer has for the final text, and in brackets how many
                of these places hold no token that was sampled

The cost of a run of k tokens, as a multiple of that of one token, is measured after the answers, in rounds that go
through all k.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import statistics
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import llama_cpp
from rich.console import Console
from rich.progress import track
from rich.table import Table

import constrain
from constrain.engine.compiling import compile_any
from constrain.json_schema.hint import describe
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.sampler import Chain, Sampling

sys.path.append(str(Path(__file__).parent.parent))  # behind what is installed: the sources may have no kernel

from tests.support.llama.prompts import prompt_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from constrain.llama.binding import Candidates

FAMILIES = {"Kubernetes": "Kubernetes", "function calls": "Glaiveai2K"}
"""Splits of MaskBench."""

PROMPT = "Make something up that fits, as JSON."
HEAT = 0.8
LONGEST_RUN = 48
"""Tokens of the longest run whose cost is measured; longer ones cost as much for each token."""


@dataclass
class Run:
    """One schema: numbers of tokens, seconds with the constraint and without, sizes of the runs evaluated."""

    schema: str
    family: str
    tokens: int
    sampled: int
    seconds: float
    plain_seconds: float
    runs: list[int]
    differing: int
    differing_forced: int
    predicted: float = field(default=0.0)

    @property
    def times(self) -> float:
        """Tokens per second with the constraint / without."""
        return self.plain_seconds / self.seconds


class Watched:
    """A context that notes the sizes of what it evaluates, and evaluates nothing but the answer."""

    def __init__(self, model: constrain.Model) -> None:
        context = model.context
        self.n_ctx, self.candidates, self.leaves_a_core = context.n_ctx, context.candidates, context.leaves_a_core
        self.prefill_all, self.decode_all = context.prefill, context.decode
        self.logits, self.sample = context.logits, context.sample
        self.runs: list[int] = []

    def prefill(self, tokens: Sequence[int], deadline: float | None = None, **options: Any) -> int:
        """The prompt but its last token is known: what is evaluated is a run like others."""
        known = self.prefill_all(tokens, deadline, **options)
        self.runs.append(len(tokens) - known)
        return known

    def decode(self, tokens: Sequence[int], read: Any = None) -> None:
        self.decode_all(tokens, read)
        self.runs.append(len(tokens))


class Noted(Answer):
    """An answer that notes which of its tokens were sampled."""

    def choose(self, logits: NDArray[np.float32], candidates: Candidates) -> tuple[int, ...]:
        """The first of the tokens is the sampled one, or takes its place."""
        place = len(self.tokens)
        tokens = super().choose(logits, candidates)
        if tokens:
            SAMPLED.append(place)
        return tokens


SAMPLED: list[int] = []
"""Places of the sampled tokens of the answer under way."""


def main() -> None:
    """Measures, prints a table and writes a JSON file."""
    data = Path(os.environ.get("CONSTRAIN_DATA", "."))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", nargs="*", type=Path, default=[None], help="GGUF files; the default model if none")
    parser.add_argument("--schemas", type=Path, default=data / "maskbench-dev.jsonl.xz", help="MaskBench")
    parser.add_argument("--count", type=int, default=50, help="schemas of each family (50)")
    parser.add_argument("--tokens", type=int, default=128, help="the most tokens of an answer (128)")
    parser.add_argument("--prompt", type=int, default=700, help="the most tokens of a prompt (700)")
    parser.add_argument("--threads", type=int, default=1, help="threads of llama.cpp (1)")
    parser.add_argument("--output", type=Path, default=Path("forced.json"), help="where the numbers go")
    arguments = parser.parse_args()
    if not arguments.schemas.is_file():
        parser.error(f"{arguments.schemas} is no file; set CONSTRAIN_DATA, or give --schemas")
    console = Console()
    results: dict[str, list[Run]] = {}
    for path in arguments.model:
        model = constrain.Model(path, n_ctx=arguments.prompt + 2 * arguments.tokens, n_threads=arguments.threads)
        name = Path(model.llama.model_path).name
        results[name] = measure(console, model, arguments)
        costs = run_costs(model, max(max(run.runs) for run in results[name]))
        for run in results[name]:
            run.predicted = run.tokens / sum(
                costs[min(size, LONGEST_RUN)] * max(1, size / LONGEST_RUN) for size in run.runs
            )
    print_table(console, results)
    runs = {name: [asdict(run) for run in found] for name, found in results.items()}
    about = {"llama_cpp": llama_cpp.__version__, "threads": arguments.threads}
    arguments.output.write_text(json.dumps({**about, "results": runs}, indent=2))
    console.print(f"written to {arguments.output}")


def measure(console: Console, model: constrain.Model, arguments: argparse.Namespace) -> list[Run]:
    """One run for each schema that is small enough and can be enforced."""
    found: list[Run] = []
    opener = lzma.open if arguments.schemas.suffix == ".xz" else open
    with opener(arguments.schemas, "rt", encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]
    for family, split in FAMILIES.items():
        chosen = [entry for entry in entries if entry["split"] == split]
        Random(1).shuffle(chosen)
        tasks = prepared(model, chosen, arguments)[: arguments.count]
        for number, (name, constraint, prompt) in enumerate(track(tasks, family, console=console)):
            found.append(compare(model, name, family, constraint, prompt, arguments.tokens, number))
    return found


def prepared(
    model: constrain.Model, entries: list[dict[str, Any]], arguments: argparse.Namespace
) -> list[tuple[str, constrain.Constraint, list[int]]]:
    """Names, constraints and prompts of what can be answered within the limits."""
    tasks = []
    for entry in entries:
        try:
            constraint = compile_any(entry["schema"], model.vocabulary, close_objects=True, whitespace="compact")
        except (constrain.SchemaError, constrain.LimitError):
            continue
        prompt = prompt_tokens(model, PROMPT, shown=describe(entry["schema"]), constrained=True)
        if len(prompt) <= arguments.prompt and 8 <= constraint.report.min_tokens <= arguments.tokens:
            tasks.append((entry["id"], constraint, prompt))
        if len(tasks) == arguments.count:
            break
    return tasks


def compare(
    model: constrain.Model,
    name: str,
    family: str,
    constraint: constrain.Constraint,
    prompt: list[int],
    max_tokens: int,
    seed: int,
) -> Run:
    """Answers once with the constraint, and writes as many tokens without."""
    vocabulary = model.vocabulary
    options: dict[str, Any] = {"encode": vocabulary.encode, "token_bytes": vocabulary.token_bytes}
    watched = Watched(model)
    SAMPLED.clear()
    chain = Chain(Sampling(temperature=HEAT, seed=seed), vocabulary.n_vocab, model.n_ctx)
    eos = frozenset(vocabulary.eos)
    answer = Noted(prompt, chain, constraint.matcher, eos=eos, max_tokens=max_tokens, **options)
    seconds = timed(model, watched, answer)
    runs = [size for size in watched.runs if size]
    chain = Chain(Sampling(temperature=HEAT, seed=seed), vocabulary.n_vocab, model.n_ctx)
    plain = Answer(prompt, chain, None, eos=frozenset(), max_tokens=len(answer.tokens), **options)
    plain_seconds = timed(model, Watched(model), plain)
    places = differing(vocabulary, answer.tokens, set(SAMPLED))
    forced = sum(not sampled for sampled in places)
    return Run(name, family, len(answer.tokens), len(SAMPLED), seconds, plain_seconds, runs, len(places), forced)


def timed(model: constrain.Model, watched: Watched, answer: Answer) -> float:
    """Seconds that an answer takes, but for its prompt."""
    model.context.prefill(answer.prompt)
    started = time.perf_counter()
    for _ in Decoding(watched, answer).steps():
        pass
    return time.perf_counter() - started


def differing(vocabulary: constrain.Vocabulary, tokens: list[int], sampled: set[int]) -> list[bool]:
    """Places where the tokens are not the tokenizer's own: whether each holds a sampled token."""
    own = vocabulary.encode(b"".join(map(vocabulary.token_bytes, tokens)))
    places = []
    mine = theirs = 0
    while mine < len(tokens):
        if tokens[mine] == own[theirs]:
            mine, theirs = mine + 1, theirs + 1
            continue
        first = mine
        ends = [len(vocabulary.token_bytes(tokens[mine])), len(vocabulary.token_bytes(own[theirs]))]
        while ends[0] != ends[1]:  # up to the next border that both have
            if ends[0] < ends[1]:
                mine += 1
                ends[0] += len(vocabulary.token_bytes(tokens[mine]))
            else:
                theirs += 1
                ends[1] += len(vocabulary.token_bytes(own[theirs]))
        mine, theirs = mine + 1, theirs + 1
        places.append(any(place in sampled for place in range(first, mine)))
    return places


def run_costs(model: constrain.Model, longest: int, rounds: int = 15) -> dict[int, float]:
    """What the evaluation of 1, 2, ... tokens costs, in evaluations of one token."""
    context = model.context
    prompt = prompt_tokens(model, PROMPT * 10)
    sizes = list(range(1, min(longest, LONGEST_RUN) + 1))
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for number in range(rounds):
        Random(number).shuffle(sizes)
        for size in sizes:
            context.prefill(prompt)
            started = time.perf_counter()
            context.decode([prompt[place % len(prompt)] for place in range(size)])
            seconds[size].append(time.perf_counter() - started)
    one = statistics.median(seconds[1])
    return {size: statistics.median(spent) / one for size, spent in seconds.items()}


def print_table(console: Console, results: dict[str, list[Run]]) -> None:
    """One row for each model and family."""
    table = Table(title="forced tokens")
    for column in ("model", "schemas", "answers", "tokens", "share", "times", "predicted", "of it", "not own"):
        table.add_column(column)
    for model, found in results.items():
        for family in Counter(run.family for run in found):
            runs = [run for run in found if run.family == family]
            tokens = sum(run.tokens for run in runs)
            table.add_row(
                model,
                family,
                str(len(runs)),
                str(tokens),
                f"{1 - sum(run.sampled for run in runs) / tokens:.2f}",
                f"{statistics.median(run.times for run in runs):.2f}",
                f"{statistics.median(run.predicted for run in runs):.2f}",
                f"{statistics.median(run.times / run.predicted for run in runs):.2f}",
                f"{sum(run.differing for run in runs)} ({sum(run.differing_forced for run in runs)})",
            )
    console.print(table)


if __name__ == "__main__":
    main()
