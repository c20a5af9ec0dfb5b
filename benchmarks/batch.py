"""Several answers at once against one at a time: throughput, equality of the texts, and what prefixes save.

    python benchmarks/batch.py                          32 prompts, 8 at a time, the default model
    python benchmarks/batch.py --parallel 2 4 8 16      more widths
    python benchmarks/batch.py --model a.gguf b.gguf    other models

Both ways write the same answers greedily on the same threads, in turns, so that both meet the same disturbances of the
machine. A text that differs is listed with the place where it does: there, rounding decided between two tokens that
llama.cpp finds equally likely, or nearly so. Then two conversations with a long prefix in common alternate.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import llama_cpp
from about import origin
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import constrain

sys.path.append(str(Path(__file__).parent.parent))  # behind what is installed: the sources may have no kernel

from tests.support.llama.prompts import prompt_tokens

if TYPE_CHECKING:
    from constrain import Completion

    Prompt = list[dict[str, str]]

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 3, "maxLength": 60},
        "author": {"type": "string", "minLength": 3, "maxLength": 40},
        "year": {"type": "integer", "minimum": 1000, "maximum": 2100},
        "genre": {"enum": ["novel", "poem", "play", "essay"]},
        "about": {"type": "string", "minLength": 100, "maxLength": 300},
    },
    "required": ["title", "author", "year", "genre", "about"],
    "additionalProperties": False,
}
SYSTEM = (
    "You make up books. Answer with a JSON object: title, author, year, genre (novel, poem, play or essay), and about, "
    "a text of some sentences that says what happens in the book and to whom."
)
SUBJECTS = (
    "a cat", "the sea", "two kings", "mathematics", "Rome", "love", "a long winter", "the moon", "trains", "bread",
    "a garden", "war", "the desert", "music", "an island", "old age", "a lighthouse", "chess", "a river", "ghosts",
    "the north", "a school", "spies", "horses", "a lost ring", "clouds", "a market", "the plague", "glass", "wolves",
    "a clock", "dreams",
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """A model and a width: seconds of every repetition both ways, and the answers that differ (prompt, first byte)."""

    model: str
    parallel: int
    tokens: int
    alone_seconds: list[float]
    batch_seconds: list[float]
    ratio: float
    differ: list[tuple[int, int]]
    prefix: Prefix


@dataclass(frozen=True)
class Prefix:
    """Two conversations that alternate: tokens of the common prefix, of all prompts, and of these evaluated."""

    shared_tokens: int
    prompt_tokens: int
    evaluated_tokens: int
    fewest_possible: int


def main() -> None:
    """Measures every model with every width, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", nargs="*", type=Path, default=[None], help="GGUF files; the default model if none")
    parser.add_argument("--prompts", type=int, default=32, help="how many prompts, at most 32 (32)")
    parser.add_argument("--parallel", type=int, nargs="*", default=[8], help="answers at once (8)")
    parser.add_argument("--repeat", type=int, default=3, help="runs each way (3)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads, both ways (all cores)")
    parser.add_argument("--context", type=int, default=1536, help="tokens of context of each sequence (1536)")
    parser.add_argument("--output", type=Path, default=Path("batch.json"), help="where the numbers go")
    arguments = parser.parse_args()
    console = Console()
    prompts = [
        [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Make up a book about {subject}."}]
        for subject in SUBJECTS[: arguments.prompts]
    ]
    results = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        for path, parallel in itertools.product(arguments.model, arguments.parallel):
            options = {"n_ctx": arguments.context, "n_threads": arguments.threads, "parallel": parallel}
            with constrain.Model(path, **options) as model:
                results.append(measure(progress, model, prompts, arguments.repeat))
    print_tables(console, results, len(prompts))
    about = {
        "prompts": len(prompts),
        "threads": arguments.threads,
        **origin(),
        "llama_cpp": llama_cpp.__version__,
        "schema": SCHEMA,
    }
    arguments.output.write_text(json.dumps({**about, "results": [asdict(result) for result in results]}, indent=2))
    console.print(f"written to {arguments.output}")


def measure(progress: Progress, model: constrain.Model, prompts: list[Prompt], repeat: int) -> Result:
    """Both ways in turns, after a first answer each that compiles the schema and makes the contexts."""
    task = progress.add_task(f"{model.parallel} at once", total=repeat * (len(prompts) + 1) + 1)
    options = {"schema": SCHEMA, "show_schema": False, "temperature": 0}
    constrain.complete(model, "Warm up.", **options)
    constrain.complete_batch(model, ["Warm up."], **options)
    alone: list[Completion] = []
    batch: list[Completion] = []
    alone_seconds, batch_seconds = [], []
    for _ in range(repeat):
        started = time.perf_counter()
        alone = []
        for prompt in prompts:
            alone.append(constrain.complete(model, prompt, **options))
            progress.advance(task)
        alone_seconds.append(time.perf_counter() - started)
        started = time.perf_counter()
        batch = constrain.complete_batch(model, prompts, **options)
        batch_seconds.append(time.perf_counter() - started)
        progress.advance(task)
    rate_alone = statistics.median(count(alone) / seconds for seconds in alone_seconds)
    rate_batch = statistics.median(count(batch) / seconds for seconds in batch_seconds)
    differ = [
        (index, first_difference(one.text, other.text))
        for index, (one, other) in enumerate(zip(alone, batch, strict=True))
        if one.text != other.text
    ]
    prefix = alternate(model)
    progress.advance(task)
    name = Path(model.llama.model_path).name
    ratio = rate_batch / rate_alone
    return Result(name, model.parallel, count(batch), alone_seconds, batch_seconds, ratio, differ, prefix)


def count(completions: list[Completion]) -> int:
    return sum(completion.usage.completion_tokens for completion in completions)


def first_difference(one: str, other: str) -> int:
    pairs = zip(one.encode(), other.encode(), strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def alternate(model: constrain.Model, turns: int = 3) -> Prefix:
    """Two conversations with some 1,000 tokens in common, a turn of one after a turn of the other."""
    system = {
        "role": "system",
        "content": "You are a librarian who knows every book of the world and its author. " * 70,
    }
    shared = len(prompt_tokens(model, [system]))
    talks = [[system, {"role": "user", "content": text}] for text in ("A novel, please.", "I like old poems.")]
    read = evaluated = 0
    fewest = shared
    for turn in range(turns):
        for talk in talks:
            before = shared if turn == 0 else len(prompt_tokens(model, talk[:-2]))
            [answer] = constrain.complete_batch(model, [talk], schema=bool, show_schema=False, temperature=0)
            read += answer.usage.prompt_tokens
            evaluated += answer.usage.prompt_tokens - answer.usage.cached_tokens
            fewest += max(0, answer.usage.prompt_tokens - before)
            talk += [{"role": "assistant", "content": answer.text}, {"role": "user", "content": "Another one?"}]
    return Prefix(shared, read, evaluated, fewest)


def print_tables(console: Console, results: list[Result], prompts: int) -> None:
    """The ratio of throughputs, the texts that differ, and the tokens of prompts that were evaluated."""
    table = Table(title=f"{prompts} prompts")
    for column in ("model", "at once", "tokens", "tokens/s alone", "tokens/s together", "ratio", "equal texts"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for result in results:
        rates = [result.tokens / statistics.median(each) for each in (result.alone_seconds, result.batch_seconds)]
        numbers = (f"{rates[0]:.1f}", f"{rates[1]:.1f}", f"{result.ratio:.2f}", f"{prompts - len(result.differ)}")
        table.add_row(result.model, str(result.parallel), str(result.tokens), *numbers)
    console.print(table)
    for result in results:
        for index, place in result.differ:
            setting = f"{result.model}, {result.parallel} at once"
            console.print(f"{setting}: the answer about {SUBJECTS[index]} differs from byte {place} on")
    table = Table(title="two conversations that alternate")
    for column in ("model", "at once", "tokens in common", "tokens of all prompts", "evaluated", "new in all prompts"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for result in results:
        table.add_row(result.model, str(result.parallel), *map(str, asdict(result.prefix).values()))
    console.print(table)


if __name__ == "__main__":
    main()
