"""Terminals for null, booleans, numbers and strings."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from constrain.errors import UnsupportedSchemaError
from constrain.json_schema.numbers.canonical import number_steps
from constrain.json_schema.numbers.shape import (
    ANY_INTEGER,
    ANY_NUMBER,
    INT64,
    NumberShape,
)
from constrain.json_schema.shapes.data import ANY_SHAPES, FALSE, NULL, TRUE, Shapes
from constrain.json_schema.shapes.keys import JSON_STRING, quoted
from constrain.json_schema.shapes.strings import ANY_STRING, StringShape, content
from constrain.json_schema.spelling.canonical import spell_string
from constrain.language.grammar import Kind, Terminal
from constrain.language.tree import NOTHING, Expression, Literal, LiteralSet
from constrain.tables.numbers import NumberTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.numbers.spellings import NumberPolicy


NULL_VALUE = Terminal("null", Literal(b"null"))
BOOLEAN_VALUE = Terminal("boolean", LiteralSet((b"true", b"false")))
SIMPLE_VALUE = Terminal("constant", LiteralSet((b"true", b"false", b"null")))
STRING = Terminal("string", JSON_STRING, kind=Kind.TEXT)
_SIMPLE = {NULL: b"null", FALSE: b"false", TRUE: b"true"}
_SIMPLE_TERMINALS = {NULL: NULL_VALUE, FALSE | TRUE: BOOLEAN_VALUE}


BYTES_PER_STEP = 100
"""Bytes of literal text per compilation step."""


def scalar_steps(shapes: Shapes, numbers: str, precision: str) -> int:
    """Returns the compilation steps for the terminals of these scalars, estimated from their size."""
    steps = sum(number_steps(number, numbers, precision) for number in shapes.numbers)
    for string in shapes.strings:
        for value in string.values or ():
            steps += 1 + len(value) // BYTES_PER_STEP
    return steps


def scalar_terminals(shapes: Shapes, location: Location | None, policy: NumberPolicy) -> list[Terminal]:
    """Returns terminals that together read the scalar values of ``shapes``; frequent shapes share constants."""
    if shapes is ANY_SHAPES:
        return [STRING, _unbounded(policy, ANY_NUMBER), SIMPLE_VALUE]
    terminals: list[Terminal] = []
    literals: list[bytes] = []
    if shapes.simple:
        shared = _SIMPLE_TERMINALS.get(shapes.simple)
        if shared is not None and not (shapes.numbers and shapes.numbers[0].values):
            terminals.append(shared)
        else:
            literals += (text for bit, text in _SIMPLE.items() if shapes.simple & bit)
    for number in shapes.numbers:
        if policy.canonical and (number is ANY_NUMBER or number is ANY_INTEGER or number is INT64):
            terminals.append(_unbounded(policy, number))
        elif isinstance(number.values, NumberTable):
            terminals.append(Terminal("constant", number.values.expression, _pointer(location), kind=Kind.NUMBER))
        elif policy.canonical and number.values is not None and number.integer:
            literals += (str(int(value)).encode() for value in number.values)
        else:
            _add_numbers(policy.spellings(number), number, location, terminals)
    if shapes.numbers and not terminals and not literals:
        raise UnsupportedSchemaError(
            "the numbers allowed here are all larger than a float can hold", pointer=_pointer(location)
        )
    for string in shapes.strings:
        if string is ANY_STRING:
            terminals.append(STRING)
        else:
            _add_string(string, location, terminals, literals)
    if literals:
        expression = Literal(literals[0]) if len(literals) == 1 else LiteralSet(tuple(literals))
        terminals.append(Terminal("constant", expression, _pointer(location)))
    return terminals


def _add_numbers(
    expression: Expression, shape: NumberShape, location: Location | None, terminals: list[Terminal]
) -> None:
    if expression == NOTHING:
        return
    name = "constant" if shape.values is not None else "integer" if shape.integer else "number"
    terminals.append(Terminal(name, expression, _pointer(location), kind=Kind.NUMBER))


@lru_cache(maxsize=32)
def _unbounded(policy: NumberPolicy, shape: NumberShape) -> Terminal:
    return Terminal("integer" if shape.integer else "number", policy.spellings(shape), kind=Kind.NUMBER)


def _add_string(
    shape: StringShape, location: Location | None, terminals: list[Terminal], literals: list[bytes]
) -> None:
    if shape.values is None:
        terminals.append(Terminal("string", quoted(content(shape)), _pointer(location), kind=string_kind((shape,))))
    else:
        literals += map(spell_string, shape.values)


def string_kind(shapes: Iterable[StringShape], *, raw: bool = False) -> Kind:
    """Returns the kind of a terminal that reads the strings of some shapes; ``raw``: without quotes."""
    plain = all(not shape.parts and shape.values is None and not (raw and shape.minimum) for shape in shapes)
    return Kind.TEXT if plain else Kind.STRING


def _pointer(location: Location | None) -> str:
    return "" if location is None else location.pointer()
