"""Masks of random structural tags, bit by bit against a slow judge that knows the formats only."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

import constrain
from constrain.parts import StructuralTag
from tests.structural.cases import CASES
from tests.structural.reference import accepts
from tests.support import LONG
from tests.support.matching import mask_of

LETTERS = "ab<1"
LONGEST = 5
SEEDS = 400 if LONG else 40
PER_BLOCK = 10

TOKENS = ["".join(letters) for length in (1, 2) for letters in product(LETTERS, repeat=length)]
BYTES = [bytes([byte]) for byte in range(256) if chr(byte) not in LETTERS]
EOS = len(TOKENS) + len(BYTES)
VOCABULARY = constrain.Vocabulary.from_tokens([*map(str.encode, TOKENS), *BYTES, b""], eos=[EOS])
TEXTS = ["".join(letters) for length in range(LONGEST + 1) for letters in product(LETTERS, repeat=length)]


def some_text(rng: Random, least: int = 1, most: int = 2) -> str:
    return "".join(rng.choice(LETTERS[:3]) for _ in range(rng.randint(least, most)))


def some_format(rng: Random, depth: int) -> dict[str, Any]:
    """A random format; all leaves are short, so that short texts show its language."""
    leaves = ("const_string", "any_text", "excludes", "max_chars", "json_schema")
    inner = ("sequence", "or", "optional", "star", "plus", "repeat", "tag", "triggered_tags", "dispatch", "separated")
    kind = rng.choice((*inner, *inner, *leaves) if depth else leaves)
    match kind:
        case "const_string":
            return {"type": kind, "value": some_text(rng, 0)}
        case "excludes":
            return {"type": "any_text", "excludes": [some_text(rng) for _ in range(rng.randint(1, 2))]}
        case "max_chars":
            return {"type": "any_text", "max_chars": rng.randint(0, 3)}
        case "json_schema":
            return {"type": kind, "json_schema": {"enum": rng.choice([[1], [1, 11]])}}
        case "sequence" | "or":
            return {"type": kind, "elements": [some_format(rng, depth - 1) for _ in range(rng.randint(1, 2))]}
        case "optional" | "star" | "plus":
            return {"type": kind, "content": some_format(rng, depth - 1)}
        case "repeat":
            least = rng.randint(0, 1)
            return {"type": kind, "min": least, "max": least + 1, "content": some_format(rng, depth - 1)}
        case "tag":
            return some_tag(rng, depth)
        case "triggered_tags" | "dispatch":
            return some_dispatch(rng, depth, kind)
        case "separated":
            return {
                "type": "tags_with_separator",
                "tags": [some_tag(rng, depth)],
                "separator": some_text(rng, 0, 1),
                "at_least_one": rng.random() < 0.5,
                "stop_after_first": rng.random() < 0.3,
            }
    return {"type": "any_text"}


def some_tag(rng: Random, depth: int) -> dict[str, Any]:
    end = rng.choice([some_text(rng), [some_text(rng), some_text(rng)]])
    return {"type": "tag", "begin": some_text(rng, 1, 1), "content": some_format(rng, depth - 1), "end": end}


def some_dispatch(rng: Random, depth: int, kind: str) -> dict[str, Any]:
    marks = list({some_text(rng) for _ in range(rng.randint(1, 2))})
    made: dict[str, Any] = {"type": kind}
    if rng.random() < 0.3:
        made["excludes"] = [some_text(rng)]
    if kind == "dispatch":
        return {**made, "rules": [[mark, some_format(rng, depth - 1)] for mark in marks], "loop": rng.random() < 0.6}
    tags = [{**some_tag(rng, depth), "begin": mark + some_text(rng, 0, 1)} for mark in marks]
    flags = {name: rng.random() < 0.3 for name in ("at_least_one", "stop_after_first")}
    return {**made, "triggers": marks, "tags": tags, **flags}


def compiled(document: dict[str, Any]) -> constrain.Constraint | None:
    """The constraint; None for triggers within each other, and for a tag without any text."""
    try:
        return constrain.compile(StructuralTag({"format": document}), VOCABULARY, cache=False)
    except constrain.GrammarError as error:
        if any(part in error.message for part in ("found first", "no text", "must not be empty")):
            return None
        raise


def check_seed(seed: int) -> int:
    """Compares masks along two random texts; returns how many masks were compared."""
    rng = Random(seed)
    document = some_format(rng, 2)
    constraint = compiled(document)
    if constraint is None:
        return 0
    known = {text for text in TEXTS if accepts(document, text)}
    assert known == {text for text in TEXTS if constraint.accepts(text)}, document
    beginnings = {text[:end] for text in known for end in range(len(text) + 1)}
    compared = 0
    for _ in range(2):
        matcher, text = constraint.matcher(), ""
        for _ in range(3):
            mask = mask_of(matcher)
            assert mask[EOS] == accepts(document, text), (document, text)
            for token, piece in enumerate(TOKENS):
                if text + piece in beginnings:
                    assert mask[token], (document, text, piece)
                elif mask[token]:
                    fork = matcher.fork()
                    assert fork.accept(token)
                    whole = text + piece + bytes(fork.shortest_completion()).decode()
                    assert accepts(document, whole), (document, text, piece, whole)
            compared += 1
            onward = [token for token, bit in enumerate(mask[: len(TOKENS)]) if bit]
            if not onward:
                break
            token = rng.choice(onward)
            assert matcher.accept(token)
            text += TOKENS[token]
    return compared


@pytest.mark.slow
@pytest.mark.parametrize("block", range(SEEDS // PER_BLOCK))
def test_masks_equal_the_judges(block: int) -> None:
    compared = sum(check_seed(seed) for seed in range(block * PER_BLOCK, (block + 1) * PER_BLOCK))
    assert compared > PER_BLOCK


def test_the_judge_agrees_with_the_cases() -> None:
    judged = 0
    for name, case in CASES.items():
        written = repr(case.format)
        if any(kind in written for kind in ("token", "'grammar'", "'regex'", "json_schema")):
            continue
        judged += 1
        assert [text for text in case.accepted if not accepts(case.format, text)] == [], name
        assert [text for text in case.rejected if accepts(case.format, text)] == [], name
    assert judged > 20
