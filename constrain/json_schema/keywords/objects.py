"""Keywords for objects: ``properties``, ``required``, ``additionalProperties`` and their like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError
from constrain.json_schema.documents.dialects import DRAFT_6, DRAFT_2019, escape
from constrain.json_schema.documents.keyword import KEYWORDS, Keyword
from constrain.json_schema.documents.required_keys import misspelt_keys
from constrain.json_schema.keywords.joining import both_lists, both_properties, greater, lesser
from constrain.json_schema.shapes.data import ANY, ANY_OBJECT, NOTHING, KeyPattern, ObjectShape
from constrain.json_schema.shapes.objects import divide_keys
from constrain.json_schema.shapes.strings import ANY_CONTENT, ANY_STRING, StringShape, content, pattern_expression
from constrain.json_schema.spelling.canonical import spell_content
from constrain.json_schema.spelling.languages import matching
from constrain.language.tree import Alternation, Complement, Expression, Intersection, LiteralSet

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


@Keyword("properties", "object", hint=None, merge=both_properties, holds="map", in_place=None)
def properties(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``properties``: schemas for the values of keys."""
    if not isinstance(value, dict) or not all(key.__class__ is str for key in value):
        raise SchemaError(f"properties must be a JSON object, not {value!r:.80}", pointer=at.pointer("properties"))
    child = goals.child
    found.parts_before_properties = len(found.parts)
    found.properties = {key: child(at, "/properties" + escape(key), schema) for key, schema in value.items()}
    found.objects_restricted = True


@Keyword("patternProperties", "object", hint=None, merge=None, holds="map", in_place=None)
def pattern_properties(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``patternProperties``: schemas for the values of all keys that a pattern matches."""
    if not isinstance(value, dict):
        raise SchemaError(
            f"patternProperties must be an object, not {value!r:.80}", pointer=at.pointer("patternProperties")
        )
    for text, schema in value.items():
        expression = pattern_expression(at, text, "patternProperties", text)
        goals.pattern_pointers.setdefault(text, at.pointer("patternProperties", text))
        goal = goals.child(at, "/patternProperties" + escape(text), schema)
        found.key_patterns.append(KeyPattern(text, expression, goal))
        found.objects_restricted = True


@Keyword("propertyNames", "object", hint=None, merge=None, holds="schema", in_place=None, since=DRAFT_6)
def property_names(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``propertyNames``: a schema that all keys satisfy, as strings."""
    shapes = goals.strings(at, "/propertyNames", value)
    if any(shape is ANY_STRING for shape in shapes):
        return
    allowed = tuple(map(_content, shapes))
    others = Complement(Alternation(allowed)) if allowed else ANY_CONTENT
    text = f"the keys that {at.pointer('propertyNames')} excludes"
    found.key_patterns.append(KeyPattern(text, Intersection((ANY_CONTENT, others)), NOTHING))
    found.objects_restricted = True


def _content(shape: StringShape) -> Expression:
    if shape.values is None:
        return content(shape)
    spelled = map(spell_content, shape.values)
    return LiteralSet(tuple(text for text in spelled if text is not None))


@Keyword("additionalProperties", "object", hint=None, merge=None, holds="schema", in_place=None)
def additional_properties(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``additionalProperties``: the schema for keys outside ``properties`` and ``patternProperties``."""
    found.additional = goals.child(at, "/additionalProperties", value)
    found.open = False
    found.objects_restricted = True


@Keyword("required", "object", hint=None, merge=both_lists)
def required(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``required``: keys that must be present."""
    if not isinstance(value, list) or not all(isinstance(key, str) for key in value):
        hint = "; name the property in the required of the object that has it" if isinstance(value, bool) else ""
        message = f"required must be a list of strings, not {value!r:.80}{hint}"
        raise SchemaError(message, pointer=at.pointer("required"))
    found.required = tuple(dict.fromkeys(value))
    found.objects_restricted = True
    for key, near in misspelt_keys(at.schema):
        warning = f"required names {key!r:.80}, which no property has: did you mean {near!r:.80}?"
        goals.warnings.setdefault(warning, at.pointer("required"))


@Keyword("minProperties", "object", hint=None, merge=greater)
def min_properties(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``minProperties``: the least number of members."""
    found.min_properties = goals.count(at, "minProperties", value)
    found.objects_restricted = True


@Keyword("maxProperties", "object", hint=None, merge=lesser)
def max_properties(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``maxProperties``: the greatest number of members."""
    found.max_properties = goals.count(at, "maxProperties", value)
    found.objects_restricted = True


@Keyword(
    "unevaluatedProperties",
    "object",
    "unevaluated",
    hint=None,
    merge=None,
    holds="schema",
    in_place=None,
    since=DRAFT_2019,
)
def unevaluated_properties(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``unevaluatedProperties``: the schema for keys that no other keyword evaluates.

    Beside ``additionalProperties``, it has no effect. ``keywords.unevaluated`` handles it beside keywords that apply
    other schemas.
    """
    assert isinstance(at.schema, dict)
    if value is True or value == {} or "additionalProperties" in at.schema:
        return
    if not KEYWORDS.in_place.isdisjoint(at.schema):
        found.unevaluated = True
        return
    found.additional = goals.child(at, "/unevaluatedProperties", value)
    found.open = False
    found.objects_restricted = True


def object_shape(goals: Goals, found: Assertions) -> ObjectShape | None:
    """Returns the shape that the object keywords of one schema describe together."""
    if not found.objects_restricted:
        return ANY_OBJECT
    if found.max_properties is not None and max(found.min_properties, len(found.required)) > found.max_properties:
        return None
    declared = found.properties
    patterns: list[KeyPattern] = []
    if found.key_patterns:
        for pattern in found.key_patterns:
            cells = divide_keys(goals, patterns, [pattern])
            patterns = [*cells.both, *cells.left, *cells.right]
        for pattern in found.key_patterns:  # a declared key that matches a pattern must satisfy both
            if pattern.goal is not ANY:
                for key in matching(pattern.expression, declared):
                    declared[key] = goals.conjunction(declared[key], pattern.goal)
    return ObjectShape(
        declared,
        found.required,
        tuple(patterns),
        found.additional,
        found.min_properties,
        found.max_properties,
        found.open,
    )


def constant_object(goals: Goals, at: Location, value: dict[str, object]) -> ObjectShape:
    """Returns the shape of exactly this object."""
    members = {key: goals.constant(at, item) for key, item in value.items()}
    return ObjectShape(members, tuple(members), (), NOTHING, open=False)
