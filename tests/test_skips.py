"""A test that an error stops has failed, and every package has tests that are not slow."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.support import for_each

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


PACKAGE = TESTS.parent / "constrain"

ELSEWHERE = {
    "batch/stores": "batch",
    "exporting/notations": "exporting",
    "json_schema/emission": "json_schema",
    "json_schema/formats/idn": "json_schema/formats",
    "json_schema/formulas/remembered": "json_schema/formulas",
    "json_schema/keywords": "json_schema",
    "generation/observers": "generation",
    "generation/observers/certificate": "certificates",
    "generation/observers/confidence": "confidence",
    "lark/lexing": "lark",
    "ray/endpoint": "ray",
    "regex/parsing": "regex",
    "regex/unicode": "regex",
    "vocabulary/gguf": "vocabulary",
}
"""Packages whose tests stand in another folder than the one with the same name."""


def packages() -> list[str]:
    folders = (path.parent for path in PACKAGE.rglob("__init__.py"))
    return sorted(str(folder.relative_to(PACKAGE)) for folder in folders if folder != PACKAGE)


@cache
def fast_tests_of(path: Path) -> list[str]:
    return fast_tests(path.read_text("utf-8"))


def fast_tests(text: str) -> list[str]:
    """The tests of a file that are not slow, or not with all parameters."""
    tree = ast.parse(text)
    marks = [node.value for node in tree.body if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node)]
    if any(is_slow(node) for mark in marks for node in ast.walk(mark)):
        return []
    tests = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
    return [test.name for test in tests if not any(is_slow(decorator) for decorator in test.decorator_list)]


def is_slow(mark: ast.AST) -> bool:
    return isinstance(mark, ast.Attribute) and ast.unparse(mark) in ("pytest.mark.slow", "pytest.mark.long")


@for_each("package", packages())
def test_every_package_has_fast_tests(package: str) -> None:
    folder = TESTS / ELSEWHERE.get(package, package)
    found = any(fast_tests_of(path) for path in sorted(folder.rglob("test_*.py")))
    assert found, f"all tests in {folder} are slow; pytest -m 'not slow' tells nothing of constrain/{package}"


@for_each(
    "text, names",
    ("def test_a(): ...\n@pytest.mark.slow\ndef test_b(): ...\n", ["test_a"]),
    ("@pytest.mark.slow(only=('b',))\ndef test_a(n): ...\n", ["test_a"]),
    ("pytestmark = pytest.mark.slow\ndef test_a(): ...\n", []),
    ("@pytest.mark.long\ndef test_a(): ...\n", []),
    ("pytestmark = [pytest.mark.slow, pytest.mark.serial]\ndef test_a(): ...\n", []),
)
def test_slow_tests_are_told_from_others(text: str, names: list[str]) -> None:
    assert fast_tests(text) == names
