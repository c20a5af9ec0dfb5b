"""Users read the kernel's methods with ``help`` and in an editor: both show the same text."""

from __future__ import annotations

import inspect

import pytest

import constrain
from tools import stub


def test_every_public_name_of_a_matcher_has_a_docstring() -> None:
    names = [name for name in dir(constrain.Matcher) if not name.startswith("_") and name != "constraint"]
    assert [name for name in names if not inspect.getdoc(inspect.getattr_static(constrain.Matcher, name))] == []


def test_the_stub_has_the_docstrings_and_signatures_of_the_kernel() -> None:
    pytest.importorskip("nanobind")
    assert stub.PATH.read_text(encoding="utf-8") == stub.text(), "run python -m tools.stub"
