"""Free text around marks: texts without them, and texts up to the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.language.tree import (
    ANY_BYTE,
    ANY_BYTES,
    ANY_CHAR,
    Complement,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Repetition,
)
from constrain.regex.anchors import sequence, union

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY_TEXT = Repetition(ANY_CHAR, 0, None)
SOME_BYTES = Repetition(ANY_BYTE, 1, None)

FEW_MARKS = 8
"""Marks up to which each is a leaf of its own; more of them are one leaf, whose derivatives are smaller."""


def without(marks: Sequence[bytes], expression: Expression = ANY_TEXT) -> Expression:
    """Returns the texts of an expression that contain none of the marks."""
    inside = [sequence(ANY_BYTES, mark, ANY_BYTES) for mark in _leaves(marks)]
    return Intersection((expression, Complement(union(inside)))) if inside else expression


def up_to(mark: bytes, marks: Sequence[bytes], expression: Expression = ANY_TEXT) -> Expression:
    """Returns the texts of an expression followed by ``mark``, in which no mark ends earlier."""
    early = [sequence(ANY_BYTES, each, SOME_BYTES) for each in _leaves(marks)]
    return Intersection((sequence(expression, Literal(mark)), Complement(union(early))))


def _leaves(marks: Sequence[bytes]) -> list[Expression]:
    """Returns the marks, each as a leaf, or all of them as one if there are many."""
    return [LiteralSet(tuple(marks))] if len(marks) > FEW_MARKS else [Literal(mark) for mark in marks]
