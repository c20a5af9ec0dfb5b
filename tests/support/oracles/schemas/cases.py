"""Masks of random schemas against the list of all valid texts: one case, its outcome, and the file of refusals.

``python -m tests.support.oracles.schemas.cases`` writes the file anew and prints it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import jsonschema
import jsonschema_rs

import constrain
from tests.support.matching import mask_of
from tests.support.oracles.schemas.generator import DRAFT_7, Universe, random_schema, random_universe, spellings

RATCHET = Path(__file__).parents[3] / "data" / "oracle_schemas.json"
REGENERATE = "python -m tests.support.oracles.schemas.cases"
RECORDED_SEEDS = 1_000

FRAGMENTS = ('"', '":', ',"', '{"', '"}', "[]", "{}", "],", "},", "[[", "}}", "tru", "ab", 'a"', "12", "1,", "null")


class Case(NamedTuple):
    """What is compared for one seed. ``texts`` are all valid ones, in order."""

    schema: dict[str, Any]
    universe: Universe
    property_order: str
    texts: list[bytes]
    others: list[bytes]
    disputed: bool
    """Whether the two validators differ about a value."""


def make_case(seed: int) -> Case:
    rng = Random(seed)
    universe = random_universe(rng)
    schema = random_schema(rng, universe)
    property_order = rng.choice(("schema", "any"))
    draft_7 = schema["$schema"] == DRAFT_7
    judge = (jsonschema_rs.Draft7Validator if draft_7 else jsonschema_rs.Draft202012Validator)(schema)
    second = (jsonschema.Draft7Validator if draft_7 else jsonschema.Draft202012Validator)(schema)
    valid, invalid = [], []
    for value in universe.values():
        (valid if judge.is_valid(value) else invalid).append(value)
    sample = rng.sample(valid, min(len(valid), 15)) + rng.sample(invalid, min(len(invalid), 15))
    disputed = any(second.is_valid(value) != judge.is_valid(value) for value in sample)
    any_order = property_order == "any"
    texts = sorted(text.encode() for value in valid for text in spellings(value, any_order=any_order))
    others = [next(spellings(value, any_order=False)).encode() for value in rng.sample(invalid, min(len(invalid), 40))]
    if not any_order:  # other orders of valid values
        right = set(texts)
        for value in rng.sample(valid, min(len(valid), 10)):
            others += (t.encode() for t in spellings(value, any_order=True) if t.encode() not in right)
    return Case(schema, universe, property_order, texts, others, disputed)


def vocabulary_of(case: Case, rng: Random) -> list[bytes]:
    """Every byte that texts have, pieces of texts, and pieces of JSON that often fit nowhere."""
    tokens = {bytes([byte]) for text in (*case.texts, *case.others) for byte in text} | {b"9", b" "}
    for text in rng.choices(case.texts, k=25) if case.texts else ():
        start = rng.randrange(len(text))
        tokens.add(text[start : start + rng.randint(2, 7)])
    tokens |= {fragment.encode() for fragment in rng.sample(FRAGMENTS, 8)}
    found = sorted(tokens)
    rng.shuffle(found)
    return found


class Texts:
    """All valid texts, asked about prefixes."""

    def __init__(self, texts: list[bytes]) -> None:
        self.texts = texts

    def begins(self, prefix: bytes) -> bool:
        index = bisect_left(self.texts, prefix)
        return index < len(self.texts) and self.texts[index].startswith(prefix)

    def contains(self, text: bytes) -> bool:
        index = bisect_left(self.texts, text)
        return index < len(self.texts) and self.texts[index] == text

    def mask(self, prefix: bytes, tokens: list[bytes]) -> list[bool]:
        """Of every token, and then of the end: may it come after ``prefix``?"""
        return [*(self.begins(prefix + token) for token in tokens), self.contains(prefix)]


def compile_case(case: Case, tokens: list[bytes]) -> constrain.Constraint:
    vocabulary = constrain.Vocabulary.from_tokens([*tokens, b""], eos=[len(tokens)])
    return constrain.compile(case.schema, vocabulary, whitespace="compact", property_order=case.property_order)


def run(seed: int) -> str:
    """Compares everything about one seed; returns "" or the reason of a refusal. AssertionError where they differ."""
    case = make_case(seed)
    if case.disputed:
        return "the validators differ"
    return compare(case, Random(f"walk {seed}"))


def compare(case: Case, rng: Random) -> str:
    """What ``run`` does, for a case."""
    tokens = vocabulary_of(case, rng)
    try:
        constraint = compile_case(case, tokens)
    except constrain.UnsatisfiableSchemaError:
        assert not case.texts, f"said to have no value, has {case.texts[0]!r}"
        return ""
    except (constrain.UnsupportedSchemaError, constrain.PatternError, constrain.LimitError) as error:
        return reason(error)
    assert case.texts, f"has no value, and {bytes(constraint.matcher().shortest_completion())!r} is accepted"
    texts = Texts(case.texts)
    for text in rng.sample(case.texts, min(len(case.texts), 60)):
        assert constraint.accepts(text), f"{text!r} is rejected"
    for text in case.others:
        assert not constraint.accepts(text), f"{text!r} is accepted"
    for _ in range(3):
        walk(constraint, texts, tokens, rng)
    return ""


def walk(constraint: constrain.Constraint, texts: Texts, tokens: list[bytes], rng: Random) -> None:
    """Random allowed tokens to the end; the mask is compared before each."""
    matcher, prefix = constraint.matcher(), b""
    while True:
        got = mask_of(matcher)
        expected = texts.mask(prefix, tokens)
        wrong = [(t, g) for t, g, e in zip([*tokens, "end"], got, expected, strict=True) if g != e]
        assert not wrong, f"after {prefix!r}: (token, is allowed) {wrong}"
        completion = bytes(matcher.shortest_completion())
        assert texts.contains(prefix + completion), (prefix, completion)
        assert matcher.is_accepting == expected[-1], prefix
        allowed = [index for index, fits in enumerate(expected[:-1]) if fits]
        if not allowed:
            return
        token = rng.choice(allowed)
        assert matcher.accept(token), (prefix, tokens[token])
        prefix += tokens[token]


def reason(error: constrain.ConstrainError) -> str:
    """What an error says, without what belongs to the single schema."""
    message = re.sub(r"'(?:[^'\\]|\\.)*'", "...", error.message)
    return re.sub(r"\b\d+ and \d+\b", "two", re.sub(r", column \d+", "", message))


def check(seed: int) -> str:
    """``run``, with all that is needed to see a failure again."""
    try:
        return run(seed)
    except Exception as error:
        case = make_case(seed)
        raise AssertionError(
            f"seed {seed}, property_order {case.property_order!r}: {error}\n{json.dumps(case.schema)}"
        ) from error


def main() -> None:
    refused: dict[str, list[int]] = {}
    for seed in range(RECORDED_SEEDS):
        if why := check(seed):
            refused.setdefault(why, []).append(seed)
    lines = ",\n".join(f"  {json.dumps(why)}: {seeds}" for why, seeds in sorted(refused.items()))
    RATCHET.write_text(f'{{\n "schemas": {RECORDED_SEEDS},\n "refused": {{\n{lines}\n }}\n}}\n', encoding="utf-8")
    print(RATCHET.read_text())


if __name__ == "__main__":
    main()
