"""What the kernel's single steps cost on one vocabulary: prints the table of constrain/kernel/README.md.

python benchmarks/kernel_costs.py llama-bpe.gguf

Times are medians of ``REPEATS`` runs, each with a vocabulary of its own, so that nothing is known beforehand; what is
repeated thousands of times (a known mask, a known step) is the mean of a loop. Memory is what the kernel counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from typing import TYPE_CHECKING

import constrain
from constrain import kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REPEATS = 5
LOOPS = 2_000

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "code": {"pattern": "^[A-Z]{2}-[0-9]+$"}},
    "required": ["name"],
}
OTHER = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
SEARCH = {"type": "string", "pattern": "[0-9]{3}-[0-9]{4}"}
BOUNDED = {"type": "string", "maxLength": 20}
NAMES = {"enum": [f"name {number}" for number in range(10_000)]}


def timed(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def looped(run: Callable[[], object]) -> float:
    return timed(lambda: [run() for _ in range(LOOPS)]) / LOOPS


def placed(constraint: constrain.Constraint, byte_tokens: dict[bytes, int], text: str) -> constrain.Matcher:
    """A matcher that has read ``text`` byte by byte."""
    matcher = constraint.matcher()
    tokens = [byte_tokens[bytes([byte])] for byte in text.encode()]
    assert matcher.accept_many(tokens) == len(tokens), text
    return matcher


def measure(path: str) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds and bytes, by what they are of."""
    seconds: dict[str, float] = {}
    begin = time.perf_counter()
    vocabulary = constrain.Vocabulary.from_gguf(path)
    seconds["`Vocabulary.from_gguf`"] = time.perf_counter() - begin
    byte_tokens: dict[bytes, int] = {}
    for token in range(vocabulary.n_vocab):
        if len(vocabulary.token_bytes(token)) == 1:
            byte_tokens.setdefault(vocabulary.token_bytes(token), token)

    def compiled(schema: Mapping[str, object]) -> constrain.Constraint:
        return constrain.compile(json.dumps(schema), vocabulary)

    begin = time.perf_counter()
    person = compiled(PERSON)
    seconds["compile a schema of 3 properties, all of it"] = time.perf_counter() - begin
    grammar = person.grammar
    seconds["the kernel's share of that"] = timed(lambda: kernel.CompiledGrammar(grammar, vocabulary._core))
    row = person.allocate_bitmask()[0]

    def mask(what: str, constraint: constrain.Constraint, text: str) -> constrain.Matcher:
        matcher = placed(constraint, byte_tokens, text)
        seconds[what] = timed(lambda: matcher.fill_bitmask(row))
        return matcher

    mask("mask: first of all (`{` and what may follow)", person, "")
    inside = mask('mask: first time inside any JSON string (`{"name": "A`)', person, '{"name": "A')
    mask("mask: inside a string of another constraint", compiled(OTHER), '{"title": "A')
    mask("mask: inside a string, two characters left", compiled(BOUNDED), '"seventeen letters.')
    mask('mask: inside a key, "any but these" (`{"n`)', person, '{"n')
    mask("mask: inside a number (`36`)", person, '{"name": "A", "age": 36')
    mask("mask: an anchored pattern (`^[A-Z]{2}-[0-9]+$`)", person, '{"name": "A", "code": "A')
    mask("mask: a pattern found anywhere (`[0-9]{3}-[0-9]{4}`)", compiled(SEARCH), '"call 55')
    mask("mask: one of 10,000 strings", compiled(NAMES), '"na')
    seconds["mask: known (look-up and copy)"] = looped(lambda: inside.fill_bitmask(row))

    letter = byte_tokens[b"a"]

    def step_and_back() -> None:
        inside.accept(letter)
        inside.rollback(1)

    seconds["`accept` and `rollback` of a token, known"] = looped(step_and_back)
    seconds["`fork`"] = looped(inside.fork)
    seconds["`is_accepting`"] = looped(lambda: inside.is_accepting)
    seconds["`min_tokens_left`, first time in a constraint"] = timed(lambda: inside.min_tokens_left)
    seconds["`min_tokens_left`, again"] = looped(lambda: inside.min_tokens_left)
    seconds["`forced_bytes`"] = looped(inside.forced_bytes)
    memory = {
        "vocabulary: trie, texts, context-independent tokens": float(vocabulary._core.memory_bytes),
        "the constraint of 3 properties, after these masks": float(person.report.memory_bytes),
    }
    return seconds, memory


def shown(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e6:.2g} µs" if value < 1e-5 else f"{value * 1e6:.0f} µs"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("vocabulary", help="a GGUF file")
    path = parser.parse_args().vocabulary
    os.environ["CONSTRAIN_CACHE"] = ""
    runs = [measure(path) for _ in range(REPEATS)]
    print("| what | cost |")
    print("| --- | ---: |")
    for what in runs[0][0]:
        print(f"| {what} | {shown(statistics.median(run[0][what] for run in runs))} |")
    for what in runs[0][1]:
        print(f"| memory: {what} | {statistics.median(run[1][what] for run in runs) / 2**20:.2f} MiB |")


if __name__ == "__main__":
    main()
