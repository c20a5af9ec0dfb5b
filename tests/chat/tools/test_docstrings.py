"""Docstrings in three styles."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

from constrain.chat.tools.docstrings import read_docstring
from tests.support import for_each

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

CASES = tomllib.loads((Path(__file__).parent / "data" / "docstrings.toml").read_text(encoding="utf-8"))["docstring"]


@for_each("case", CASES)
def test_description_and_parameters_are_read(case: dict[str, Any]) -> None:
    found = read_docstring(inspect.cleandoc(case["text"]))
    assert found.description == case["description"]
    assert found.parameters == case.get("parameters", {})
