"""Names that stand for twice another name: texts and trees of exponential size are refused before they are made."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable

import pytest

import constrain
from constrain import Gbnf, Lark, LimitError, Regex
from constrain.language.tree import CharClass, Expression, Literal
from constrain.regex.anchors import sequence, union
from constrain.work import compilation
from tests.support import byte_vocabulary, for_each

LEVELS = 40


def _gbnf(twice: str, last: str) -> Gbnf:
    """A chain of rules; in ``twice``, N is the next rule."""
    rules = [f"a{level} ::= {twice.replace('N', f'a{level + 1}')}" for level in range(LEVELS)]
    return Gbnf("\n".join(["root ::= a0", *rules, f"a{LEVELS} ::= {last}"]))


def _lark(twice: str, last: str, *, name: str = "A") -> Lark:
    rules = [f"{name}{level}: {twice.replace('N', f'{name}{level + 1}')}" for level in range(LEVELS)]
    return Lark("\n".join([f"start: {name}0", *rules, f"{name}{LEVELS}: {last}"]))


DOUBLED: dict[str, Callable[[], Gbnf | Lark | Regex]] = {
    "GBNF, a letter": lambda: _gbnf("N N", '"x"'),
    "GBNF, a class": lambda: _gbnf("N N", "[a-c]"),
    "GBNF, with alternatives": lambda: _gbnf('N N | "y" N', '"x"'),
    "GBNF, recursive": lambda: _gbnf("N N", f'"(" a{LEVELS} ")" | "x"'),
    "Lark, a string": lambda: _lark("N N", '"x"'),
    "Lark, a string without case": lambda: _lark("N N", '"x"i'),
    "Lark, a pattern": lambda: _lark("N N", "/[ab]/"),
    "Lark, alternatives": lambda: _lark("N N | N N", '"x" | "y"'),
    "Lark, rules": lambda: _lark("N N", '"x"', name="a"),
    "a pattern": lambda: Regex("(" * LEVELS + "ab" + "{99}c){99}" * LEVELS),
}


@pytest.mark.slow(only=("GBNF, with alternatives", "Lark, alternatives"))
@pytest.mark.parametrize("name", DOUBLED)
def test_what_doubles_is_compiled_or_refused_in_time(name: str) -> None:
    source = DOUBLED[name]()
    vocabulary = byte_vocabulary()
    begin = time.process_time()
    with contextlib.suppress(LimitError):
        constrain.compile(source, vocabulary, cache=False)
    assert time.process_time() - begin < 6  # a proof that meets a limit takes a second, and three may


@for_each("leaf", [Literal(b"x" * 10), CharClass(((97, 98),))])
@for_each("join", [lambda one: sequence(one, one), lambda one: union([one, one, one])])
def test_an_expression_is_counted_before_it_is_made(leaf: Expression, join: Callable[[Expression], Expression]) -> None:
    with compilation(), pytest.raises(LimitError, match="MAX_EXPANSION_WORK"):
        functools.reduce(lambda one, _: join(one), range(LEVELS), leaf)
