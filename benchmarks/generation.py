"""Tokens per second of a real model: without a constraint, with ours, with llama.cpp's own grammar sampler.

    python benchmarks/generation.py                          the default model
    python benchmarks/generation.py --model gemma.gguf ...   others, one after the other

Four loops write the same number of tokens each, greedily and at temperature 0.8, in turns, so that all of them meet
the same disturbances of the machine:

    llama-cpp-python         Llama.generate, unconstrained
    ours, unconstrained      our loop, no matcher
    ours, constrained        our loop with the schema; forced tokens are not skipped
    llama.cpp grammar        Llama.generate with LlamaGrammar made from the same JSON Schema

The schema is an array of objects that cannot end before the number of tokens is reached. Only the tokens are timed:
the prompt is evaluated, and the schema compiled and its first masks computed, before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import llama_cpp
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import constrain
from constrain.llama.answer import Answer
from constrain.llama.decode import Decoding
from constrain.llama.sampler import Chain, Sampling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMA = {
    "type": "array",
    "minItems": 100,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 40},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "role": {"enum": ["reader", "author", "editor"]},
            "about": {"type": "string", "maxLength": 200},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 4},
        },
        "required": ["name", "age", "role", "about", "tags"],
        "additionalProperties": False,
    },
}
PROMPT = "Make up a list of people with name, age, role, a text about them, and tags, as JSON."
SEED = 7


@dataclass(frozen=True)
class Result:
    """Tokens per second of one loop: every repetition, and the median."""

    model: str
    temperature: float
    loop: str
    median: float
    repetitions: list[float]


def main() -> None:
    """Runs the loops in turns, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", nargs="*", type=Path, default=[None], help="GGUF files; the default model if none")
    parser.add_argument("--tokens", type=int, default=128, help="tokens of each run (128)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each loop (5)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads, for all loops (all cores)")
    parser.add_argument("--output", type=Path, default=Path("generation.json"), help="where the numbers go")
    arguments = parser.parse_args()
    console = Console()
    results: list[Result] = []
    for path in arguments.model:
        model = constrain.Model(path, n_threads=arguments.threads)
        results += measure(console, model, arguments.tokens, arguments.repeat)
    print_table(console, results, arguments.tokens)
    about = {
        "tokens": arguments.tokens,
        "threads": arguments.threads,
        "machine": platform.platform(),
        "processor": platform.processor(),
        "llama_cpp": llama_cpp.__version__,
        "schema": SCHEMA,
    }
    arguments.output.write_text(json.dumps({**about, "results": [asdict(result) for result in results]}, indent=2))
    console.print(f"written to {arguments.output}")


def measure(console: Console, model: constrain.Model, tokens: int, repeat: int) -> list[Result]:
    """All loops of one model, interleaved."""
    name = Path(model.llama.model_path).name
    loops = {
        "llama-cpp-python": lambda heat: theirs(model, heat, grammar=False),
        "ours, unconstrained": lambda heat: ours(model, heat, constrained=False),
        "ours, constrained": lambda heat: ours(model, heat, constrained=True),
        "llama.cpp grammar": lambda heat: theirs(model, heat, grammar=True),
    }
    temperatures = (0.0, 0.8)
    rates: dict[tuple[float, str], list[float]] = {(heat, loop): [] for heat in temperatures for loop in loops}
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(name, total=len(rates) * (repeat + 1))
        for repetition in range(repeat + 1):
            for heat in temperatures:
                order = list(loops) if repetition % 2 else list(reversed(loops))
                for loop in order:
                    progress.update(task, description=f"{name}, temperature {heat}, {loop}")
                    rate = tokens_per_second(loops[loop], heat, tokens)
                    if repetition:  # The first round warms up caches and clocks.
                        rates[heat, loop].append(rate)
                    progress.advance(task)
    return [Result(name, heat, loop, statistics.median(got), got) for (heat, loop), got in rates.items()]


def tokens_per_second(loop: Callable[[float], Iterator[int]], heat: float, tokens: int) -> float:
    """How fast a loop writes ``tokens`` tokens after its first one."""
    steps = loop(heat)
    next(steps)
    started = time.perf_counter()
    for _ in range(tokens):
        next(steps)
    seconds = time.perf_counter() - started
    steps.close()
    return tokens / seconds


def ours(model: constrain.Model, heat: float, *, constrained: bool) -> Iterator[int]:
    """Our loop. Without a constraint it goes on past the end of generation, as ``Llama.generate`` does."""
    vocabulary = model.vocabulary
    answer = Answer(
        model.prompt_tokens(PROMPT),
        Chain(Sampling(temperature=heat, seed=SEED), vocabulary.n_vocab),
        constrain.compile(SCHEMA, vocabulary).matcher() if constrained else None,
        eos=frozenset(vocabulary.eos) if constrained else frozenset(),
        encode=vocabulary.encode,
        token_bytes=vocabulary.token_bytes,
    )
    return Decoding(model.context, answer).steps()


def theirs(model: constrain.Model, heat: float, *, grammar: bool) -> Iterator[int]:
    """llama-cpp-python's loop, as its ``create_completion`` runs it, with the same sampler settings."""
    llama = model.llama
    rules = llama_cpp.LlamaGrammar.from_json_schema(json.dumps(SCHEMA), verbose=False) if grammar else None
    llama.set_seed(SEED)
    prompt = model.prompt_tokens(PROMPT)
    return llama.generate(prompt, temp=heat, top_k=40, top_p=0.95, min_p=0.05, repeat_penalty=1.0, grammar=rules)


def print_table(console: Console, results: list[Result], tokens: int) -> None:
    """One row for each loop, with its rate beside that of the faster unconstrained one."""
    table = Table(title=f"{tokens} tokens")
    for column in (
        "model",
        "temperature",
        "loop",
        "tokens/s",
        "of the faster unconstrained",
        "times llama.cpp's grammar",
    ):
        table.add_column(column)
    for result in results:
        setting = (result.model, result.temperature)
        rates = {other.loop: other.median for other in results if (other.model, other.temperature) == setting}
        share = result.median / max(rates["llama-cpp-python"], rates["ours, unconstrained"])
        times = result.median / rates["llama.cpp grammar"]
        numbers = (f"{result.median:.1f}", f"{share:.3f}", f"{times:.2f}")
        table.add_row(result.model, str(result.temperature), result.loop, *numbers)
    console.print(table)


if __name__ == "__main__":
    main()
