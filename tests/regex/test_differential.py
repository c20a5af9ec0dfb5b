"""Random patterns of all dialects, judged by other engines: ``re``, ``regress`` and interegular.

Each pattern is compared as it stands with the engine of its dialect (``re``, ``regress``), and in plain terms, where no
dialect matters, with ``re`` and interegular: see ``random_patterns``. Differences that are explained:

- ``\\B`` in the empty text: ``re`` matches there from Python 3.14 on, as all others, and the plain terms, do.
- ``regress`` gives up too early in loops inside loops: it does not find "aa" by ``^(?:(?:(?:a)+)+){2}$``. Where it says
  that nothing matches, and the pattern has a loop inside a loop, the plain pattern decides; so it does where
  ``regress`` may take for ever.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import interegular
import pytest
import regress

from constrain import kernel
from constrain.errors import PatternError
from constrain.regex.parsing.parser import parse_pattern
from constrain.regex.parsing.scanner import Dialect
from tests.support import LONG
from tests.support.regex.random_patterns import Generator, Piece, texts

PATTERNS = 5_000 if LONG else 150
BLOCKS = 10 if LONG else 2

_NESTED_LOOPS = re.compile(r"\)[*+{?].*[*+{?]|[*+{?].*\)[*+{?]", re.DOTALL)
_GROUP_LOOP = re.compile(r"\)[*+?{]")
_EMPTY_ALTERNATIVE = re.compile(r"[(|:>]\||\|\)|[:(>]\)")
_THIRD_LENGTH = 120
"""Longest plain pattern that interegular judges: its automata become large."""


def judges(piece: Piece, dialect: Dialect, *, anchored: bool) -> dict[str, Callable[[str], bool]]:
    """Whether a text matches, by each engine that can say."""
    plain = re.compile(piece.plain)
    found: dict[str, Callable[[str], bool]] = {
        "plain": lambda text: (plain.fullmatch if anchored else plain.search)(text) is not None
    }
    if dialect == "python":
        native = re.compile(piece.pattern)
        found["re"] = lambda text: (native.fullmatch if anchored else native.search)(text) is not None
    if dialect == "ecma" and not _is_slow(piece.pattern):
        oracle = regress.Regex(f"^(?:{piece.pattern})$" if anchored else piece.pattern, "u")
        found["regress"] = lambda text: oracle.find(text) is not None
    if anchored and not piece.looks and len(piece.plain) <= _THIRD_LENGTH and "\\A" not in piece.plain:
        automaton = _automaton(piece.plain)
        if automaton is not None:
            found["interegular"] = automaton.accepts
    return found


def _is_slow(pattern: str) -> bool:
    """May ``regress`` take for ever? It does in loops around what may be empty, or around other loops."""
    loops = len(_GROUP_LOOP.findall(pattern))
    return loops > 1 or (loops == 1 and _EMPTY_ALTERNATIVE.search(pattern) is not None)


def _automaton(plain: str) -> Any:
    try:
        return interegular.parse_pattern(plain).to_fsm()
    except (interegular.InvalidSyntax, interegular.Unsupported):
        return None


def is_explained(name: str, piece: Piece, text: str, dialect: Dialect, *, judged: bool) -> bool:
    if name == "plain":
        return dialect == "python" and sys.version_info < (3, 14) and "\\B" in piece.pattern and not text
    return name == "regress" and not judged and _NESTED_LOOPS.search(piece.pattern) is not None


def refusal(piece: Piece, dialect: Dialect) -> str:
    """Why a pattern is not read; empty if it is."""
    try:
        for anchored in (True, False):
            parse_pattern(piece.pattern, dialect, anchored=anchored)
    except PatternError as error:
        return str(error)
    return ""


def difference(piece: Piece, dialect: Dialect, rng: Random, counts: Counter[str]) -> str:
    """What engines differ about without an explanation."""
    for anchored in (True, False) if dialect != "rust" else (True,):
        expression = parse_pattern(piece.pattern, dialect, anchored=anchored)
        others = judges(piece, dialect, anchored=anchored)
        for text in texts(piece, rng):
            ours = kernel.matches(expression, text.encode())
            counts["matched"] += ours
            for name, judge in others.items():
                counts[name] += 1
                judged = judge(text)
                if judged != ours:
                    if not is_explained(name, piece, text, dialect, judged=judged):
                        return f"{name} says {judged} of {text!r} by {piece} (anchored: {anchored})"
                    counts["explained"] += 1
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("dialect", ["rust", "ecma", "python"])
def test_random_patterns_mean_the_same_to_other_engines(dialect: Dialect, block: int) -> None:
    rng = Random(f"{dialect} {block}")
    counts: Counter[str] = Counter()
    while counts["read"] < PATTERNS // BLOCKS:
        piece = Generator(dialect, rng).whole()
        if refused := refusal(piece, dialect):
            assert piece.looks, (piece, refused)
            assert "cannot be expressed exactly" in refused or "MAX_LOOKAROUND_ALTERNATIVES" in refused
            counts["refused"] += 1
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert difference(piece, dialect, rng, counts) == "", (dialect, block)
        counts["read"] += 1
    assert counts["refused"] * 3 < counts["read"]
    assert counts["matched"] > counts["read"]
    assert counts["interegular"] > counts["read"]
    assert counts["explained"] * 20 < counts["plain"]
