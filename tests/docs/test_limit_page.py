"""docs/reference/limits.md has every limit that a message names (``test_pages`` says whether it is current)."""

from __future__ import annotations

import ast

import pytest

from tools.pages.limits import KERNEL, kernel_limits, modules, named_in_texts, package_limits

if not KERNEL.exists():
    pytest.skip("the sources are not there", allow_module_level=True)

OF_DEFINITIONS = {"MAX_LABEL_LENGTH", "MAX_WARNING_LENGTH", "MAX_CODE_POINT"}
"""Parts of expressions, and of texts that are cut: no errors name these."""


def test_every_limit_of_the_kernel_is_there() -> None:
    assert len(list(kernel_limits())) == KERNEL.read_text(encoding="utf-8").count("constexpr NamedLimit ")


def test_every_limit_that_a_message_names_is_there() -> None:
    listed = {limit.name for limit in (*kernel_limits(), *package_limits())} | OF_DEFINITIONS
    missing = [(path, name) for path, tree in modules() for name in named_in_texts(tree) if name not in listed]
    assert not missing, 'say in the docstring of the constant, behind "Beyond:", what happens'


def test_no_two_limits_share_a_name() -> None:
    names = [limit.name for limit in (*kernel_limits(), *package_limits())]
    assert sorted(set(names)) == sorted(names)


def test_the_name_in_a_message_is_that_of_a_constant_in_use_there() -> None:
    wrong = []
    for path, tree in modules():
        known = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        wrong += [(path, name) for name in named_in_texts(tree) if name not in known]
    assert not wrong
