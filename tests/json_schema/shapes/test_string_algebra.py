"""String shapes as sets: complement and intersection against all short strings, and expressions that share a lot."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest

from constrain import kernel
from constrain.errors import UnsupportedSchemaError
from constrain.json_schema.shapes.strings import (
    ANY_STRING,
    StringShape,
    complement_strings,
    content,
    intersect_strings,
    list_strings,
)
from constrain.json_schema.spelling.canonical import spell_content
from constrain.json_schema.spelling.languages import begin_compilation
from constrain.language.tree import Alternation, Complement, Expression, Intersection
from constrain.regex.parsing.parser import parse_pattern
from tests.support import LONG
from tests.support.processor_time import finishes_within

ALPHABET = 'a"\né'
STRINGS = ["".join(text) for length in range(5) for text in product(ALPHABET, repeat=length)]
PATTERNS = ("a", "^a", '"$', "^a*$", "[^a]", "é.*a", "^(?:..)*$", "\n|é{2}", "^$", "aa?é", "^.{3}$")


def has(shapes: tuple[StringShape, ...], text: str) -> bool:
    return any(
        text in shape.values if shape.values is not None else kernel.matches(content(shape), spell_content(text) or b"")
        for shape in shapes
    )


def pattern(text: str) -> Expression:
    return parse_pattern(text, "ecma", json=True, anchored=False)


def random_shape(rng: random.Random) -> tuple[StringShape | None, set[str]]:
    """A shape, and the short strings that have it."""
    if rng.random() < 0.25:
        values = tuple(rng.sample(STRINGS, rng.randrange(1, 5)))
        return StringShape(values=values), set(values)
    texts = rng.sample(PATTERNS, rng.choice((0, 1, 1, 2)))
    low = rng.choice((0, 0, 1, 2, 3))
    high = rng.choice((None, None, low, low + 1))
    shape: StringShape | None = StringShape((), low, high)
    for text in texts:
        shape = None if shape is None else intersect_strings(shape, StringShape((pattern(text),)))
    members = {
        string
        for string in STRINGS
        if low <= len(string) <= (99 if high is None else high)
        and all(re.search(text.replace("$", r"\Z"), string) for text in texts)
    }
    return shape, members


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60 if LONG else 12))
def test_complements_and_intersections_are_exact(seed: int) -> None:
    rng = random.Random(seed)
    begin_compilation()
    shapes: list[StringShape] = []
    members: set[str] = set()
    for _ in range(rng.randrange(4)):
        shape, strings = random_shape(rng)
        if shape is not None:
            shapes.append(shape)
        members |= strings
    complement = complement_strings(tuple(shapes))
    assert {text for text in STRINGS if has(complement, text)} == set(STRINGS) - members
    twice = complement_strings(complement)
    assert {text for text in STRINGS if has(twice, text)} == members
    other, strings = random_shape(rng)
    if other is not None:
        both = tuple(s for shape in complement if (s := intersect_strings(shape, other)) is not None)
        assert {text for text in STRINGS if has(both, text)} == strings - members


def test_nothing_excluded_leaves_any_string() -> None:
    assert complement_strings(()) == (ANY_STRING,)
    assert complement_strings((ANY_STRING,)) == ()
    assert complement_strings((StringShape(minimum=1), StringShape(maximum=1))) == ()


def test_lengths_become_lengths() -> None:
    shapes = (StringShape(minimum=3, maximum=4), StringShape(minimum=10**9))
    assert complement_strings(shapes) == (StringShape(maximum=2), StringShape(minimum=5, maximum=10**9 - 1))


def test_the_complement_of_a_complement_lists_values_again() -> None:
    once = complement_strings((StringShape(values=("b", 'a"\n')),))
    assert complement_strings(once) == (StringShape(values=("b", 'a"\n')),)


def test_a_complement_is_one_shape_however_many_shapes_are_left_out() -> None:
    shapes = tuple(StringShape((pattern(f"^{letter}b"),), 2, 500) for letter in "acdefghijklmnop")
    (shape,) = complement_strings(shapes)
    assert has((shape,), "zb")
    assert has((shape,), "a")
    assert not has((shape,), "ab")
    assert has((shape,), "ab" + "x" * 499)


def test_strings_are_listed_up_to_a_limit() -> None:
    shape = StringShape((pattern('^[ab"]*$'),), maximum=1)
    assert sorted(list_strings(shape, 4) or ()) == ["", '"', "a", "b"]
    assert list_strings(shape, 3) is None
    assert list_strings(StringShape(maximum=0), 1) == ("",)
    assert list_strings(StringShape(minimum=1), 1000) is None
    assert list_strings(StringShape(maximum=1), 1000) is None
    assert list_strings(StringShape(values=("x", "y")), 2) == ("x", "y")
    assert list_strings(StringShape(values=("x", "y")), 1) is None


WIDER = StringShape((pattern("^a$"),), wider=(pattern("^[ab]$"),))
"""Surely "a"; whether "b" is a string of this shape is left open."""


def test_what_is_uncertain_is_in_neither_a_shape_nor_its_complement() -> None:
    complement = complement_strings((WIDER,))
    assert [text for text in ("a", "b", "c") if has((WIDER,), text)] == ["a"]
    assert [text for text in ("a", "b", "c") if has(complement, text)] == ["c"]
    assert [text for text in ("a", "b", "c") if has(complement_strings(complement), text)] == ["a"]


def test_where_nothing_but_uncertain_strings_is_left_the_schema_is_refused() -> None:
    with pytest.raises(UnsupportedSchemaError, match="never written"):
        intersect_strings(WIDER, StringShape((pattern("b"),)))
    with pytest.raises(UnsupportedSchemaError, match="'b' is listed"):
        intersect_strings(WIDER, StringShape(values=("b", "a")))
    assert intersect_strings(WIDER, StringShape(values=("c", "a"))) == StringShape(values=("a",))
    assert intersect_strings(WIDER, StringShape((pattern("c"),))) is None


def test_a_shape_and_its_complement_have_no_string_in_common() -> None:
    (complement,) = complement_strings((WIDER,))
    assert intersect_strings(WIDER, complement) is None
    assert complement_strings((WIDER, complement)) == ()


def test_expressions_that_share_much_are_hashed_compared_printed_and_translated_at_once() -> None:
    with finishes_within(1):
        chains = []
        for _ in range(2):
            chain = pattern("^a")
            for letter in "bcdefghijklmnopq":
                other = pattern(f"^{letter}")
                chain = Alternation(
                    (Intersection((chain, Complement(other))), Intersection((Complement(chain), other)))
                )
            chains.append(chain)
        assert hash(chains[0]) == hash(chains[0])
        assert chains[0] != chains[1]
        assert StringShape((chains[0],)) != StringShape((chains[1],))
        assert len(repr(chains[0])) < 100_000
        assert kernel.matches(chains[0], b"b")
        assert not kernel.matches(chains[0], b"z")


@pytest.mark.slow
def test_one_of_many_patterns_by_complement_and_intersection_takes_little_time() -> None:
    begin_compilation()
    patterns = [f"^.{{{index % 3}}}{letter}" for index, letter in enumerate("abcdefghijk")]
    with finishes_within(5):
        odd: tuple[StringShape, ...] = ()
        for text in patterns:
            one = (StringShape((pattern(text),)),)
            odd = tuple(
                shape
                for left, right in ((odd, complement_strings(one)), (complement_strings(odd), one))
                for a in left
                for b in right
                if (shape := intersect_strings(a, b)) is not None
            )
        rng = random.Random(0)
        for _ in range(25):
            text = "".join(rng.choices("abcdefxyz", k=rng.randrange(6)))
            assert has(odd, text) == (sum(re.search(each, text) is not None for each in patterns) % 2 == 1), text
