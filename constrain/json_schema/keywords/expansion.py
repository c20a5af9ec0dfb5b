"""Goals and their expansion into shapes, one compilation's working memory; finds cycles of ``$ref``."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from constrain.errors import LimitError, SchemaError
from constrain.json_schema.documents.dialects import DRAFT_4
from constrain.json_schema.formulas.complements import complement
from constrain.json_schema.keywords.asserted import asserted_shapes
from constrain.json_schema.keywords.assertions import Assertions
from constrain.json_schema.keywords.table import KEYWORDS
from constrain.json_schema.keywords.unevaluated import unevaluated
from constrain.json_schema.numbers.shape import exact
from constrain.json_schema.shapes.data import ANY, ANY_SHAPES, NO_SHAPES, NOTHING, PLAIN, Goal, Shapes, fixed_goal
from constrain.json_schema.shapes.goal import origin
from constrain.json_schema.shapes.goals import Goals, endless
from constrain.json_schema.shapes.shapes import intersect_all
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.documents.references import References
    from constrain.json_schema.keywords.unevaluated import Variants
    from constrain.json_schema.numbers.shape import Number
    from constrain.json_schema.shapes.data import Formula
    from constrain.json_schema.shapes.strings import StringShape
    from constrain.json_schema.values.counting import Value
    from constrain.language.policies import Policies
    from constrain.language.tree import Expression

MAX_IN_PLACE_DEPTH = 60
"""Schemas in a chain that all apply to the same value (``$ref`` to ``allOf`` to ``$ref`` ...). Beyond: LimitError."""

LOCATION_STEPS = 15
"""Compilation steps for one subschema, without its keywords; ``KEYWORD_STEPS``: for each keyword."""

KEYWORD_STEPS = 3

REFERENCE_STEPS = 3
"""Compilation steps for following one reference."""

STATE_STEPS = 10
"""Compilation steps for one state of an automaton, or one question that splits a member into cases."""

PLAIN_KEYWORDS = KEYWORDS.annotations | {"type"}
REFERENCE_KEYWORDS = KEYWORDS.annotations | {"$ref"}


class Expansion(Goals):
    """Interned goals over the locations of one document, and notes of the compilation."""

    def __init__(self, references: References, policies: Policies) -> None:
        self.references = references
        self.policies = policies
        self.pattern_pointers: dict[str, str] = {}
        self.warnings: dict[str, str | None] = {}  # with the first of several places
        self.numbers: list[tuple[Location, str, Sequence[Number]]] = []  # constants, with their pointers
        # Numbers with a fraction or an exponent that are no doubles: values, with their pointers; and bounds.
        self.long_floats: list[tuple[Location, str, Number]] = []
        self.float_bounds: set[Number] = set()
        self.has_unique_items = False
        self.has_integers_by_spelling = references.root.resource.dialect is DRAFT_4
        self.negates_integers = False  # some schema excludes integers
        self.shortages: dict[Goal, str] = {}  # messages for goals that lost arrays: too few different items
        self.enumerations: dict[frozenset[Value], Goal] = {}  # values that several arrays of different items share
        self._conjunctions: dict[frozenset[Goal], Goal] = {}
        self._unknown: dict[str, Location] = {}
        self._in_place_depth = 0
        self.formulas: dict[int, tuple[object, Formula]] = {}  # of shapes, by id, where formulas are shared
        self.explored = 0
        self._only_strings = 0  # nesting of the propertyNames being read
        self._for_strings: dict[Location, Shapes | None] = {}
        self.pattern_expressions: dict[str, Expression] = {}
        self.variants: dict[Location, Variants | None] = {}
        self._ends: dict[Location, Goal | None] = {}  # by location: ends of chains of references

    # Making goals.

    def child(self, parent: Location, token: str, schema: object) -> Goal:
        """Returns the goal of a subschema that applies to a part of the value."""
        if schema.__class__ is dict:
            assert isinstance(schema, dict)
            if PLAIN_KEYWORDS.issuperset(schema):
                kind = schema.get("type")
                if kind is None and "type" not in schema:
                    return ANY
                if kind.__class__ is str:
                    goal = PLAIN.get(kind)
                    if goal is not None:
                        self.note_dialect(parent)
                        return goal
            elif "$ref" in schema and (
                parent.resource.dialect.ref_ignores_siblings or REFERENCE_KEYWORDS.issuperset(schema)
            ):
                location = self.references.child(parent, token, schema)
                goal = self._referenced(location)
                if goal is None:
                    raise endless(location, "$ref")
                return goal
        elif schema is True:
            return ANY
        elif schema is False:
            return NOTHING
        return goal_at(self.references.child(parent, token, schema))

    def children(self, parent: Location, keyword: str, schemas: object) -> tuple[Goal, ...]:
        """Returns the goals of a list of subschemas."""
        if not isinstance(schemas, list):
            raise SchemaError(
                f"{keyword} must be a list of schemas, not {schemas!r:.80}", pointer=parent.pointer(keyword)
            )
        return tuple(self.child(parent, f"/{keyword}/{index}", schema) for index, schema in enumerate(schemas))

    def root(self) -> Goal:
        """Returns the goal of the whole document."""
        schema = self.references.root.schema
        if isinstance(schema, dict) and "$ref" in schema:
            root = self._referenced(self.references.root)
            if root is None:
                raise endless(self.references.root)
            return root
        if isinstance(schema, bool):
            return ANY if schema else NOTHING
        return goal_at(self.references.root)

    def _referenced(self, location: Location) -> Goal | None:
        """Returns the goal at the end of the chain of references that starts at a plain ``$ref``.

        Returns ``None`` if the chain has no end. A chain that other chains lead into is followed once.
        """
        seen: dict[Location, None] = {}
        goal: Goal | None = None
        while location not in seen:
            if location in self._ends:
                goal = self._ends[location]
                break
            following = self._reference_in(location)
            if following is None:
                goal = self._end(location)
                break
            seen[location] = None
            location = following
        self._ends.update(dict.fromkeys(seen, goal))
        return goal

    def _reference_in(self, location: Location) -> Location | None:
        """Returns the target of a schema that is a plain ``$ref``; ``None`` for other schemas."""
        schema = location.schema
        if not isinstance(schema, dict) or "$ref" not in schema:
            return None
        if not location.resource.dialect.ref_ignores_siblings and not REFERENCE_KEYWORDS.issuperset(schema):
            return None
        spend(REFERENCE_STEPS)
        return self.references.resolve(location, schema["$ref"])

    def _end(self, location: Location) -> Goal:
        """Returns the goal of the schema at the end of a chain of references."""
        schema = location.schema
        if isinstance(schema, bool):
            return ANY if schema else NOTHING
        assert isinstance(schema, dict)
        if PLAIN_KEYWORDS.issuperset(schema):
            kind = schema.get("type")
            if isinstance(kind, str) and kind in PLAIN:
                self.note_dialect(location)
                return PLAIN[kind]
        return goal_at(location)

    def constant(self, at: Location, value: object) -> Goal:
        """Returns the goal of exactly ``value``, which is part of a constant at ``at``."""
        return Goal(self.references.inside(at, {"enum": [value]}))

    def conjunction(self, a: Goal, b: Goal) -> Goal:
        """Returns the goal of satisfying both."""
        if a is b or b is ANY:
            return a
        if a is ANY:
            return b
        if a is NOTHING or b is NOTHING:
            return NOTHING
        key = frozenset(a.parts + b.parts)
        goal = self._conjunctions.get(key)
        if goal is None:
            if any(part.negated in key for part in key if part.negated is not None):
                return NOTHING
            spend(1 + 4 * len(key))
            parts = tuple(dict.fromkeys(a.parts + b.parts))
            if len(parts) == len(a.parts):
                goal = a
            else:
                goal = Goal(None, parts)
                goal.begun = a
            self._conjunctions[key] = goal
        return goal

    def negation(self, goal: Goal) -> Goal:
        """Returns the goal of violating ``goal``."""
        if goal is ANY:
            return NOTHING
        if goal is NOTHING:
            return ANY
        if goal.negated is not None:
            return goal.negated
        if goal.is_fixed:  # shared by all compilations, as its negation is; each takes its own notes
            assert goal.shapes is not None
            self.note_negated(goal.shapes)
        negation = goal.negation
        if negation is None:
            negation = fixed_goal(complement(self, goal.shapes)) if goal.shapes and goal.is_fixed else Goal(None)
            negation.negated = goal
            goal.negation = negation
        return negation

    def either(self, a: Goal, b: Goal) -> Goal:
        """Returns the goal of satisfying at least one of the two."""
        return self.negation(self.conjunction(self.negation(a), self.negation(b)))

    def pointer_of(self, goal: Goal) -> str:
        """Returns the JSON Pointer of the schema that a goal comes from, for messages."""
        return (origin(goal) or self.references.root).pointer()

    def explore(self, states: int = 1) -> None:
        """Counts states of an automaton of formulas. Raises LimitError."""
        self.explored += states
        spend(states * STATE_STEPS)

    def count_cases(self, questions: int) -> None:
        """Counts questions that split the values of a member into cases. Raises LimitError."""
        spend(questions * STATE_STEPS)

    # Expanding goals.

    def shapes(self, goal: Goal) -> Shapes:
        """Returns the disjunction of shapes that ``goal`` expands to."""
        shapes = goal.shapes
        if shapes is None:
            if goal.location is not None:
                shapes = self.expand(goal.location)
            elif goal.negated is not None:
                shapes = complement(self, self.shapes(goal.negated))
            else:
                begun = goal.begun
                if begun is None or begun.shapes is None:
                    shapes, parts = ANY_SHAPES, goal.parts
                else:  # goals that share all but the last part: one further intersection for each
                    shapes, parts = begun.shapes, goal.parts[len(begun.parts) :]
                shapes = intersect_all(self, [shapes, *map(self.shapes, parts)])
            goal.shapes = shapes
        return shapes

    def in_place(self, parent: Location, token: str, schema: object) -> Shapes:
        """Returns the shapes of a subschema that applies to the same value as ``parent``."""
        if schema is True:
            return ANY_SHAPES
        if schema is False:
            return NO_SHAPES
        return self.expand(self.references.child(parent, token, schema))

    def expand(self, location: Location) -> Shapes:
        """Returns the shapes of the schema at ``location``."""
        if self._only_strings:
            return self._expand_for_strings(location)
        shapes: Shapes | None = location.shapes
        if shapes is not None:
            return shapes
        schema = location.schema
        if not isinstance(schema, dict):
            if not isinstance(schema, bool):
                raise SchemaError(f"a schema is an object or a boolean, not {schema!r:.80}", pointer=location.pointer())
            shapes = location.shapes = ANY_SHAPES if schema else NO_SHAPES
            return shapes
        if location.expanding:
            raise endless(location)
        self.go_in_place(location)
        location.expanding = True
        found = Assertions()
        if "$ref" in schema and location.resource.dialect.ref_ignores_siblings:
            schema = {"$ref": schema["$ref"]}
        self.read_keywords(location, schema, found)
        shapes = unevaluated(self, location) if found.unevaluated else asserted_shapes(found, self)
        location.shapes = shapes
        location.expanding = False
        self._in_place_depth -= 1
        return shapes

    def go_in_place(self, location: Location, change: int = 1) -> None:
        """Counts one more, or one less, of the schemas around that apply to the same value. Raises LimitError."""
        self._in_place_depth += change
        if self._in_place_depth > MAX_IN_PLACE_DEPTH:
            raise LimitError(
                f"a chain of more schemas than MAX_IN_PLACE_DEPTH = {MAX_IN_PLACE_DEPTH} applies to one value",
                pointer=location.pointer(),
            )

    def strings(self, parent: Location, token: str, schema: object) -> tuple[StringShape, ...]:
        """Returns the string shapes of a subschema of ``parent``; only keywords about strings are read.

        So the subschema may contain itself: subschemas for members of arrays and objects are not read.
        """
        self._only_strings += 1
        shapes = self.in_place(parent, token, schema)
        self._only_strings -= 1
        return shapes.strings

    def _expand_for_strings(self, location: Location) -> Shapes:
        """Returns shapes that are correct for strings only."""
        if location in self._for_strings:
            known = self._for_strings[location]
            if known is None:
                raise endless(location)
            return known
        self._for_strings[location] = None
        schema = location.schema
        if isinstance(schema, dict):
            if "$ref" in schema and location.resource.dialect.ref_ignores_siblings:
                schema = {"$ref": schema["$ref"]}
            found = Assertions()
            self.read_keywords(location, {k: v for k, v in schema.items() if k in KEYWORDS.about_strings}, found)
            shapes = asserted_shapes(found, self)
        else:
            shapes = ANY_SHAPES if schema is True else NO_SHAPES
        self._for_strings[location] = shapes
        return shapes

    def read_keywords(self, location: Location, schema: Mapping[str, object], found: Assertions) -> None:
        """Collects the assertions of these keywords."""
        handlers = KEYWORDS.handlers[location.resource.dialect]
        keyword = ""
        try:
            spend(LOCATION_STEPS + KEYWORD_STEPS * len(schema))
            for keyword, value in schema.items():
                handler = handlers.get(keyword)
                if handler is not None:
                    handler(self, location, value, found)
                elif keyword not in handlers:
                    self._unknown.setdefault(keyword, location)
        except LimitError as error:
            if error.pointer is None:
                error.pointer = location.pointer(keyword)
            raise

    # Notes of keyword functions.

    def note_dialect(self, at: Location) -> None:
        """Records that a schema restricts types: in draft 4, spelling decides about ``integer``, too."""
        if at.resource.dialect is DRAFT_4:
            self.has_integers_by_spelling = True

    def note_negated(self, shapes: Shapes) -> None:
        """Records shapes whose complement a schema needs."""
        if any(shape.integer for shape in shapes.numbers):
            self.negates_integers = True

    def count(self, at: Location, keyword: str, value: object) -> int:
        """Returns a keyword's value that must be a whole number of at least 0. Raises SchemaError."""
        if isinstance(value, (float, Decimal)):
            value = exact(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise SchemaError(
                f"{keyword} must be a whole number of at least 0, not {value!r:.80}", pointer=at.pointer(keyword)
            )
        return value

    def report(self) -> tuple[str, ...]:
        """Returns the warnings, in the order of discovery."""
        noted = (text if place is None else f"{text} (first at {place})" for text, place in self.warnings.items())
        warnings = (*self.references.notes(), *noted)
        if not self._unknown:
            return warnings
        from constrain.json_schema.keywords.unknown import about_unknown

        return (*warnings, *(about_unknown(keyword, location) for keyword, location in self._unknown.items()))


def goal_at(location: Location) -> Goal:
    """Returns the goal of the schema at ``location``."""
    goal: Goal | None = location.goal
    if goal is None:
        goal = location.goal = Goal(location)
    return goal
