r"""Eliminates ``^`` and ``$`` exactly: an expression with anchors becomes up to four without.

A match covers ``text[i:j]``. An anchor inside it asserts that its own position is 0 or ``len(text)``. So all text that
the match reads before the position (or after it) is empty, and the whole match starts at 0 (or stops at the end). So an
expression is four languages, by the demands of a match on its surroundings:

    plain      anywhere in the text
    start      i = 0
    end        j = len(text)
    both       the whole text

Concatenation, alternation and repetition of expressions are polynomials over these; a factor left of a start demand,
or right of an end demand, contributes its empty text only. Shared subtrees keep the result linear
in the size of the pattern.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from constrain.language.tree import (
    EMPTY_TEXT,
    NOTHING,
    Alternation,
    Concatenation,
    Expression,
    Literal,
    Repetition,
    nullable,
)
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTS_PER_COUNT = 16
"""Parts of a flat concatenation or alternation that are counted at once."""

BYTES_PER_PART = 32
"""Bytes of a literal that count as one part."""

COUNT_STEPS = 64
"""Steps of compilation for so many parts: they are read again by everything that asks about the expression."""


class Anchored(NamedTuple):
    """An expression with anchors; ``None`` is the empty language."""

    plain: Expression | None
    start: Expression | None
    end: Expression | None
    both: Expression | None


Fragment = Expression | Anchored

AT_START = Anchored(None, EMPTY_TEXT, None, None)
AT_END = Anchored(None, None, EMPTY_TEXT, None)


def concatenate(left: Fragment, right: Fragment) -> Fragment:
    """Returns the texts of ``left`` followed by those of ``right``."""
    if not isinstance(left, Anchored) and not isinstance(right, Anchored):
        return sequence(left, right)
    a, b = _anchored(left), _anchored(right)
    a_plain, a_start, a_end, a_both = map(_nullable, a)
    b_plain, b_start, b_end, b_both = map(_nullable, b)
    starts_empty, ends_empty = a_start or a_plain, b_plain or b_end
    return Anchored(
        _concatenation(a.plain, b.plain),
        _union(_concatenation(a.start, b.plain), b.start if starts_empty else None),
        _union(_concatenation(a.plain, b.end), a.end if ends_empty else None),
        _union(
            _concatenation(a.start, b.end),
            a.both if ends_empty else None,
            b.both if starts_empty else None,
            # An end demand left of a start demand: the text is empty.
            EMPTY_TEXT if (a_end or a_both) and (b_start or b_both) else None,
        ),
    )


def alternate(parts: list[Fragment]) -> Fragment:
    """Returns the texts of any of ``parts``."""
    if not any(isinstance(part, Anchored) for part in parts):
        return union([part for part in parts if not isinstance(part, Anchored)])
    columns = zip(*map(_anchored, parts), strict=True)
    return Anchored(*(_union(*column) for column in columns))


def repeat(part: Fragment, minimum: int, maximum: int | None) -> Fragment:
    """Returns ``part``, ``minimum`` to ``maximum`` times."""
    if not isinstance(part, Anchored):
        return repetition(part, minimum, maximum)
    if maximum == 0:
        return EMPTY_TEXT
    plain, start, end, both = part
    plain_empty, start_empty, end_empty, both_empty = map(_nullable, part)
    pairs = maximum is None or maximum >= 2

    def times(removed: int, *, padded: bool) -> Expression | None:
        """Returns the plain factors, without ``removed`` of them; empty ones (``padded``) may replace any of them."""
        least = 0 if padded else max(minimum - removed, 0)
        most = None if maximum is None else maximum - removed
        if plain is None:
            return EMPTY_TEXT if least == 0 else None
        return repetition(plain, least, most)

    before, after = plain_empty or start_empty, plain_empty or end_empty
    empty_both = both_empty or (start_empty and end_empty and pairs)
    return Anchored(
        times(0, padded=plain_empty),
        _concatenation(start, times(1, padded=before)),
        _concatenation(times(1, padded=after), end),
        _union(
            _concatenation(_concatenation(start, times(2, padded=before or after)), end) if pairs else None,
            both if minimum <= 1 or before or after else None,
            EMPTY_TEXT if empty_both else None,
        ),
    )


def whole(fragment: Fragment) -> Expression:
    """Returns the texts that the fragment matches from beginning to end."""
    return _union(*fragment) or NOTHING if isinstance(fragment, Anchored) else fragment


def search(fragment: Fragment, anything: Expression) -> Expression:
    """Returns the texts that contain a match of the fragment; ``anything`` matches all texts."""
    plain, start, end, both = _anchored(fragment)
    if plain is not None and _nullable(plain):
        return anything
    found = (
        None if plain is None else sequence(anything, _cut(_cut(plain, -1), 0), anything),
        None if start is None else sequence(_cut(start, -1), anything),
        None if end is None else sequence(anything, _cut(end, 0)),
        both,
    )
    return _union(*found) or NOTHING


# Constructors that keep trees flat and small.


def sequence(*parts: Expression) -> Expression:
    """Returns a concatenation; nested ones are flattened, adjacent literals are joined. Raises LimitError."""
    _count(parts, Concatenation)
    factors: list[Expression] = []
    for part in parts:
        factors.extend(part.parts if isinstance(part, Concatenation) else (part,))
    if any(isinstance(factor, Alternation) and not factor.parts for factor in factors):
        return NOTHING
    flat: list[Expression] = []
    for is_literal, run in groupby(factors, lambda factor: isinstance(factor, Literal)):
        together = list(run)
        if is_literal and len(together) > 1:
            together = [Literal(b"".join(each.text for each in together if isinstance(each, Literal)))]
        flat += together
    return (flat[0] if len(flat) == 1 else Concatenation(tuple(flat))) if flat else EMPTY_TEXT


def union(parts: list[Expression]) -> Expression:
    """Returns an alternation; nested ones are flattened. Raises LimitError."""
    _count(parts, Alternation)
    flat: list[Expression] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Alternation) else (part,))
    return (flat[0] if len(flat) == 1 else Alternation(tuple(flat))) if flat else NOTHING


def _count(parts: Iterable[Expression], kind: type[Concatenation | Alternation]) -> None:
    """Counts the size of a flat expression before it is made: expressions that share parts may double in each level."""
    size = 0
    for part in parts:
        size += len(part.parts) if isinstance(part, kind) else 1
        size += len(part.text) // BYTES_PER_PART if isinstance(part, Literal) else 0
    if size >= PARTS_PER_COUNT:
        spend(size // PARTS_PER_COUNT * COUNT_STEPS)


def repetition(part: Expression, minimum: int, maximum: int | None) -> Expression:
    """Returns a repetition; trivial ones are simplified and nested unlimited ones joined."""
    if maximum == 0 or part is EMPTY_TEXT:
        return EMPTY_TEXT
    if minimum == maximum == 1:
        return part
    if isinstance(part, Alternation) and not part.parts:
        return NOTHING if minimum else EMPTY_TEXT
    if isinstance(part, Repetition) and part.maximum is None and part.minimum <= 1:
        # (x*){m,n} is x*, (x+){m,n} is x{m,}.
        return Repetition(part.part, part.minimum * minimum, None)
    return Repetition(part, minimum, maximum)


def _anchored(fragment: Fragment) -> Anchored:
    return fragment if isinstance(fragment, Anchored) else Anchored(fragment, None, None, None)


def _concatenation(left: Expression | None, right: Expression | None) -> Expression | None:
    return None if left is None or right is None else sequence(left, right)


def _union(*parts: Expression | None) -> Expression | None:
    present = [part for part in parts if part is not None]
    return union(present) if present else None


def _nullable(expression: Expression | None) -> bool:
    return expression is not None and nullable(expression)


def _cut(expression: Expression, end: int) -> Expression:
    """Returns a smaller expression with the same meaning next to ``.*``: ``x{m,n}.*`` is ``x{m}.*``.

    ``end``: -1 if any text may follow, 0 if any text may precede.
    """
    if isinstance(expression, Repetition):
        if expression.minimum > 1:
            return Repetition(expression.part, expression.minimum, expression.minimum)
        return _cut(expression.part, end) if expression.minimum else EMPTY_TEXT
    while isinstance(expression, Concatenation) and expression.parts:
        outer = expression.parts[end]
        cut = _cut(outer, end)
        if cut is outer:
            break
        rest = expression.parts[:-1] if end else expression.parts[1:]
        expression = sequence(*rest, cut) if end else sequence(cut, *rest)
        if cut is not EMPTY_TEXT:
            break
    return expression
