"""A test that an error stops has failed: none of them is skipped for an error."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def skips_after_errors(source: str) -> list[int]:
    """The lines of a module where an ``except`` skips or expects a failure."""
    if "except" not in source or ("pytest.skip(" not in source and "pytest.xfail(" not in source):
        return []
    handlers = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler))
    calls = (node for handler in handlers for node in ast.walk(handler) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if ast.unparse(call.func) in ("pytest.skip", "pytest.xfail")]


@pytest.mark.slow
def test_no_error_becomes_a_skip() -> None:
    found = {str(path.relative_to(TESTS)): skips_after_errors(path.read_text("utf-8")) for path in TESTS.rglob("*.py")}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("call", ["pytest.skip(str(error))", "pytest.xfail()"])
def test_such_a_skip_is_found(call: str) -> None:
    assert skips_after_errors(f"try:\n    run()\nexcept ValueError as error:\n    if error:\n        {call}\n") == [5]
