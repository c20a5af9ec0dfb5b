"""Conversion of the assertions of one schema object to shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.json_schema.formulas.disjoint import exclusive_union
from constrain.json_schema.keywords.arrays import array_shape
from constrain.json_schema.keywords.assertions import (
    ALL_TYPES,
    TYPE_ARRAY,
    TYPE_BOOLEAN,
    TYPE_INTEGER,
    TYPE_NULL,
    TYPE_NUMBER,
    TYPE_OBJECT,
    TYPE_STRING,
    Assertions,
)
from constrain.json_schema.keywords.objects import object_shape
from constrain.json_schema.numbers.shape import ANY_INTEGER, ANY_NUMBER, intersect_numbers
from constrain.json_schema.shapes.data import ANY_SHAPES, BOOLEAN, NULL, Shapes
from constrain.json_schema.shapes.shapes import intersect_all
from constrain.json_schema.shapes.strings import ANY_STRING

if TYPE_CHECKING:
    from constrain.json_schema.shapes.goals import Goals


def asserted_shapes(found: Assertions, goals: Goals) -> Shapes:
    """Returns the values that satisfy all assertions."""
    shapes = own_shapes(found, goals)
    if found.parts:
        found.parts.insert(found.parts_before_properties, shapes)
        shapes = intersect_all(goals, found.parts)
    if found.exclusive is not None:
        shapes = exclusive_union(goals, found.exclusive, shapes)
    return shapes


def own_shapes(found: Assertions, goals: Goals) -> Shapes:
    """Returns the values that satisfy the object's own assertions, without schemas that apply in place."""
    types = found.types
    numbers = found.numbers
    if numbers is not None and not types & TYPE_NUMBER:
        numbers = intersect_numbers(numbers, ANY_INTEGER) if types & TYPE_INTEGER else None
    strings = found.strings if types & TYPE_STRING else None
    array = array_shape(found) if types & TYPE_ARRAY else None
    object_ = object_shape(goals, found) if types & TYPE_OBJECT else None
    if (
        types == ALL_TYPES
        and numbers is ANY_NUMBER
        and strings is ANY_STRING
        and not found.arrays_restricted
        and not found.objects_restricted
    ):
        return ANY_SHAPES
    return Shapes(
        (NULL if types & TYPE_NULL else 0) | (BOOLEAN if types & TYPE_BOOLEAN else 0),
        () if numbers is None else (numbers,),
        () if strings is None else (strings,),
        () if array is None else (array,),
        () if object_ is None else (object_,),
    )
