"""Users read the kernel's methods with ``help`` and in an editor: both show the same text."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import constrain
from constrain.engine import core

STUB = Path(core.__file__).with_suffix(".pyi")


def stub_docstrings() -> dict[str, str | None]:
    """The docstrings of the methods and properties of ``Matcher`` in the stub file, which editors show."""
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    (matcher,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Matcher")
    return {
        node.name: ast.get_docstring(node)
        for node in matcher.body
        if isinstance(node, ast.FunctionDef) and node.name != "__init__"
    }


def runtime_docstring(name: str) -> str | None:
    """The docstring that ``help`` shows, without the signature that nanobind puts in front of a method's."""
    member = inspect.getattr_static(core.Matcher, name)
    found = inspect.getdoc(member)
    return found if found is None or isinstance(member, property) else found.partition("\n\n")[2]


def test_every_public_name_of_a_matcher_has_a_docstring() -> None:
    names = [name for name in dir(constrain.Matcher) if not name.startswith("_") and name != "constraint"]
    assert [name for name in names if not inspect.getdoc(inspect.getattr_static(constrain.Matcher, name))] == []


@pytest.mark.parametrize("name", stub_docstrings())
def test_the_stub_has_the_docstring_of_the_kernel(name: str) -> None:
    assert stub_docstrings()[name] == runtime_docstring(name)


def test_the_stub_has_every_public_member_of_a_matcher() -> None:
    public = {name for name in stub_docstrings() if not name.startswith("_")}
    assert public == {name for name in vars(core.Matcher) if not name.startswith("_")}
