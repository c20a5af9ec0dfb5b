"""What the keywords of one schema object assert, collected keyword by keyword and then turned into shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.json_schema.formulas.disjoint import exclusive_union
from constrain.json_schema.shapes.arrays import array_shape
from constrain.json_schema.shapes.goal import ANY, Goal
from constrain.json_schema.shapes.numeric import ANY_INTEGER, ANY_NUMBER, NumberShape, intersect_numbers
from constrain.json_schema.shapes.objects import KeyPattern, object_shape
from constrain.json_schema.shapes.shapes import ANY_SHAPES, BOOLEAN, NULL, Shapes, intersect_all
from constrain.json_schema.shapes.strings import ANY_STRING, StringShape, intersect_strings

if TYPE_CHECKING:
    from constrain.json_schema.shapes.goals import Goals

TYPE_NULL, TYPE_BOOLEAN, TYPE_INTEGER, TYPE_NUMBER, TYPE_STRING, TYPE_ARRAY, TYPE_OBJECT = (1 << n for n in range(7))
ALL_TYPES = 127


class Assertions:
    """Mutable while the keywords of one schema object are read; every field begins as "nothing said"."""

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

    unevaluated: bool = False  # unevaluatedItems or unevaluatedProperties has to be seen to
    exclusive: list[Shapes] | None = None  # a oneOf and its branches, which overlap by themselves

    def __init__(self) -> None:
        self.key_patterns: list[KeyPattern] = []
        self.parts_before_properties = 0  # keys come in the order in which the schema names them
        self.parts: list[Shapes] = []

    def restrict_numbers(self, shape: NumberShape) -> None:
        """Asserts that a number has this shape."""
        if self.numbers is not None:
            self.numbers = intersect_numbers(self.numbers, shape)

    def restrict_strings(self, shape: StringShape) -> None:
        """Asserts that a string has this shape."""
        if self.strings is not None:
            self.strings = intersect_strings(self.strings, shape)

    def shapes(self, goals: Goals) -> Shapes:
        """The values that satisfy all that was asserted."""
        shapes = self.own_shapes(goals)
        if self.parts:
            self.parts.insert(self.parts_before_properties, shapes)
            shapes = intersect_all(goals, self.parts)
        if self.exclusive is not None:
            shapes = exclusive_union(goals, self.exclusive, shapes)
        return shapes

    def own_shapes(self, goals: Goals) -> Shapes:
        """The same without what other schemas say that apply to the same value."""
        types = self.types
        numbers = self.numbers
        if numbers is not None and not types & TYPE_NUMBER:
            numbers = intersect_numbers(numbers, ANY_INTEGER) if types & TYPE_INTEGER else None
        strings = self.strings if types & TYPE_STRING else None
        array = array_shape(self) if types & TYPE_ARRAY else None
        object_ = object_shape(goals, self) if types & TYPE_OBJECT else None
        if (
            types == ALL_TYPES
            and numbers is ANY_NUMBER
            and strings is ANY_STRING
            and not self.arrays_restricted
            and not self.objects_restricted
        ):
            return ANY_SHAPES
        return Shapes(
            (NULL if types & TYPE_NULL else 0) | (BOOLEAN if types & TYPE_BOOLEAN else 0),
            () if numbers is None else (numbers,),
            () if strings is None else (strings,),
            () if array is None else (array,),
            () if object_ is None else (object_,),
        )
