"""Compile time, memory and mask times of quotes by the length of their source, with mask times of a plain string.

python benchmarks/quotes.py llama-bpe.gguf

The source is English text: the documentation of this repository, repeated with running numbers to fill long sources.
Each walk reads a quote of ``QUOTE`` characters token by token and computes every mask. If llguidance is installed, it
reads the same quotes with ``substring_chars``, from sources of up to ``PEER_LENGTH`` characters. Writes quotes.json.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from about import origin
from masks import LlguidanceEngine, LlguidanceSession, Tokens, longest_match

import constrain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LENGTHS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
REPEATS = 5
WALKS = 20
QUOTE = 120
PEER_LENGTH = 30_000
ROOT = Path(__file__).parent.parent


def english(length: int) -> str:
    """Returns English text of ``length`` characters."""
    pages = "".join(path.read_text("utf-8") for path in [ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))])
    text, number = pages, 0
    while len(text) < length:
        number += 1
        text += pages.replace(". ", f" {number}. ")
    return text[:length]


def quotes(text: str) -> list[bytes]:
    """Returns random parts of the text as JSON strings."""
    rng = random.Random(1)
    begins = [rng.randrange(len(text) - QUOTE) for _ in range(WALKS)]
    return [json.dumps(text[begin : begin + QUOTE], ensure_ascii=False).encode() for begin in begins]


def walked(constraint: constrain.Constraint, answers: Sequence[Sequence[int]]) -> Iterator[float]:
    """Yields the seconds that each mask takes, over all answers."""
    words = constraint.allocate_bitmask()[0]
    for tokens in answers:
        matcher = constraint.matcher()
        for token in tokens:
            begin = time.perf_counter()
            matcher.fill_bitmask(words)
            yield time.perf_counter() - begin
            assert matcher.accept(token)


def of_masks(seconds: Sequence[float]) -> dict[str, float]:
    """Returns the median, 99th percentile and maximum of mask times, in microseconds."""
    ordered = np.array(seconds) * 1e6
    return {name: round(float(np.percentile(ordered, at)), 1) for name, at in (("p50", 50), ("p99", 99), ("max", 100))}


def ours(vocabulary: constrain.Vocabulary, tokens: Tokens, text: str) -> dict[str, Any]:
    """Returns constrain's figures for one source."""
    schema, seconds = {"type": "string", "x-quote": "it"}, []
    for repeat in range(REPEATS):
        source = text[:-1] + str(repeat)
        begin = time.perf_counter()
        constraint = constrain.compile(schema, vocabulary, sources={"it": source}, cache=False)
        seconds.append(time.perf_counter() - begin)
    memory = constraint.report.memory_bytes
    split = longest_match(tokens)
    answers = [list(split(answer)) for answer in quotes(text[:-1])]
    plain = constrain.compile({"type": "string"}, vocabulary, cache=False)
    return {
        "compile_ms": round(statistics.median(seconds) * 1e3, 2),
        "bytes_per_character": round(memory / len(text), 1),
        "masks_us": of_masks(list(walked(constraint, answers))),
        "plain_string_us": of_masks(list(walked(plain, answers))),
    }


def peer(tokens: Tokens, text: str) -> dict[str, Any] | None:
    """Returns llguidance's figures for the same quotes; None if it is not installed."""
    if find_spec("llguidance") is None:
        return None
    engine = LlguidanceEngine(tokens)
    content = json.dumps(text, ensure_ascii=False)[1:-1]
    lark = f'start: "\\"" part "\\""\npart: %regex {json.dumps({"substring_chars": content})}\n'
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        matcher = engine.llguidance.LLMatcher(engine.tokenizer, engine.llguidance.LLMatcher.grammar_from_lark(lark))
        seconds.append(time.perf_counter() - begin)
        if matcher.is_error():
            return {"refused": matcher.get_error()[:200]}
    split, masks = longest_match(tokens), []
    for answer in quotes(text):
        session = LlguidanceSession(matcher.deep_copy(), engine.n_vocab)
        for token in split(answer):
            begin = time.perf_counter()
            session.mask()
            masks.append(time.perf_counter() - begin)
            session.accept(token)
    return {"compile_ms": round(statistics.median(seconds) * 1e3, 2), "masks_us": of_masks(masks)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vocabulary", help="a GGUF file")
    parser.add_argument("--write", type=Path, default=Path("quotes.json"))
    arguments = parser.parse_args()
    vocabulary = constrain.Vocabulary.from_gguf(arguments.vocabulary)
    texts = [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]
    tokens = Tokens(arguments.vocabulary, texts, sorted(vocabulary.special), vocabulary.eos[0])
    lengths: dict[str, Any] = {}
    for length in LENGTHS:
        text = english(length)
        lengths[str(length)] = {"constrain": ours(vocabulary, tokens, text)}
        if length <= PEER_LENGTH:
            lengths[str(length)]["llguidance"] = peer(tokens, text)
        print(length, json.dumps(lengths[str(length)]), flush=True)
    report = {**origin(), "vocabulary": Path(arguments.vocabulary).name, "lengths": lengths}
    arguments.write.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
