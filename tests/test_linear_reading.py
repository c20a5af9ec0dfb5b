"""What is odd is read in linear time, and what doubles is refused before it is made."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from types import FrameType
from typing import Any

import pytest

import constrain
from constrain import ConstrainError, Gbnf, Lark, LimitError, Regex
from constrain.json_schema.lint.linter import lint_schema
from constrain.language.tree import CharClass, Expression, Literal
from constrain.regex.anchors import sequence, union
from constrain.work import compilation
from tests.support import byte_vocabulary, for_each
from tests.test_import_order import sources

FRAGMENTS = [
    *"\\\"/'`<>[](){}?*+|,:;=.$%#&_-~@! \t\n\ra1Aé",
    *("// a\r\n", "# a\r\n", "a\r\n", "{1", "(*", "a ", "a|", "one of ", "'a", "<a", "<[1", '"a" ', "pattern "),
    *(" (line 1", "<parameter=a>\n", "$name", "\ud83d", "https://a", "[a:b]"),
]
"""Texts that are repeated."""

PAIRED = "\\\"/'<>[](){*|: \n\ra1"
"""Characters that are repeated in pairs."""

LENGTH, SECONDS = 8_000, 0.5
"""Characters of a text, and seconds of a search in it: a linear search takes less than a millisecond."""

SEARCHES = re.compile(r"\b(_?[A-Z][A-Z_0-9]*)\.(?:search|finditer|findall|sub|split)\(")
"""The patterns of a module that it looks for anywhere; others are expected at one place."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    def ring(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"it takes more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def readers() -> dict[str, Callable[[Any], object]]:
    """How modules use the patterns that they keep, by name."""
    found: dict[str, Callable[[Any], object]] = {}
    known: set[int] = set()
    searched = {name for path in sources().values() for name in SEARCHES.findall(path.read_text())}
    for name in sources():
        module = importlib.import_module("constrain" if name == "__init__" else f"constrain.{name}")
        for attribute, value in vars(module).items():
            if isinstance(value, re.Pattern) and id(value) not in known:
                known.add(id(value))
                found[f"{name}.{attribute}"] = value.search if attribute in searched else value.fullmatch
    return found


def is_slow(read: Callable[[Any], object], text: str) -> bool:
    owner: Any = read
    subject = text if isinstance(owner.__self__.pattern, str) else text.encode("utf-8", "replace")
    begun = time.process_time()
    try:
        with alarm(4 * SECONDS):
            read(subject)
    except TimeoutError:
        return True
    return time.process_time() - begun > SECONDS


@pytest.mark.slow
def test_patterns_take_linear_time() -> None:
    known = readers()
    assert len(known) > 40
    repeated = [*FRAGMENTS, *("".join(pair) for pair in product(PAIRED, PAIRED))]
    slow = [
        f"{name}: {fragment!r}"
        for name, read in known.items()
        for fragment in repeated
        if is_slow(read, fragment * (LENGTH // len(fragment)))
    ]
    assert not slow


READ: dict[str, Callable[[], object]] = {
    "a string without its end": lambda: Lark('start: "' + "\\\\" * 40).grammar(),
    "a pattern without its end": lambda: Lark("start: /" + "\\\\" * 40).grammar(),
    "many escaped slashes": lambda: Lark('start: "a"\n' + "\\/" * 50_000).grammar(),
    "comments in lines of Windows": lambda: Lark('start: "a"\r\n' + "// a\r\n" * 4_000 + 'A: "b"\r\n').grammar(),
    "the other comments": lambda: Lark('start: "a"\r\n' + "# a\r\n" * 4_000 + 'A: "b"\r\n').grammar(),
    "comments in front of an alternative": lambda: Lark('start: "a"\r\n' + "# a\r\n" * 4_000 + '| "b"').grammar(),
    "blanks": lambda: Lark('start: "a"' + " " * 100_000 + '\nA: "b"').grammar(),
    "empty lines": lambda: Lark('start: "a"' + "\n" * 100_000 + 'A: "b"').grammar(),
    "comments of GBNF": lambda: Gbnf('root ::= "a"\r\n' + "# a\r\n" * 4_000 + 'x ::= "b"').grammar(),
    "a description": lambda: lint_schema({"type": "string", "description": "one of " * 30_000}),
    "quotes in a description": lambda: lint_schema({"type": "string", "description": "'a " * 30_000}),
    "backslashes in a pattern": lambda: lint_schema({"type": "string", "pattern": "\\\\" * 20_000}),
}


@for_each("read", READ.values())
def test_odd_texts_are_read_or_refused_at_once(read: Callable[[], object]) -> None:
    with alarm(5), suppress(ConstrainError):
        read()


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
    with compilation(), pytest.raises(LimitError, match="MAX_COMPILE_WORK"):
        functools.reduce(lambda one, _: join(one), range(LEVELS), leaf)
