"""Terminals for null, booleans, numbers and strings."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from constrain._errors import UnsupportedSchemaError
from constrain.grammar import Terminal
from constrain.json_schema.keys import JSON_STRING, quoted
from constrain.json_schema.numbers import number_expression, number_literal_expression
from constrain.json_schema.numeric import ANY_INTEGER, ANY_NUMBER, Number, NumberShape
from constrain.json_schema.shapes import ANY_SHAPES, FALSE, NULL, TRUE, Shapes
from constrain.json_schema.spelling import spell_string
from constrain.json_schema.strings import ANY_STRING, StringShape, content
from constrain.regex.tree import NOTHING, Alternation, Expression, Literal, LiteralSet

if TYPE_CHECKING:
    from fractions import Fraction

if TYPE_CHECKING:
    from constrain.json_schema.references import Location

NULL_VALUE = Terminal("null", Literal(b"null"))
BOOLEAN_VALUE = Terminal("boolean", LiteralSet((b"true", b"false")))
INTEGER = Terminal("integer", number_expression(integer=True))
NUMBER = Terminal("number", number_expression(integer=False))
STRING = Terminal("string", JSON_STRING)
ANY_SCALAR = Terminal(
    "scalar",
    Alternation((JSON_STRING, NUMBER.expression, LiteralSet((b"true", b"false", b"null")))),
)
_SIMPLE = {NULL: b"null", FALSE: b"false", TRUE: b"true"}
_SIMPLE_TERMINALS = {NULL: NULL_VALUE, FALSE | TRUE: BOOLEAN_VALUE}


def scalar_terminals(shapes: Shapes, location: Location | None) -> list[Terminal]:
    """Terminals that together read the scalar values of ``shapes``; those of frequent shapes are shared constants."""
    if shapes is ANY_SHAPES:
        return [ANY_SCALAR]
    terminals: list[Terminal] = []
    literals: list[bytes] = []
    if shapes.simple:
        shared = _SIMPLE_TERMINALS.get(shapes.simple)
        if shared is not None and not (shapes.numbers and shapes.numbers[0].values):
            terminals.append(shared)
        else:
            literals += (text for bit, text in _SIMPLE.items() if shapes.simple & bit)
    for number in shapes.numbers:
        if number is ANY_NUMBER:
            terminals.append(NUMBER)
        elif number is ANY_INTEGER:
            terminals.append(INTEGER)
        else:
            _add_number(number, location, terminals, literals)
    for string in shapes.strings:
        if string is ANY_STRING:
            terminals.append(STRING)
        else:
            _add_string(string, location, terminals, literals)
    if literals:
        expression = Literal(literals[0]) if len(literals) == 1 else LiteralSet(tuple(literals))
        terminals.append(Terminal("constant", expression, _pointer(location)))
    return terminals


def _add_number(
    shape: NumberShape, location: Location | None, terminals: list[Terminal], literals: list[bytes]
) -> None:
    if shape.values is None:
        bounds: dict[str, Number | None] = {
            "exclusive_minimum" if shape.exclusive_minimum else "minimum": shape.minimum,
            "exclusive_maximum" if shape.exclusive_maximum else "maximum": shape.maximum,
        }
        multiple = None if shape.multiple is None else to_decimal(shape.multiple)
        expression = number_expression(**bounds, integer=shape.integer, multiple_of=multiple)
        if expression == NOTHING:
            raise UnsupportedSchemaError(
                "the numbers allowed here are all larger than a float can hold", pointer=_pointer(location)
            )
        terminals.append(Terminal("integer" if shape.integer else "number", expression, _pointer(location)))
        return
    spellings: list[Expression] = []
    for value in shape.values:
        spelling = number_literal_expression(value, integer=shape.integer)
        if isinstance(spelling, Literal):
            literals.append(spelling.text)
        else:
            spellings.append(spelling)
    if spellings:
        terminals.append(Terminal("constant", Alternation(tuple(spellings)), _pointer(location)))


def _add_string(
    shape: StringShape, location: Location | None, terminals: list[Terminal], literals: list[bytes]
) -> None:
    if shape.values is None:
        terminals.append(Terminal("string", quoted(content(shape)), _pointer(location)))
    else:
        literals += map(spell_string, shape.values)


def _pointer(location: Location | None) -> str:
    return "" if location is None else location.pointer()


def to_decimal(fraction: Fraction) -> Number:
    """A fraction that has a finite decimal expansion, exactly."""
    if fraction.denominator == 1:
        return fraction.numerator
    scale = 0
    while 10**scale % fraction.denominator:
        scale += 1
    digits = fraction.numerator * (10**scale // fraction.denominator)
    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))
