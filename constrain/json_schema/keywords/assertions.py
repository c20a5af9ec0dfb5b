"""The assertions of one schema object, collected keyword by keyword."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.json_schema.numbers.shape import ANY_NUMBER, NumberShape, intersect_numbers
from constrain.json_schema.shapes.data import ANY, Goal
from constrain.json_schema.shapes.strings import ANY_STRING, StringShape, intersect_strings

if TYPE_CHECKING:
    from constrain.json_schema.shapes.data import KeyPattern, Shapes

TYPE_NULL, TYPE_BOOLEAN, TYPE_INTEGER, TYPE_NUMBER, TYPE_STRING, TYPE_ARRAY, TYPE_OBJECT = (1 << n for n in range(7))
ALL_TYPES = 127

TYPE_BITS = {
    "null": TYPE_NULL,
    "boolean": TYPE_BOOLEAN,
    "integer": TYPE_INTEGER,
    "number": TYPE_NUMBER | TYPE_INTEGER,
    "string": TYPE_STRING,
    "array": TYPE_ARRAY,
    "object": TYPE_OBJECT,
}


class Assertions:
    """The assertions collected so far; mutable, and every field starts without a restriction."""

    types: int = ALL_TYPES
    numbers: NumberShape | None = ANY_NUMBER
    strings: StringShape | None = ANY_STRING

    arrays_restricted: bool = False
    prefix: tuple[Goal, ...] = ()
    items: Goal = ANY
    min_items: int = 0
    max_items: int | None = None
    unique_items: bool = False

    objects_restricted: bool = False
    properties: dict[str, Goal] = {}  # noqa: RUF012  never changed, only replaced
    required: tuple[str, ...] = ()
    additional: Goal = ANY
    min_properties: int = 0
    max_properties: int | None = None
    open: bool = True

    unevaluated: bool = False  # unevaluatedItems or unevaluatedProperties is there
    exclusive: list[Shapes] | None = None  # a oneOf and its branches, which overlap without the other keywords

    def __init__(self) -> None:
        self.key_patterns: list[KeyPattern] = []
        self.parts_before_properties = 0  # keys in the order of the schema
        self.parts: list[Shapes] = []

    def restrict_numbers(self, shape: NumberShape) -> None:
        """Asserts that a number has this shape."""
        if self.numbers is not None:
            self.numbers = intersect_numbers(self.numbers, shape)

    def restrict_strings(self, shape: StringShape) -> None:
        """Asserts that a string has this shape."""
        if self.strings is not None:
            self.strings = intersect_strings(self.strings, shape)
