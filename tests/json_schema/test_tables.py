"""Tables of schemas with texts they accept and reject, and of schemas that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain import errors as _errors
from constrain.json_schema.compiler import compile_schema
from tests.support import byte_vocabulary, check_each, tomllib

DATA = Path(__file__).parent / "data"


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((DATA / f"{name}.toml").read_text(encoding="utf-8"))["case"]
    return found


@pytest.mark.slow(only=("logic",))
@pytest.mark.parametrize("table", ["values", "arrays", "objects", "combinations", "logic", "references", "whitespace"])
def test_language(table: str) -> None:
    def check(case: dict[str, Any]) -> None:
        options = {"whitespace": "compact", **case.get("options", {})}
        grammar = compile_schema(json.loads(case["schema"]), **options).grammar
        constraint = constrain.compile(grammar, byte_vocabulary())
        assert [text for text in case["accepted"] if not constraint.accepts(text)] == []
        assert [text for text in case["rejected"] if constraint.accepts(text)] == []

    check_each(cases(table), check)


def test_refusals() -> None:
    def check(case: dict[str, Any]) -> None:
        with pytest.raises(_errors.ConstrainError) as caught:
            compile_schema(json.loads(case["schema"]), **case.get("options", {}))
        assert type(caught.value).__name__ == case["error"]
        assert caught.value.pointer == case.get("pointer")
        assert case["says"] in str(caught.value)

    check_each(cases("errors"), check)
