"""The examples in docstrings run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import constrain

MODULES = [
    name for _, name, _ in pkgutil.walk_packages(constrain.__path__, "constrain.") if not name.endswith("__main__")
]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_print_what_they_say(name: str) -> None:
    module = importlib.import_module(name)
    tests = [test for test in doctest.DocTestFinder(exclude_empty=True).find(module, name) if test.examples]
    if not tests:
        return
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in tests:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
