"""Copies, pickles, comparison and ``repr`` of what users hold, however deep it is and wherever they are called."""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import constrain
from constrain.language import tree
from constrain.language.digest import source_digest
from tests.support import byte_vocabulary

FRAMES = 400
"""Calls within one another that are left of Python's stack; by default it has 1000."""

DEPTH = 2_000


@contextlib.contextmanager
def small_stack(left: int = FRAMES) -> Iterator[None]:
    depth, frame = 0, sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        depth += 1
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + left)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def deep_expression() -> tree.Expression:
    made: tree.Expression = tree.Literal(b"a")
    for level in range(DEPTH):
        kinds = (
            tree.Concatenation((made, tree.EMPTY_TEXT)),
            tree.Alternation((tree.NOTHING, made)),
            tree.Intersection((made, tree.ANY_BYTES)),
            tree.Complement(made),
            tree.Repetition(made, 0, None),
            tree.Window(made, tree.ANY_CHAR, 1, 3),
        )
        made = kinds[level % len(kinds)]
    return made


def nested_composition() -> Any:
    made: Any = "a"
    with contextlib.suppress(constrain.LimitError):
        while True:
            made = constrain.parts.choice(constrain.parts.sequence(made, ""), "b")
    return made


SOURCES = {
    "Lark": lambda: constrain.Lark("start: " + "(" * 45 + '"a"' + ")*" * 45),
    "Regex": lambda: constrain.Regex("(?:" * 90 + "a" + ")+" * 90),
    "composition": nested_composition,
}


@pytest.mark.parametrize("name", SOURCES)
def test_sources_are_equal_after_copying_and_pickling(name: str) -> None:
    source = SOURCES[name]()
    with small_stack():
        assert copy.copy(source) == source
        assert copy.deepcopy(source) == source
        assert pickle.loads(pickle.dumps(source)) == source
        assert hash(source) == hash(SOURCES[name]())
        assert source == SOURCES[name]()
        assert source_digest(source) == source_digest(SOURCES[name]())


@pytest.mark.parametrize("name", ["Lark", "composition"])
def test_a_stack_that_is_too_small_to_compile_is_a_limit_error(name: str) -> None:
    source, vocabulary = SOURCES[name](), byte_vocabulary()
    with small_stack(120), pytest.raises(constrain.LimitError, match="too deeply for what is left of Python's stack"):
        constrain.compile(source, vocabulary, cache=False)
    with small_stack(900):
        assert constrain.compile(source, vocabulary, cache=False).accepts("a")


def test_expressions_are_printed_as_they_are_written() -> None:
    assert repr(tree.Alternation((tree.NOTHING,))) == f"Alternation(parts=({tree.NOTHING!r},))"


def test_deep_expressions_are_copied_and_pickled_on_a_small_stack() -> None:
    expression = deep_expression()
    with small_stack():
        assert copy.copy(expression) is expression
        assert copy.deepcopy(expression) is expression
        assert expression != deep_expression()  # inner nodes are equal to themselves only
        assert hash(expression) == hash(expression)
        assert repr(expression).startswith("Alternation(parts=(Alternation(parts=()), Concatenation(parts=(Window(")
        assert len(repr(expression)) < 10_000
        read = pickle.loads(pickle.dumps(expression))
        assert tree.listed([read]) == tree.listed([expression])
    assert pickle.loads(pickle.dumps(tree.NOTHING)) is tree.NOTHING


def test_a_copy_of_a_matcher_goes_its_own_way() -> None:
    matcher = constrain.compile({"enum": ["yes", "no"]}, byte_vocabulary(), cache=False).matcher()
    assert matcher.accept_many(b'"y') == 2
    for copied in (copy.copy(matcher), copy.deepcopy(matcher)):
        assert copied.accept_many(b'es"') == 3
        assert copied.is_accepting
    assert matcher.n_accepted == 2


def test_objects_of_one_process_refuse_pickling_and_say_what_to_do() -> None:
    constraint = constrain.compile({"enum": ["yes", "no"]}, byte_vocabulary(), cache=False)
    for one, says in (
        (constraint, "pickle its schema or grammar"),
        (constraint.matcher(), "make a new one and let it accept the same tokens"),
        (constraint.vocabulary, "make it again from the GGUF file or the tokens"),
    ):
        with pytest.raises(TypeError, match=says):
            pickle.dumps(one)
