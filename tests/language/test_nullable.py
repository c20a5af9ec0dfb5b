"""Whether an expression has the empty text, or any, by its parts: as the kernel finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain import kernel
from constrain.language.emptiness import has_text_by_structure
from constrain.language.tree import (
    ANY_JSON_CHAR,
    EMPTY_TEXT,
    NOTHING,
    Alternation,
    ByteClass,
    CharClass,
    Complement,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    LiteralTable,
    Multiple,
    Repetition,
    Substring,
    Window,
    nullable,
)

CHARACTERS = CharClass(((97, 98),), json=True)
LEAVES = st.sampled_from(
    [
        Literal(b""),
        Literal(b"a"),
        LiteralSet((b"", b"ab")),
        LiteralSet((b"a", b"b")),
        LiteralSet(()),
        *(LiteralTable.of(kernel.Texts(values)) for values in ([], ["", "ab"], ["a", "b"])),
        ByteClass(((97, 99),)),
        ByteClass(()),
        CHARACTERS,
        CharClass(((0xD800, 0xDFFF),)),
        EMPTY_TEXT,
        NOTHING,
        Multiple(3),
        Substring(("ab",)),
        Substring(("ab",), minimum=1),
    ]
)


def around(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    counts = st.tuples(st.integers(0, 2), st.none() | st.integers(0, 3))
    return st.one_of(
        several.map(Concatenation),
        several.map(Alternation),
        several.map(Intersection),
        inner.map(Complement),
        st.tuples(inner, counts)
        .filter(lambda given: given[1][1] is None or given[1][0] <= given[1][1])
        .map(lambda given: Repetition(given[0], *given[1])),
    )


EXPRESSIONS = st.recursive(LEAVES, around, max_leaves=6)


@pytest.mark.slow
@given(EXPRESSIONS)
def test_the_empty_text_is_found_by_the_parts(expression: Expression) -> None:
    assert nullable(expression) == kernel.matches(expression, b"")


@given(st.integers(0, 2), st.sampled_from([None, 0, 2]), st.integers(0, 2))
def test_a_length_may_exclude_the_empty_text(minimum: int, maximum: int | None, least: int) -> None:
    window = Window(Repetition(CHARACTERS, least, None), ANY_JSON_CHAR, minimum, maximum)
    assert nullable(window) == kernel.matches(window, b"")


UNDECIDED = (Intersection, Complement, Multiple, Substring)


def has_undecided_part(expression: Expression) -> bool:
    if isinstance(expression, UNDECIDED):
        return True
    parts = getattr(expression, "parts", None) or [getattr(expression, "part", None)]
    return any(part is not None and has_undecided_part(part) for part in parts)


@pytest.mark.slow
@given(EXPRESSIONS)
def test_some_text_is_found_by_the_parts_or_not_known(expression: Expression) -> None:
    found = has_text_by_structure(expression)
    assert found in {None, not kernel.is_empty(expression)}
    assert found is not None or has_undecided_part(expression)


def test_parts_that_are_shared_are_asked_once() -> None:
    shared: Expression = Literal(b"a")
    for _ in range(60):
        shared = Alternation((Concatenation((shared, shared)), Concatenation((shared, Literal(b"b")))))
    assert not nullable(shared)
    assert has_text_by_structure(shared)
