"""``unevaluatedProperties`` and ``unevaluatedItems`` beside keywords that apply other schemas to the same value.

The evaluated members depend on which of those schemas hold (2020-12 Core, section 11). So the ways in which a schema
can hold become *variants*: shapes, with the members evaluated if they hold. A variant that leaves open whether a
further branch holds may ask for more than necessary, never for less; so the union of all variants is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError, SchemaError
from constrain.json_schema.documents.dialects import escape
from constrain.json_schema.documents.keyword_sets import IN_PLACE_APPLICATORS
from constrain.json_schema.formulas.complements import complement, has_keys, objects_where
from constrain.json_schema.formulas.disjoint import is_cheap
from constrain.json_schema.keywords.asserted import asserted_shapes
from constrain.json_schema.keywords.assertions import Assertions
from constrain.json_schema.keywords.conditionals import dependencies
from constrain.json_schema.keywords.table import keywords_of
from constrain.json_schema.shapes.data import (
    ANY,
    ANY_SHAPES,
    NOTHING,
    PLAIN,
    ArrayShape,
    Goal,
    KeyPattern,
    Not,
    ObjectShape,
    Shapes,
)
from constrain.json_schema.shapes.goals import endless
from constrain.json_schema.shapes.objects import divide_keys, key_goals
from constrain.json_schema.shapes.shapes import all_but_one, intersect, union
from constrain.json_schema.shapes.strings import pattern_expression

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.shapes.goals import Goals

MAX_VARIANTS = 300
"""Different sets of members and items that the keywords of one schema may evaluate; only counted where
``unevaluatedProperties`` or ``unevaluatedItems`` needs them. Beyond: LimitError."""

MAX_SCHEMAS_WITH_VARIANTS = 500
"""Schemas in one compilation whose evaluated members and items are followed; they may be deeply nested. Beyond:
LimitError."""

UNEVALUATED = frozenset(("unevaluatedProperties", "unevaluatedItems"))
SPLIT = IN_PLACE_APPLICATORS | UNEVALUATED


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
        if len(goals.variants) > MAX_SCHEMAS_WITH_VARIANTS:
            raise LimitError(
                f"more schemas than MAX_SCHEMAS_WITH_VARIANTS = {MAX_SCHEMAS_WITH_VARIANTS} affect unevaluated members",
                pointer=at.pointer(),
            )
        goals.variants[at] = None
        known = goals.variants[at] = _variants(goals, at, schema)
    return known


def _variants(goals: Goals, at: Location, schema: dict[str, object]) -> Variants:
    if "$ref" in schema and at.resource.dialect.ref_ignores_siblings:
        schema = {"$ref": schema["$ref"]}
    enforced = keywords_of(at.resource.dialect)
    found = Assertions()
    goals.read_keywords(at, {key: value for key, value in schema.items() if key not in SPLIT}, found)
    result = {_own(goals, at, schema): asserted_shapes(found, goals)}
    for keyword, value in schema.items():
        ways = _ways(goals, at, keyword, value) if keyword in enforced else None
        if ways is not None:
            result = _both(goals, result, ways)
    for keyword, restriction in (("unevaluatedProperties", _properties), ("unevaluatedItems", _items)):
        if keyword in schema and keyword in enforced:
            goal = goals.child(at, "/" + keyword, schema[keyword])
            result = _merged(restriction(goals, goal, *variant) for variant in result.items())
    return result


def _own(goals: Goals, at: Location, schema: dict[str, object]) -> Evaluated:
    """Returns the members that the keywords of the schema object itself evaluate."""
    prefix, items = schema.get("prefixItems"), schema.get("items")
    all_items = "items" in schema
    contained: frozenset[Goal] = frozenset()
    if isinstance(items, list):  # up to 2019-09
        prefix, all_items = items, "additionalItems" in schema
    if "contains" in schema and "prefixItems" in keywords_of(at.resource.dialect):  # from 2020-12 on
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


def _ways(goals: Goals, at: Location, keyword: str, value: object) -> Variants | None:
    """Returns the same for one keyword; ``None`` for a keyword that applies no schema to the value itself."""
    match keyword:
        case "$ref":
            return variants(goals, goals.references.resolve(at, value))
        case "$dynamicRef":
            return variants(goals, goals.references.resolve_dynamic(at, value))
        case "$recursiveRef":
            return variants(goals, goals.references.resolve_recursive(at, value))
        case "allOf":
            result: Variants = {NOTHING_EVALUATED: ANY_SHAPES}
            for branch in _branches(goals, at, keyword, value):
                result = _both(goals, result, branch)
            return result
        case "anyOf":
            return _any_of(goals, _branches(goals, at, keyword, value))
        case "oneOf":
            return _one_of(goals, _branches(goals, at, keyword, value))
        case "not":
            return {NOTHING_EVALUATED: complement(goals, goals.in_place(at, "/not", value))}
        case "if":
            return _conditional(goals, at, value)
        case "dependentSchemas" | "dependencies":
            return _dependent(goals, at, keyword, value)
    return None


def _branches(goals: Goals, at: Location, keyword: str, value: object) -> list[Variants]:
    if not isinstance(value, list) or not value:
        raise SchemaError(f"{keyword} must be a list of schemas, not {value!r:.80}", pointer=at.pointer(keyword))
    return [_inside(goals, at, f"/{keyword}/{index}", schema) for index, schema in enumerate(value)]


def _inside(goals: Goals, at: Location, token: str, schema: object) -> Variants:
    return variants(goals, goals.references.child(at, token, schema))


def _merged(found: Iterable[tuple[Evaluated, Shapes]]) -> Variants:
    """Returns the variants, with one for all that evaluate the same members."""
    result: Variants = {}
    for evaluated, shapes in found:
        if any(shapes):
            result[evaluated] = union((result[evaluated], shapes)) if evaluated in result else shapes
    if len(result) > MAX_VARIANTS:
        raise LimitError(
            "the keywords next to unevaluatedProperties or unevaluatedItems can evaluate more different sets of "
            f"members than MAX_VARIANTS = {MAX_VARIANTS}; use fewer anyOf, oneOf and if there"
        )
    return result


def _both(goals: Goals, a: Variants, b: Variants) -> Variants:
    return _merged(
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


def _any_of(goals: Goals, branches: list[Variants]) -> Variants:
    """Returns the variants of an ``anyOf``: one for each non-empty set of branches, whose schemas all hold in it.

    Branches outside of the set may hold, too.
    """
    result: Variants = {}
    for branch in branches:
        result = _merged((*result.items(), *branch.items(), *_both(goals, result, branch).items()))
    return result


def _one_of(goals: Goals, branches: list[Variants]) -> Variants:
    others = all_but_one(goals, [complement(goals, union(branch.values())) for branch in branches])
    found: list[tuple[Evaluated, Shapes]] = []
    for branch, excluded in zip(branches, others, strict=True):
        for evaluated, shapes in branch.items():
            alone = shapes
            for other in excluded:
                alone = intersect(goals, alone, other)
            found.append((evaluated, alone))
    return _merged(found)


def _conditional(goals: Goals, at: Location, value: object) -> Variants:
    """Returns the variants of ``if``, which evaluates members even without ``then`` and ``else``."""
    schema = at.schema
    assert isinstance(schema, dict)
    holds = _inside(goals, at, "/if", value)
    fails = {NOTHING_EVALUATED: complement(goals, union(holds.values()))}
    if "then" in schema:
        holds = _both(goals, holds, _inside(goals, at, "/then", schema["then"]))
    if "else" in schema:
        fails = _both(goals, fails, _inside(goals, at, "/else", schema["else"]))
    return _merged((*holds.items(), *fails.items()))


def _dependent(goals: Goals, at: Location, keyword: str, value: object) -> Variants:
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
        holds = _both(goals, present, _inside(goals, at, f"/{keyword}{escape(key)}", schema))
        result = _both(goals, result, _merged(((NOTHING_EVALUATED, absent), *holds.items())))
    return result


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
