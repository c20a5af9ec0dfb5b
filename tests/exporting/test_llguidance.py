"""Exported Lark, read by llguidance: it has the same texts as here."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

import constrain
from tests.exporting.test_schemas import RECURSIVE, SCHEMAS, closed, texts
from tests.exporting.test_sources import RECURSIVE as RECURSIVE_LARK
from tests.lark.test_llguidance import accepts
from tests.support import for_each
from tests.support.exporting import changed, compiled, walked


def require_same(original: constrain.Constraint, lark: str, found: Iterable[str]) -> None:
    """Fails for a text of which llguidance thinks otherwise, or a grammar that it refuses."""
    differing = {text: theirs for text in found if (theirs := accepts(lark, text)) != original.accepts(text)}
    assert differing == {}, lark


def walks(original: constrain.Constraint, name: str) -> list[str]:
    rng = Random(name)
    found = [walked(original, rng) for _ in range(2)]
    found += [changed(text, rng) for text in found]
    return [text.decode() for text in found if text.decode(errors="replace").encode() == text]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SCHEMAS, *RECURSIVE])
def test_llguidance_reads_exported_schemas(name: str) -> None:
    schema: Any = {**SCHEMAS, **RECURSIVE}[name]
    original = closed(schema)
    require_same(original, constrain.grammars.export(schema, "lark"), (*texts(schema)[::9], *walks(original, name)))


@for_each("name", RECURSIVE_LARK)
def test_llguidance_reads_exported_grammars(name: str) -> None:
    original = compiled(constrain.Lark(RECURSIVE_LARK[name]))
    require_same(original, original.export("lark"), ("", "1+2", "xyxy", "dcb", *walks(original, name)))
