"""Keywords for values of all types: ``type``, ``const``, ``enum``, ``x-one-of``, ``not``, ``allOf``, ``$ref``, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.dialects import DRAFT_6, DRAFT_2019, DRAFT_2020
from constrain.json_schema.documents.keyword import Keyword
from constrain.json_schema.formulas.complements import complement
from constrain.json_schema.formulas.disjoint import find_overlap
from constrain.json_schema.keywords.arrays import constant_array
from constrain.json_schema.keywords.assertions import TYPE_BITS
from constrain.json_schema.keywords.joining import both_enums, both_types, chained
from constrain.json_schema.keywords.objects import constant_object
from constrain.json_schema.keywords.unevaluated import (
    NOTHING_EVALUATED,
    Evaluated,
    Variants,
    both,
    branch_variants,
    merged,
    variants,
)
from constrain.json_schema.numbers.cells import is_long_integer
from constrain.json_schema.numbers.shape import Number, NumberShape, exact
from constrain.json_schema.shapes.data import ANY_SHAPES, FALSE, NULL, TRUE, Shapes
from constrain.json_schema.shapes.shapes import all_but_one, intersect, union
from constrain.json_schema.shapes.strings import StringShape
from constrain.json_schema.shapes.tables import table_shapes
from constrain.language.stages import GIVEN, REFERS
from constrain.language.wrong_schema import describe_no_type_name
from constrain.tables.keyword import ONE_OF, read_given, read_keyword
from constrain.work import spend

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.data import ArrayShape, ObjectShape
    from constrain.json_schema.shapes.goals import Goals


@Keyword("type", "any", hint=None, merge=both_types)
def type_(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``type``: one type, or a list of types."""
    names = value if isinstance(value, list) else [value]
    types = 0
    for name in names:
        bits = TYPE_BITS.get(name) if isinstance(name, str) else None
        if bits is None:
            raise SchemaError(
                f"{name!r:.80} is not a type of JSON Schema{describe_no_type_name(name, TYPE_BITS)}",
                pointer=at.pointer("type"),
            )
        types |= bits
    found.types = types
    goals.note_dialect(at)


@Keyword("const", "any", hint=None, merge=None, since=DRAFT_6)
def const(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``const``: exactly one value."""
    found.parts.append(constants(goals, at, [value], "const"))


@Keyword("enum", "any", hint=None, merge=both_enums)
def enum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``enum``: one of several values."""
    if not isinstance(value, list):
        raise SchemaError(f"enum must be a list, not {value!r:.80}", pointer=at.pointer("enum"))
    found.parts.append(constants(goals, at, value, "enum"))


def _note_one_of(given: object) -> str:
    try:
        if isinstance(given, dict) and GIVEN in given:
            keyword, others = read_given(given)
            listed = " and ".join(f"{name!r:.80} is the value at {pointer}" for name, pointer in others.items())
            return f"a value of {keyword} in a row whose {listed}"
        keyword = read_keyword(given)
    except TypeError:
        return ""
    return f"a value of {keyword}" if keyword.size is None else f"one of {keyword.size:,} known values"


@Keyword(ONE_OF, "any", hint=_note_one_of, merge=None)
def one_of_table(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``x-one-of``: one of the values of a table's column, which the options of a call or ``constrain.OneOf`` give."""
    found.parts.append(table_shapes(goals, at, value))


@Keyword(REFERS, "any", hint=lambda pointer: f"one of the values at {pointer}", merge=None)
def refers(goals: Goals, at: Location, value: object, found: Assertions) -> None:  # noqa: ARG001
    """``x-refers``: one of the values at a pointer, in which ``*`` is any item, that are written before."""
    if not isinstance(value, str):
        message = f"{REFERS} must be a JSON Pointer such as /items/*/id, not {value!r:.80}"
        raise SchemaError(message, pointer=at.pointer(REFERS))
    message = f"{REFERS} is not supported here; leave it out, and look the value up in the answer"
    raise UnsupportedSchemaError(message, pointer=at.pointer(REFERS))


STRUCTURE_STEPS = 5
"""Compilation steps for each array or object among the constants of a schema; each is a subschema."""


def constants(goals: Goals, at: Location, values: list[object], keyword: str) -> Shapes:
    """Returns the shapes of exactly these values; equal values (1 and 1.0) count once, as they are written first."""
    spend(len(values) + 1 + STRUCTURE_STEPS * sum(isinstance(value, (list, dict)) for value in values))
    simple = 0
    numbers: dict[Number, bool] = {}  # and whether the schema writes them with a fraction or an exponent
    strings: dict[str, None] = {}
    arrays: list[ArrayShape] = []
    objects: list[ObjectShape] = []
    for value in values:
        if isinstance(value, str):
            strings[value] = None
        elif value is None:
            simple |= NULL
        elif isinstance(value, bool):
            simple |= TRUE if value else FALSE
        elif isinstance(value, list):
            arrays.append(constant_array(goals, at, value))
        elif isinstance(value, dict):
            objects.append(constant_object(goals, at, value))
        else:
            number = exact(value)
            if number is None:
                raise SchemaError(f"{value!r:.80} is not a JSON value", pointer=at.pointer(keyword))
            numbers.setdefault(number, not isinstance(value, int))
            if value.__class__ is not int and is_long_integer(number):
                goals.long_floats.append((at, keyword, number))
    if numbers:
        goals.numbers.append((at, keyword, tuple(numbers)))
    return Shapes(
        simple,
        tuple(
            NumberShape(values=alike, pointed=pointed)
            for pointed in (False, True)
            if (alike := tuple(number for number, has_point in numbers.items() if has_point == pointed))
        ),
        (StringShape(values=tuple(strings)),) if strings else (),
        tuple(arrays),
        tuple(objects),
    )


def _ref_variants(goals: Goals, at: Location, keyword: str, value: object) -> Variants:
    known = goals.references
    resolve = {"$ref": known.resolve, "$dynamicRef": known.resolve_dynamic, "$recursiveRef": known.resolve_recursive}
    return variants(goals, resolve[keyword](at, value))


@Keyword("$ref", "any", "core", hint=None, merge=None, in_place=_ref_variants)
def ref(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``$ref``: another schema also applies here."""
    found.parts.append(goals.expand(goals.references.resolve(at, value)))


@Keyword("$dynamicRef", "any", "core", hint=None, merge=None, in_place=_ref_variants, since=DRAFT_2020)
def dynamic_ref(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``$dynamicRef``: another schema also applies here; the dynamic scope decides which one."""
    found.parts.append(goals.expand(goals.references.resolve_dynamic(at, value)))


@Keyword(
    "$recursiveRef", "any", "core", hint=None, merge=None, in_place=_ref_variants, since=DRAFT_2019, until=DRAFT_2019
)
def recursive_ref(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``$recursiveRef``: the root of a resource also applies here; the dynamic scope decides which one."""
    found.parts.append(goals.expand(goals.references.resolve_recursive(at, value)))


def _all_of_variants(goals: Goals, at: Location, keyword: str, value: object) -> Variants:
    result: Variants = {NOTHING_EVALUATED: ANY_SHAPES}
    for branch in branch_variants(goals, at, keyword, value):
        result = both(goals, result, branch)
    return result


@Keyword("allOf", "any", hint=None, merge=chained, holds="list", in_place=_all_of_variants)
def all_of(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``allOf``: all of several schemas."""
    found.parts += branches(goals, at, "allOf", value)


def _any_of_variants(goals: Goals, at: Location, keyword: str, value: object) -> Variants:
    """Returns one variant for each non-empty set of branches, whose schemas all hold in it.

    Branches outside of the set may hold, too.
    """
    result: Variants = {}
    for branch in branch_variants(goals, at, keyword, value):
        result = merged((*result.items(), *branch.items(), *both(goals, result, branch).items()))
    return result


@Keyword("anyOf", "any", hint=None, merge=None, holds="list", in_place=_any_of_variants)
def any_of(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``anyOf``: at least one of several schemas."""
    found.parts.append(union(branches(goals, at, "anyOf", value)))


def _one_of_variants(goals: Goals, at: Location, keyword: str, value: object) -> Variants:
    found_branches = branch_variants(goals, at, keyword, value)
    others = all_but_one(goals, [complement(goals, union(branch.values())) for branch in found_branches])
    found: list[tuple[Evaluated, Shapes]] = []
    for branch, excluded in zip(found_branches, others, strict=True):
        for evaluated, shapes in branch.items():
            alone = shapes
            for other in excluded:
                alone = intersect(goals, alone, other)
            found.append((evaluated, alone))
    return merged(found)


@Keyword("oneOf", "any", hint=None, merge=None, holds="list", in_place=_one_of_variants)
def one_of(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``oneOf``: exactly one of several schemas; if no two can hold at once, alternatives as in ``anyOf``.

    If branches overlap, their intersections with the other keywords may still be disjoint.
    """
    alternatives = branches(goals, at, "oneOf", value)
    if find_overlap(goals, alternatives) is None:
        found.parts.append(union(alternatives))
    else:
        found.exclusive = alternatives


def branches(goals: Goals, at: Location, keyword: str, value: object) -> list[Shapes]:
    """Returns the shapes of each schema in the list."""
    if not isinstance(value, list) or not value:
        raise SchemaError(f"{keyword} must be a list of schemas, not {value!r:.80}", pointer=at.pointer(keyword))
    return [goals.in_place(at, f"/{keyword}/{index}", schema) for index, schema in enumerate(value)]


def _not_variants(goals: Goals, at: Location, keyword: str, value: object) -> Variants:
    return {NOTHING_EVALUATED: complement(goals, goals.in_place(at, f"/{keyword}", value))}


@Keyword("not", "any", hint=None, merge=None, holds="schema", in_place=_not_variants)
def not_(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``not``: every value that violates the schema."""
    found.parts.append(complement(goals, goals.in_place(at, "/not", value)))
