"""The interface of one compilation's working memory, for all modules that work with goals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from constrain.errors import UnsupportedSchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.documents.references import References
    from constrain.json_schema.numbers.shape import Number
    from constrain.json_schema.shapes.data import Formula, Goal, Shapes
    from constrain.json_schema.shapes.strings import StringShape
    from constrain.language.policies import Policies
    from constrain.language.tree import Expression


class Goals(Protocol):
    """Goals over the locations of one document, and notes of the compilation: ``keywords.expansion.Expansion``."""

    references: References
    policies: Policies
    pattern_pointers: dict[str, str]
    pattern_expressions: dict[str, Expression]
    warnings: dict[str, str | None]
    numbers: list[tuple[Location, str, Sequence[Number]]]
    long_floats: list[tuple[Location, str, Number]]
    float_bounds: set[Number]
    has_unique_items: bool
    has_integers_by_spelling: bool
    negates_integers: bool
    shortages: dict[Goal, str]
    enumerations: dict[frozenset[tuple[object, ...]], Goal]
    formulas: dict[int, tuple[object, Formula]]
    variants: dict[Location, Any]

    def child(self, parent: Location, token: str, schema: object) -> Goal:
        """Returns the goal of a subschema that applies to a part of the value."""

    def children(self, parent: Location, keyword: str, schemas: object) -> tuple[Goal, ...]:
        """Returns the goals of a list of subschemas."""

    def constant(self, at: Location, value: object) -> Goal:
        """Returns the goal of exactly ``value``, which is part of a constant at ``at``."""

    def conjunction(self, a: Goal, b: Goal) -> Goal:
        """Returns the goal of satisfying both."""

    def negation(self, goal: Goal) -> Goal:
        """Returns the goal of violating ``goal``."""

    def either(self, a: Goal, b: Goal) -> Goal:
        """Returns the goal of satisfying at least one of the two."""

    def pointer_of(self, goal: Goal) -> str:
        """Returns the JSON Pointer of the schema that a goal comes from, for messages."""

    def explore(self, states: int = 1) -> None:
        """Counts states of an automaton of formulas. Raises LimitError."""

    def count_cases(self, questions: int) -> None:
        """Counts questions that split the values of a member into cases. Raises LimitError."""

    def shapes(self, goal: Goal) -> Shapes:
        """Returns the disjunction of shapes that ``goal`` expands to."""

    def in_place(self, parent: Location, token: str, schema: object) -> Shapes:
        """Returns the shapes of a subschema that applies to the same value as ``parent``."""

    def expand(self, location: Location) -> Shapes:
        """Returns the shapes of the schema at ``location``."""

    def go_in_place(self, location: Location, change: int = 1) -> None:
        """Counts one more, or one less, of the schemas around that apply to the same value. Raises LimitError."""

    def strings(self, parent: Location, token: str, schema: object) -> tuple[StringShape, ...]:
        """Returns the string shapes of a subschema of ``parent``, which may contain itself in arrays and objects."""

    def read_keywords(self, location: Location, schema: Mapping[str, object], found: Any) -> None:
        """Collects the assertions of these keywords in ``found``, an ``Assertions``."""

    def note_dialect(self, at: Location) -> None:
        """Records that a schema restricts types."""

    def note_negated(self, shapes: Shapes) -> None:
        """Records shapes whose complement a schema needs."""

    def count(self, at: Location, keyword: str, value: object) -> int:
        """Returns a keyword's value that must be a whole number of at least 0. Raises SchemaError."""


def endless(location: Location, *tokens: str) -> UnsupportedSchemaError:
    """Returns the error for a schema that reaches itself without descending into the value.

    JSON Schema gives such a schema no meaning, so no value can be judged by it.
    """
    return UnsupportedSchemaError(
        "a $ref cycle without meaning: the schema applies itself to the same value again; "
        "move the $ref below a keyword such as properties or items, or leave it out",
        pointer=location.pointer(*tokens),
    )
