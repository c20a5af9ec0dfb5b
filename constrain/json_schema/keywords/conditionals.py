"""Keywords for schemas that apply under a condition: ``if``, ``dependentSchemas`` and ``dependentRequired``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError
from constrain.json_schema.documents.dialects import DRAFT_7, DRAFT_2019, escape
from constrain.json_schema.documents.keyword import KEYWORDS, Keyword
from constrain.json_schema.formulas.complements import complement, conditional, has_keys, objects_where
from constrain.json_schema.keywords.asserted import asserted_shapes
from constrain.json_schema.keywords.assertions import Assertions
from constrain.json_schema.keywords.unevaluated import NOTHING_EVALUATED, Variants, both, merged, variants_inside
from constrain.json_schema.shapes.combined import object_formula
from constrain.json_schema.shapes.data import ANY_SHAPES, And, Formula, Not, ObjectShape, Or, Shapes
from constrain.json_schema.shapes.shapes import union

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.shapes.goals import Goals


def _if_variants(goals: Goals, at: Location, keyword: str, value: object) -> Variants:
    """Returns the variants of ``if``, which evaluates members even without ``then`` and ``else``."""
    schema = at.schema
    assert isinstance(schema, dict)
    holds = variants_inside(goals, at, f"/{keyword}", value)
    fails = {NOTHING_EVALUATED: complement(goals, union(holds.values()))}
    if "then" in schema:
        holds = both(goals, holds, variants_inside(goals, at, "/then", schema["then"]))
    if "else" in schema:
        fails = both(goals, fails, variants_inside(goals, at, "/else", schema["else"]))
    return merged((*holds.items(), *fails.items()))


@Keyword("if", "any", hint=None, merge=None, holds="schema", in_place=_if_variants, since=DRAFT_7)
def if_(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``if``: valid values satisfy ``then``, all others ``else``; without these two, it only declares keys."""
    schema = at.schema
    assert isinstance(schema, dict)
    if "then" not in schema and "else" not in schema and not goals.policies.close_objects:
        return
    then, otherwise = (
        goals.in_place(at, "/" + keyword, schema[keyword]) if keyword in schema else ANY_SHAPES
        for keyword in ("then", "else")
    )
    found.parts.append(conditional(goals, goals.in_place(at, "/if", value), then, otherwise))


for _name, _says in (("then", "the schema if ``if`` holds"), ("else", "the schema if ``if`` does not hold")):
    KEYWORDS.add(
        Keyword(
            _name, "any", hint=None, merge=None, holds="schema", in_place=None, read_by="if", since=DRAFT_7, says=_says
        )
    )


@Keyword("dependentRequired", "object", hint=None, merge=None, since=DRAFT_2019)
def dependent_required(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``dependentRequired``: keys that must be present if another key is."""
    _dependencies(goals, at, "dependentRequired", value, found, lists=True, schemas=False)


def _dependent_variants(goals: Goals, at: Location, keyword: str, value: object) -> Variants:
    if not isinstance(value, dict):
        raise SchemaError(f"{keyword} must be a JSON object, not {value!r:.80}", pointer=at.pointer(keyword))
    result: Variants = {NOTHING_EVALUATED: ANY_SHAPES}
    schemas = value
    if keyword == "dependencies":  # a list of required keys evaluates no member
        found = Assertions()
        dependencies(goals, at, {key: keys for key, keys in value.items() if isinstance(keys, (str, list))}, found)
        result = {NOTHING_EVALUATED: asserted_shapes(found, goals)}
        schemas = {key: schema for key, schema in value.items() if not isinstance(schema, (str, list))}
    for key, schema in schemas.items():
        absent = objects_where(goals, [Not(has_keys(key))])
        present = {NOTHING_EVALUATED: Shapes(objects=(ObjectShape({}, (key,)),))}
        holds = both(goals, present, variants_inside(goals, at, f"/{keyword}{escape(key)}", schema))
        result = both(goals, result, merged(((NOTHING_EVALUATED, absent), *holds.items())))
    return result


@Keyword(
    "dependentSchemas", "object", hint=None, merge=None, holds="map", in_place=_dependent_variants, since=DRAFT_2019
)
def dependent_schemas(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``dependentSchemas``: schemas for the whole object that apply if a key is present."""
    _dependencies(goals, at, "dependentSchemas", value, found, lists=False, schemas=True)


@Keyword("dependencies", "object", "core", hint=None, merge=None, holds="map", in_place=_dependent_variants)
def dependencies(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``dependencies``: required keys or a schema, if a key is present."""
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
