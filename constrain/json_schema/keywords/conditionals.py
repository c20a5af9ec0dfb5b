"""Keywords for schemas that apply under a condition: ``if``, ``dependentSchemas`` and ``dependentRequired``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError
from constrain.json_schema.documents.dialects import escape
from constrain.json_schema.formulas.complements import conditional, has_keys, objects_where
from constrain.json_schema.shapes.combined import object_formula
from constrain.json_schema.shapes.data import ANY_SHAPES, And, Formula, Not, Or

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


def if_(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``if``: valid values satisfy ``then``, all others ``else``; without these two, ``if`` only declares keys."""
    schema = at.schema
    assert isinstance(schema, dict)
    if "then" not in schema and "else" not in schema and not goals.policies.close_objects:
        return
    then, otherwise = (
        goals.in_place(at, "/" + keyword, schema[keyword]) if keyword in schema else ANY_SHAPES
        for keyword in ("then", "else")
    )
    found.parts.append(conditional(goals, goals.in_place(at, "/if", value), then, otherwise))


def dependent_required(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``dependentRequired``: keys that must be present if another key is."""
    _dependencies(goals, at, "dependentRequired", value, found, lists=True, schemas=False)


def dependent_schemas(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``dependentSchemas``: schemas for the whole object that apply if a key is present."""
    _dependencies(goals, at, "dependentSchemas", value, found, lists=False, schemas=True)


def dependencies(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``dependencies``, up to draft 7: required keys or a schema, if a key is present."""
    _dependencies(goals, at, "dependencies", value, found, lists=True, schemas=True)


def _dependencies(
    goals: Goals, at: Location, keyword: str, value: object, found: Assertions, *, lists: bool, schemas: bool
) -> None:
    if not isinstance(value, dict):
        raise SchemaError(f"{keyword} must be a JSON object, not {value!r:.80}", pointer=at.pointer(keyword))
    formulas: list[Formula] = []
    for key, written in value.items():
        # a single string: the form of draft 3, and of many schemas
        dependency = [written] if lists and isinstance(written, str) else written
        if lists and isinstance(dependency, list):
            if not all(isinstance(name, str) for name in dependency):
                raise SchemaError(
                    f"each entry of {keyword} must be a list of keys, not {dependency!r:.80}",
                    pointer=at.pointer(keyword, key),
                )
            needed = tuple(name for name in dict.fromkeys(dependency) if name != key)
            if needed:
                formulas.append(Or((Not(has_keys(key)), has_keys(*needed))))
        elif schemas:
            shapes = goals.in_place(at, f"/{keyword}{escape(key)}", dependency)
            if shapes is not ANY_SHAPES:
                there = has_keys(key)
                formulas.append(Or((Not(there), And((there, object_formula(shapes))))))
        else:
            raise SchemaError(
                f"each entry of {keyword} must be a list of keys, not {dependency!r:.80}",
                pointer=at.pointer(keyword, key),
            )
    if formulas:
        found.parts.append(objects_where(goals, formulas))
