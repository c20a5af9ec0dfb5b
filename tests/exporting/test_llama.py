"""Exported GBNF, read by llama.cpp itself: it takes every grammar, and has the same texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import pytest

import constrain
from constrain.engine.compiling import grammar_of
from tests.exporting.test_schemas import RECURSIVE, SCHEMAS, STYLES, closed, texts
from tests.exporting.test_sources import RECURSIVE as RECURSIVE_LARK
from tests.support import LONG, maskbench
from tests.support.exporting import changed, compiled, walked
from tests.support.llama.grammar_sampler import LlamaMatcher

SAMPLE = 500 if LONG else 4
"""Schemas of MaskBench that are exported."""

WALKS = 20 if LONG else 2


@pytest.fixture(scope="module")
def model() -> Iterator[constrain.Model]:
    with constrain.Model(n_ctx=256, n_threads=1) as found:
        yield found


def require_same(model: constrain.Model, original: constrain.Constraint, gbnf: str, found: Iterable[str]) -> int:
    """Fails for a text of which llama.cpp thinks otherwise; returns the number of texts."""
    theirs = LlamaMatcher(model, gbnf)
    encode = model.vocabulary.encode
    assert encode is not None
    number = 0
    for text in found:
        assert original.accepts(text) == theirs.accepts(encode(text.encode())), text
        number += 1
    theirs.close()
    return number


def walks(original: constrain.Constraint, rng: Random) -> Iterator[str]:
    """Random texts of a language, and others that are nearly of it; without characters that the model cannot spell."""
    for _ in range(WALKS):
        text = walked(original, rng)
        for each in (text, changed(text, rng)):
            if b"\0" not in each and _is_text(each):
                yield each.decode()


def _is_text(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SCHEMAS, *RECURSIVE])
def test_llama_cpp_reads_exported_schemas(name: str, model: constrain.Model) -> None:
    schema = {**SCHEMAS, **RECURSIVE}[name]
    original, rng = closed(schema), Random(name)
    require_same(model, original, constrain.grammars.export(schema, "gbnf"), (*texts(schema), *walks(original, rng)))


@pytest.mark.slow
@pytest.mark.parametrize("name", RECURSIVE_LARK)
def test_llama_cpp_reads_what_was_left_recursive(name: str, model: constrain.Model) -> None:
    original, rng = compiled(constrain.Lark(RECURSIVE_LARK[name])), Random(name)
    require_same(model, original, original.export("gbnf"), ("", "1+2", "xyxy", "dcb", *walks(original, rng)))


@pytest.mark.slow
def test_llama_cpp_takes_long_repetitions(model: constrain.Model) -> None:
    original = compiled(constrain.Regex("(ab?){1500,4321}x{2500}[cd]{3000,}"))
    found = ["a" * count + "x" * 2500 + "c" * end for count in (1499, 1500, 4321, 4322) for end in (2999, 3001)]
    require_same(model, original, original.export("gbnf"), found)


@pytest.mark.slow
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "open"])
def test_llama_cpp_reads_the_schemas_of_maskbench(is_closed: bool, model: constrain.Model) -> None:
    """With CONSTRAIN_LONG=1 and -s, prints the share that is exported."""
    counts = {"compiled": 0, "exported": 0, "texts": 0, "accepted": 0}
    refused: dict[str, int] = {}
    for entry in Random(29).sample(maskbench(), SAMPLE):
        try:
            original = compiled(grammar_of(entry["schema"], close_objects=is_closed))
        except constrain.ConstrainError:
            continue
        counts["compiled"] += 1
        try:
            gbnf = original.export("gbnf")
        except (constrain.ExportError, constrain.LimitError) as error:
            refused[error.message] = refused.get(error.message, 0) + 1
            continue
        counts["exported"] += 1
        found = list(instances(entry))
        counts["texts"] += require_same(model, original, gbnf, found)
        counts["accepted"] += sum(map(original.accepts, found))
    print(f"\n{SAMPLE} schemas, {'closed' if is_closed else 'open'}: {counts}; refused: {refused}")
    assert counts["exported"] >= counts["compiled"] // (2 if is_closed else 10)


def instances(entry: dict[str, Any]) -> Iterator[str]:
    """The instances of a schema, in several spellings."""
    for test in entry["tests"]:
        yield from (json.dumps(test["data"], **style) for style in STYLES)
