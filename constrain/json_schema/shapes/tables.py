"""The values of a column of a table (``x-one-of``) as shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError, UnsatisfiableSchemaError
from constrain.json_schema.numbers.shape import NumberShape
from constrain.json_schema.shapes.data import FALSE, NULL, TRUE, Shapes
from constrain.json_schema.shapes.strings import StringShape
from constrain.tables.keyword import ONE_OF, column_of, read_keyword

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.shapes.goals import Goals
    from constrain.tables.columns import Column
    from constrain.tables.keyword import OneOfKeyword


def column_at(goals: Goals, at: Location, value: object) -> tuple[OneOfKeyword, Column]:
    """Returns the keyword and its column. Raises SchemaError, with the place."""
    try:
        keyword = read_keyword(value)
        return keyword, column_of(keyword, goals.references.root.schema)
    except TypeError as error:
        raise SchemaError(str(error), pointer=at.pointer(ONE_OF)) from error
    except SchemaError as error:
        raise SchemaError(error.message, pointer=at.pointer(ONE_OF)) from error


def table_shapes(goals: Goals, at: Location, value: object) -> Shapes:
    """Returns the shapes of the values of a column, and of null where ``type`` names it. Raises SchemaError.

    Texts of CSV count as numbers or booleans where ``type`` names these.
    """
    keyword, column = column_at(goals, at, value)
    if not len(column):
        raise UnsatisfiableSchemaError(f"{keyword} has no values", pointer=at.pointer(ONE_OF))
    schema = at.schema
    assert isinstance(schema, dict)
    named = schema.get("type", ())
    types = {*named} if isinstance(named, list) else {named}
    plain = not column.is_text
    numbers = column.numbers if plain or types & {"integer", "number"} else None
    truths = column.booleans if plain or "boolean" in types else ()
    simple = (TRUE if True in truths else 0) | (FALSE if False in truths else 0) | (NULL if "null" in types else 0)
    return Shapes(
        simple,
        (NumberShape(values=numbers),) if numbers else (),
        (StringShape((column.strings,)),) if column.strings else (),
    )
