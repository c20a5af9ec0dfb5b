"""Tables of schemas with texts they accept and reject, and of schemas that are refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from constrain import errors as _errors
from constrain.json_schema.compiler import compile_schema
from tests.support.json_schema.grammar_interpreter import Interpreter

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

DATA = Path(__file__).parent / "data"


def cases(*names: str) -> list[Any]:
    """One parameter for each case of the named tables."""
    tables = {name: tomllib.loads((DATA / f"{name}.toml").read_text(encoding="utf-8")) for name in names}
    return [pytest.param(case, id=f"{name}: {case['name']}") for name in names for case in tables[name]["case"]]


@pytest.mark.parametrize("case", cases("values", "arrays", "objects", "combinations", "logic", "whitespace"))
def test_language(case: dict[str, Any]) -> None:
    options = {"whitespace": "compact", **case.get("options", {})}
    interpreter = Interpreter(compile_schema(json.loads(case["schema"]), **options).grammar)
    for text in case["accepted"]:
        assert interpreter.accepts(text.encode()), f"should be accepted: {text}"
    for text in case["rejected"]:
        assert not interpreter.accepts(text.encode()), f"should be rejected: {text}"


@pytest.mark.parametrize("case", cases("errors"))
def test_refusal(case: dict[str, Any]) -> None:
    with pytest.raises(_errors.ConstrainError) as caught:
        compile_schema(json.loads(case["schema"]), **case.get("options", {}))
    assert type(caught.value).__name__ == case["error"]
    assert caught.value.pointer == case.get("pointer")
    assert case["says"] in str(caught.value)
