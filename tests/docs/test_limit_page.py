"""docs/reference/limits.md has every limit that a message names (``test_pages`` says whether it is current)."""

from __future__ import annotations

import ast

import pytest

from tools.pages.limits import KERNEL, kernel_limits, modules, named_in_texts, package_limits

if not KERNEL.exists():
    pytest.skip("the sources are not there", allow_module_level=True)

OF_DEFINITIONS = {"MAX_LABEL_LENGTH", "MAX_WARNING_LENGTH", "MAX_CODE_POINT"}
"""Parts of expressions, and of texts that are cut: no errors name these."""


@pytest.fixture(scope="module")
def listed() -> list[str]:
    return [limit.name for limit in (*kernel_limits(), *package_limits())]


def test_every_limit_of_the_kernel_is_there() -> None:
    assert len(list(kernel_limits())) == KERNEL.read_text(encoding="utf-8").count("constexpr NamedLimit ")


@pytest.mark.slow
def test_every_limit_that_a_message_names_is_there_and_in_use(listed: list[str]) -> None:
    missing, wrong = [], []
    for path, tree in modules():
        known = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        named = set(named_in_texts(tree))
        missing += [(path, name) for name in named - {*listed, *OF_DEFINITIONS}]
        wrong += [(path, name) for name in named - known]
    assert not missing, 'say in the docstring of the constant, behind "Beyond:", what happens'
    assert not wrong, "a message names a constant that its module does not use"


@pytest.mark.slow
def test_no_two_limits_share_a_name(listed: list[str]) -> None:
    assert sorted(set(listed)) == sorted(listed)
