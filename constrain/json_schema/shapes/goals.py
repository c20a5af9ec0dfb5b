"""What all that works with goals asks of one compilation's working memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from constrain.errors import UnsupportedSchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.documents.references import References
    from constrain.json_schema.policies import Policies
    from constrain.json_schema.shapes.data import Formula, Goal, Shapes
    from constrain.json_schema.shapes.strings import StringShape
    from constrain.json_schema.spelling.cells import Number
    from constrain.language.tree import Expression


class Goals(Protocol):
    """Goals over the locations of one document, and what was noticed on the way: ``keywords.expansion.Expansion``."""

    references: References
    policies: Policies
    pattern_pointers: dict[str, str]
    pattern_expressions: dict[str, Expression]
    warnings: dict[str, None]
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
        """The goal of a subschema that applies to a part of the value."""

    def children(self, parent: Location, keyword: str, schemas: object) -> tuple[Goal, ...]:
        """The goals of a list of subschemas."""

    def constant(self, at: Location, value: object) -> Goal:
        """The goal of being exactly ``value``, which is part of a constant at ``at``."""

    def conjunction(self, a: Goal, b: Goal) -> Goal:
        """The goal of satisfying both."""

    def negation(self, goal: Goal) -> Goal:
        """The goal of violating ``goal``."""

    def either(self, a: Goal, b: Goal) -> Goal:
        """The goal of satisfying at least one of the two."""

    def pointer_of(self, goal: Goal) -> str:
        """Where a goal comes from, for messages."""

    def explore(self, states: int = 1) -> None:
        """Counts states of an automaton that is made of formulas."""

    def count_cases(self, questions: int) -> None:
        """Counts the questions by which values of a member are split into cases."""

    def shapes(self, goal: Goal) -> Shapes:
        """The disjunction of shapes that ``goal`` stands for."""

    def in_place(self, parent: Location, token: str, schema: object) -> Shapes:
        """The shapes of a subschema that applies to the same value as ``parent``."""

    def expand(self, location: Location) -> Shapes:
        """The shapes of the schema at ``location``."""

    def strings(self, parent: Location, token: str, schema: object) -> tuple[StringShape, ...]:
        """The strings that satisfy a subschema, which may contain itself."""

    def read_keywords(self, location: Location, schema: Mapping[str, object], found: Any) -> None:
        """Collects what these keywords assert; ``found`` is of ``keywords.assertions``."""

    def note_dialect(self, at: Location) -> None:
        """Notes that a schema restricts types."""

    def note_negated(self, shapes: Shapes) -> None:
        """Notes what is asked for the opposite of."""

    def count(self, at: Location, keyword: str, value: object) -> int:
        """A keyword's value that must be a whole number of at least 0."""


def endless(location: Location, *tokens: str) -> UnsupportedSchemaError:
    """The error for a schema that reaches itself without descending into the value.

    JSON Schema does not say what such a schema means, so that nobody can say whether a value satisfies it.
    """
    return UnsupportedSchemaError(
        "a $ref cycle that says nothing: the schema applies itself to the same value again; "
        "let the $ref stand below a keyword such as properties or items, or leave it out",
        pointer=location.pointer(*tokens),
    )
