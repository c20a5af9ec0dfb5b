"""Intersections that exclude one of their own parts are empty, which is seen without following them."""

from __future__ import annotations

import pytest

from constrain import kernel
from constrain.language.tree import (
    Alternation,
    ByteClass,
    Complement,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    Repetition,
)
from constrain.regex.parsing.parser import parse_pattern

LONG = [
    parse_pattern(text, "rust")
    for text in (
        "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z",
        "[a-z]{3,70}@[a-z]{2,50}\\.(com|org|net)",
        "([A-F]{2}:){5}[A-F]{2}",
    )
]
FEW = 100
"""Units of work: reading the expressions takes most of it, and following them far more."""


@pytest.mark.parametrize(
    ("part", "excluded"),
    [
        (LONG[0], LONG[0]),
        (LONG[0], Alternation((LONG[1], LONG[0]))),
        (Alternation((LONG[2], LONG[0])), Alternation(tuple(LONG))),
        (Concatenation((LONG[0], LONG[1])), Concatenation((LONG[0], LONG[1]))),
    ],
)
def test_what_excludes_its_own_part_is_empty(part: Expression, excluded: Expression) -> None:
    for parts in ((part, Complement(excluded)), (Complement(excluded), LONG[1], part)):
        assert kernel.is_empty(Intersection(parts), kernel.Allowance(FEW))


@pytest.mark.parametrize(
    ("part", "excluded"),
    [
        (LONG[0], LONG[1]),
        (Alternation((LONG[0], LONG[1])), LONG[0]),
        (Alternation(tuple(LONG)), Alternation((LONG[0], LONG[2]))),
        (Literal(b"a" * 80 + b"c"), Repetition(ByteClass(((ord("a"), ord("b")),)), 0, None)),  # they differ late
    ],
)
def test_what_excludes_another_part_is_not(part: Expression, excluded: Expression) -> None:
    assert not kernel.is_empty(Intersection((part, Complement(excluded))))
