"""A limit names its place: that of the terminal which takes so much, or the schema where it is no single one."""

from __future__ import annotations

from typing import Any

import pytest

import constrain
from constrain.lark.lexing.gaps import MAX_IGNORED_PARTS
from tests.support import byte_vocabulary

VOCABULARY = byte_vocabulary()
LONG = {"type": "string", "pattern": "^a{1000000000}$"}


def refused(schema: Any) -> constrain.LimitError:
    with pytest.raises(constrain.LimitError) as caught:
        constrain.compile(schema, VOCABULARY, cache=False)
    return caught.value


@pytest.mark.parametrize(
    ("schema", "pointer", "limit"),
    [
        (LONG, "", "MAX_SHORTEST_MATCH"),
        ({"properties": {"a": {}, "b": LONG}, "required": ["b"]}, "/properties/b", "MAX_SHORTEST_MATCH"),
        ({"items": {"$ref": "#/$defs/d"}, "$defs": {"d": LONG}, "minItems": 1}, "/$defs/d", "MAX_SHORTEST_MATCH"),
    ],
)
def test_a_limit_of_a_terminal_names_its_schema(schema: Any, pointer: str, limit: str) -> None:
    error = refused(schema)
    assert error.pointer == pointer
    assert limit in error.message
    assert str(error).startswith(f"at {pointer or 'the root of the schema'}: terminal ")


def test_a_limit_in_a_composition_names_the_part_and_its_schema() -> None:
    error = refused(constrain.parts.sequence("x", constrain.parts.choice({"properties": {"a": LONG}}, "y")))
    assert error.pointer == "/1/0/properties/a"


def test_a_limit_of_a_terminal_without_a_schema_names_the_terminal() -> None:
    error = refused(constrain.Lark('start: "a" LONG\nLONG: /b{1000000000}/'))
    assert error.pointer is None
    assert error.message.startswith("terminal LONG (line 2, column 1): ")
    assert refused(constrain.Regex("a{1000000000}")).message.startswith("terminal pattern: ")


def test_a_limit_of_ignored_text_names_the_line() -> None:
    error = refused(constrain.Lark(f'start: "a"\n%ignore "{"b" * (10 * MAX_IGNORED_PARTS + 1)}"'))
    assert (error.line, error.pointer) == (2, None)
    assert "MAX_IGNORED_PARTS" in error.message
    error = refused(constrain.Lark(f'start: "a"\n%ignore /{"(b|[cd]+)" * MAX_IGNORED_PARTS}/'))
    assert error.line == 2
    assert "MAX_IGNORED_PARTS" in error.message
    kinds = "\n".join(f"%ignore /{chr(98 + n)}+/" for n in range(11))
    error = refused(constrain.Lark(f'start: "a"\n{kinds}'))
    assert error.line == 12
    assert "MAX_IGNORED_PARTS" in error.message
