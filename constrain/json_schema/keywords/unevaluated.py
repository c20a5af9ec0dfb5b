"""``unevaluatedProperties`` and ``unevaluatedItems`` beside keywords that apply other schemas to the same value.

The evaluated members depend on which of those schemas hold (2020-12 Core, section 11). So the ways in which a schema
can hold become *variants*: shapes, with the members evaluated if they hold. A variant that leaves open whether a
further branch holds may ask for more than necessary, never for less; so the union of all variants is exact. The
function ``in_place`` of a keyword's record returns its variants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError, SchemaError
from constrain.json_schema.documents.dialects import DRAFT_2020
from constrain.json_schema.documents.keyword import KEYWORDS
from constrain.json_schema.formulas.disjoint import is_cheap
from constrain.json_schema.keywords.asserted import asserted_shapes
from constrain.json_schema.keywords.assertions import Assertions
from constrain.json_schema.shapes.data import (
    ANY,
    ANY_SHAPES,
    NOTHING,
    PLAIN,
    ArrayShape,
    Goal,
    KeyPattern,
    ObjectShape,
    Shapes,
)
from constrain.json_schema.shapes.goals import endless
from constrain.json_schema.shapes.objects import divide_keys, key_goals
from constrain.json_schema.shapes.shapes import intersect, union
from constrain.json_schema.shapes.strings import pattern_expression
from constrain.work import MAX_ALTERNATIVES, spend

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.shapes.goals import Goals

VARIANT_STEPS = 100
"""Compilation steps for each schema whose evaluated members and items are followed."""


class Evaluated(NamedTuple):
    """The evaluated members: ``patterns`` are texts of key patterns, ``contained`` goals of items."""

    keys: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    all_keys: bool = False
    prefix: int = 0
    all_items: bool = False
    contained: frozenset[Goal] = frozenset()

    def with_(self, other: Evaluated) -> Evaluated:
        """Returns the members that either evaluates."""
        return Evaluated(
            self.keys | other.keys,
            self.patterns | other.patterns,
            self.all_keys or other.all_keys,
            max(self.prefix, other.prefix),
            self.all_items or other.all_items,
            self.contained | other.contained,
        )


NOTHING_EVALUATED = Evaluated()

Variants = dict[Evaluated, Shapes]


def unevaluated(goals: Goals, at: Location) -> Shapes:
    """Returns the shapes of a schema with one of these keywords."""
    return union(variants(goals, at).values())


def variants(goals: Goals, at: Location) -> Variants:
    """Returns the values that satisfy the schema at ``at``, by the members and items that it evaluates in them."""
    schema = at.schema
    if not isinstance(schema, dict):
        shapes = goals.expand(at)
        return {NOTHING_EVALUATED: shapes}
    known = goals.variants.get(at)
    if known is None:
        if at in goals.variants:
            raise endless(at)
        spend(VARIANT_STEPS)
        goals.variants[at] = None
        goals.go_in_place(at)
        known = goals.variants[at] = _variants(goals, at, schema)
        goals.go_in_place(at, -1)
    return known


def _variants(goals: Goals, at: Location, schema: dict[str, object]) -> Variants:
    if "$ref" in schema and at.resource.dialect.ref_ignores_siblings:
        schema = {"$ref": schema["$ref"]}
    enforced = KEYWORDS.handlers[at.resource.dialect]
    restrictions = {"unevaluatedProperties": _properties, "unevaluatedItems": _items}
    found = Assertions()
    split = KEYWORDS.in_place | restrictions.keys()
    goals.read_keywords(at, {key: value for key, value in schema.items() if key not in split}, found)
    result = {_own(goals, at, schema): asserted_shapes(found, goals)}
    for keyword, value in schema.items():
        if keyword in KEYWORDS.in_place and keyword in enforced:
            apply = KEYWORDS.records[keyword].in_place
            result = both(goals, result, apply(goals, at, keyword, value)) if apply else result
    for keyword, restriction in restrictions.items():
        if keyword in schema and keyword in enforced:
            goal = goals.child(at, "/" + keyword, schema[keyword])
            result = merged(restriction(goals, goal, *variant) for variant in result.items())
    return result


def _own(goals: Goals, at: Location, schema: dict[str, object]) -> Evaluated:
    """Returns the members that the keywords of the schema object itself evaluate."""
    prefix, items = schema.get("prefixItems"), schema.get("items")
    all_items = "items" in schema
    contained: frozenset[Goal] = frozenset()
    if isinstance(items, list):  # up to 2019-09
        prefix, all_items = items, "additionalItems" in schema
    if "contains" in schema and at.resource.dialect is DRAFT_2020:
        contained = frozenset((goals.child(at, "/contains", schema["contains"]),))
    patterns = schema.get("patternProperties")
    properties = schema.get("properties")
    for text in patterns if isinstance(patterns, dict) else ():
        goals.pattern_expressions.setdefault(text, pattern_expression(at, text, "patternProperties", text))
    return Evaluated(
        frozenset(properties if isinstance(properties, dict) else ()),
        frozenset(patterns if isinstance(patterns, dict) else ()),
        "additionalProperties" in schema,
        len(prefix) if isinstance(prefix, list) else 0,
        all_items,
        contained,
    )


def branch_variants(goals: Goals, at: Location, keyword: str, value: object) -> list[Variants]:
    """Returns the variants of each schema in a list."""
    if not isinstance(value, list) or not value:
        raise SchemaError(f"{keyword} must be a list of schemas, not {value!r:.80}", pointer=at.pointer(keyword))
    return [variants_inside(goals, at, f"/{keyword}/{index}", schema) for index, schema in enumerate(value)]


def variants_inside(goals: Goals, at: Location, token: str, schema: object) -> Variants:
    """Returns the variants of a subschema that applies to the same value."""
    return variants(goals, goals.references.child(at, token, schema))


def merged(found: Iterable[tuple[Evaluated, Shapes]]) -> Variants:
    """Returns the variants, with one for all that evaluate the same members."""
    result: Variants = {}
    for evaluated, shapes in found:
        if any(shapes):
            result[evaluated] = union((result[evaluated], shapes)) if evaluated in result else shapes
    if len(result) > MAX_ALTERNATIVES:
        raise LimitError(
            "the keywords next to unevaluatedProperties or unevaluatedItems can evaluate more different sets of "
            f"members than MAX_ALTERNATIVES = {MAX_ALTERNATIVES}; use fewer anyOf, oneOf and if there"
        )
    return result


def both(goals: Goals, a: Variants, b: Variants) -> Variants:
    """Returns the variants in which both hold."""
    return merged(
        (one.with_(two), _possible(goals, intersect(goals, ours, theirs)))
        for one, ours in a.items()
        for two, theirs in b.items()
    )


def _possible(goals: Goals, shapes: Shapes) -> Shapes:
    """Returns the shapes without objects that need a key with a value that cannot be.

    So conditions that ask for different values of one key make as many variants as there are conditions, and not all
    their combinations.
    """
    objects = tuple(
        shape
        for shape in shapes.objects
        if all(not is_cheap(goal) or any(goals.shapes(goal)) for goal in key_goals(shape, shape.required).values())
    )
    return shapes._replace(objects=objects) if len(objects) < len(shapes.objects) else shapes


def _properties(goals: Goals, goal: Goal, evaluated: Evaluated, shapes: Shapes) -> tuple[Evaluated, Shapes]:
    if goal is not ANY and not evaluated.all_keys:
        patterns: list[KeyPattern] = []
        for text in sorted(evaluated.patterns):
            cells = divide_keys(goals, patterns, [KeyPattern(text, goals.pattern_expressions[text], ANY)])
            patterns = [*cells.both, *cells.left, *cells.right]
        keys = dict.fromkeys(sorted(evaluated.keys), ANY)
        shape = ObjectShape(keys, (), tuple(patterns), goal, open=False)
        shapes = intersect(goals, shapes, ANY_SHAPES._replace(objects=(shape,)))
    return evaluated._replace(all_keys=True, keys=frozenset(), patterns=frozenset()), shapes


def _items(goals: Goals, goal: Goal, evaluated: Evaluated, shapes: Shapes) -> tuple[Evaluated, Shapes]:
    if goal is not ANY and not evaluated.all_items:
        rest = goal
        for contained in sorted(evaluated.contained, key=_order):
            rest = goals.either(rest, contained)
        shape = ArrayShape((ANY,) * evaluated.prefix, rest)
        shapes = intersect(goals, shapes, ANY_SHAPES._replace(arrays=(shape,)))
    return evaluated._replace(all_items=True, prefix=0, contained=frozenset()), shapes


_FIXED = (ANY, NOTHING, *PLAIN.values())


def _order(goal: Goal) -> tuple[int, int]:
    """Returns the position of a ``contains`` goal, as a sort key: the same schema always gives the same grammar."""
    return (-1, _FIXED.index(goal)) if goal.location is None else (goal.location.order, 0)
