"""Tokens per second of a real model: without a constraint, with ours, with llama.cpp's own grammar sampler.

    python benchmarks/generation.py                          the default model
    python benchmarks/generation.py --model gemma.gguf ...   others, one after the other

Five loops, greedily and at temperature 0.8, in short slices that alternate (``benchmarks/slices.py``), each with a
context of its own:

    llama-cpp-python         Llama.generate, unconstrained
    ours, unconstrained      our loop, no matcher
    ours, constrained        our loop with the schema, forced tokens included
    ours, all sampled        the same, but what the schema leaves no choice about is sampled as well
    llama.cpp grammar        Llama.generate with LlamaGrammar made from the same JSON Schema

The schema is an array of objects that cannot end before the number of tokens is reached. Only the tokens are timed:
the prompt is evaluated, and the schema compiled and its first masks computed, before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llama_cpp
from about import origin
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from slices import alternate, ratio

import constrain
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.sampler import Chain, Sampling

sys.path.append(str(Path(__file__).parent.parent))  # behind what is installed: the sources may have no kernel

from tests.support.llama.prompts import prompt_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMA = {
    "type": "array",
    "minItems": 40,
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
    """One loop: tokens per second, the median of all rounds; and seconds per token, round by round."""

    model: str
    temperature: float
    loop: str
    median: float
    rounds: list[float]


def main() -> None:
    """Runs the loops, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", nargs="*", type=Path, default=[None], help="GGUF files; the default model if none")
    parser.add_argument("--tokens", type=int, default=16, help="tokens of a slice (16)")
    parser.add_argument("--rounds", type=int, default=40, help="slices of each loop (40)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads, for all loops (all cores)")
    parser.add_argument("--output", type=Path, default=Path("generation.json"), help="where the numbers go")
    arguments = parser.parse_args()
    console = Console()
    results: list[Result] = []
    for path in arguments.model:
        models = [constrain.Model(path, n_ctx=2048, n_threads=arguments.threads) for _ in LOOPS]
        results += measure(console, models, arguments.tokens, arguments.rounds)
    print_table(console, results)
    about = {
        "tokens": arguments.tokens,
        "threads": arguments.threads,
        **origin(),
        "llama_cpp": llama_cpp.__version__,
        "schema": SCHEMA,
    }
    arguments.output.write_text(json.dumps({**about, "results": [asdict(result) for result in results]}, indent=2))
    console.print(f"written to {arguments.output}")


def measure(console: Console, models: list[constrain.Model], tokens: int, rounds: int) -> list[Result]:
    """All loops, each on a model of its own."""
    name = Path(models[0].llama.model_path).name
    found: list[Result] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        for heat in (0.0, 0.8):
            task = progress.add_task(f"{name}, temperature {heat}", total=len(LOOPS) * (rounds + 1))
            loops = {
                loop: partial(begin, model, heat) for (loop, begin), model in zip(LOOPS.items(), models, strict=True)
            }
            seconds = alternate(loops, rounds, tokens, partial(progress.advance, task))
            found += [Result(name, heat, loop, 1 / statistics.median(got), got) for loop, got in seconds.items()]
    return found


class Sampled:
    """A matcher that tells of no forced tokens."""

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._matcher, name)

    def forced_after(self, _: bytes) -> tuple[bytes, list[int]]:
        return b"", []


def ours(model: constrain.Model, heat: float, *, constrained: bool, forced: bool = True) -> Iterator[int]:
    """Our loop. Without a constraint it goes on past the end of generation, as ``Llama.generate`` does."""
    vocabulary = model.vocabulary
    start = constrain.compile(SCHEMA, vocabulary).matcher
    answer = Answer(
        prompt_tokens(model, PROMPT),
        Chain(Sampling(temperature=heat, seed=SEED), vocabulary.n_vocab, model.n_ctx),
        (start if forced else lambda limit: Sampled(start(limit))) if constrained else None,
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
    prompt = prompt_tokens(model, PROMPT)
    return llama.generate(prompt, temp=heat, top_k=40, top_p=0.95, min_p=0.05, repeat_penalty=1.0, grammar=rules)


LOOPS: dict[str, Callable[[constrain.Model, float], Iterator[int]]] = {
    "llama-cpp-python": partial(theirs, grammar=False),
    "ours, unconstrained": partial(ours, constrained=False),
    "ours, constrained": partial(ours, constrained=True),
    "ours, all sampled": partial(ours, constrained=True, forced=False),
    "llama.cpp grammar": partial(theirs, grammar=True),
}


def print_table(console: Console, results: list[Result]) -> None:
    """One row for each loop: its rate, and how many times as fast as others it was, by the median of the rounds."""
    table = Table(title="tokens per second")
    for column in ("model", "temperature", "loop", "tokens/s", "times llama-cpp-python", "times llama.cpp's grammar"):
        table.add_column(column)
    for result in results:
        setting = (result.model, result.temperature)
        rounds = {other.loop: other.rounds for other in results if (other.model, other.temperature) == setting}
        times = [ratio(rounds[peer], result.rounds) for peer in ("llama-cpp-python", "llama.cpp grammar")]
        numbers = (f"{result.median:.1f}", *(f"{number:.3f}" for number in times))
        table.add_row(result.model, str(result.temperature), result.loop, *numbers)
    console.print(table)


if __name__ == "__main__":
    main()
