"""Rules of one table: its columns, and the expressions and conditions that are made of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.formats.expressions import date_of
from constrain.language.tree import Alternation, CharClass, Complement, Intersection, Literal, LiteralSet, Repetition
from constrain.queries.automata import Many, Part, Writer, optional
from constrain.queries.kinds import COMPARABLE, NUMBERS, TEXTS, Dialect, Kind
from constrain.queries.names import FUNCTIONS, reserved, spell
from constrain.regex.builders import optional as maybe
from constrain.regex.builders import sequence, tree

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from constrain.language.tree import Expression
    from constrain.queries.scopes import Relation

MAX_TEXT = 200
"""Characters of one text in a query."""

MAX_VALUES = 30
"""Values after one IN."""

_PARTS = {"YEAR": ("%Y", "YYYY"), "MONTH": ("%m", "MM"), "DAY": ("%d", "DD"), "": ("%Y-%m", "YYYY-MM")}
"""Parts of a date: their names in EXTRACT, and their formats in SQLite and PostgreSQL."""


class Literals(NamedTuple):
    """Symbols of terminals that all rules share.

    Attributes:
        number: a number; ``unsigned``: a small one to calculate with, without a sign, which could begin a comment.
        divisor: a whole number but 0; ``digit``: places of ROUND.
        text: a text; ``pattern``: one for LIKE, without the backslash, at which PostgreSQL's patterns must not end.
        date, datetime, time: texts of these kinds.
        alias: a name for a column of the result, which is no name of a column.
        compare, logic: operators.
    """

    number: int
    unsigned: int
    divisor: int
    digit: int
    text: int
    pattern: int
    date: int
    datetime: int
    time: int
    alias: int
    compare: int
    logic: int


def literals(writer: Writer, names: Collection[str]) -> Literals:
    """Returns the symbols. ``names``: those of all columns."""
    day = Intersection((date_of("[0-9]{4}", "1[26]|2[048]"), tree("[12][0-9-]{9}")))  # of the years 1000 to 2999
    time = tree("(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]")
    taken = {name.lower() for name in names} | reserved() | FUNCTIONS
    alias = Intersection((tree("[a-z_][a-z0-9_]{0,39}"), Complement(LiteralSet(tuple(map(str.encode, sorted(taken)))))))
    return Literals(
        writer.terminal("number", tree("-?(?:0|[1-9][0-9]{0,8})(?:\\.[0-9]{1,4})?")),
        writer.terminal("unsigned number", tree("(?:0|[1-9][0-9]{0,4})(?:\\.[0-9]{1,4})?")),
        writer.terminal("divisor", tree("[1-9][0-9]{0,8}")),
        writer.terminal("digit", tree("[0-4]")),
        writer.terminal("text", _quoted()),
        writer.terminal("pattern", _quoted("\\")),
        writer.terminal("date", sequence("'", day, "'")),
        writer.terminal("date and time", sequence("'", day, maybe(" ", time), "'")),
        writer.terminal("time", sequence("'", time, "'")),
        writer.terminal("alias", alias),
        writer.words(" = ", " <> ", " < ", " <= ", " > ", " >= "),
        writer.words(" AND ", " OR "),
    )


def _quoted(without: str = "") -> Expression:
    """Returns a text in single quotes, without controls and the given character."""
    excluded = sorted({0x27, 0x7F, *map(ord, without)})
    bounds = [0x20, *(bound for code in excluded for bound in (code - 1, code + 1)), 0x10FFFF]
    character = CharClass(tuple((low, high) for low, high in zip(bounds[::2], bounds[1::2], strict=True)))
    unit = Alternation((character, Literal(b"''")))
    return sequence("'", Repetition(unit, 0, MAX_TEXT), "'")


class RelationRules:
    """The rules of a table, each made when it is first asked for; None where no column is of the kind it needs.

    ``bare``: names of columns that may stand without the name of the table.
    """

    def __init__(
        self, writer: Writer, shared: Literals, dialect: Dialect, relation: Relation, bare: Collection[str]
    ) -> None:
        self._writer = writer
        self._shared = shared
        self._dialect: Dialect = dialect
        self.relation = relation
        self._bare = bare
        self._columns: dict[tuple[tuple[Kind, ...], bool], int | None] = {}

    def spell(self, name: str) -> str:
        """Returns a name as the dialect has it."""
        return spell(name, self._dialect)

    @property
    def table(self) -> Part:
        """Returns the table as FROM has it."""
        table = self.spell(self.relation.table.name)
        return (table, f" AS {self.spell(self.relation.alias)}") if self.relation.alias else table

    def qualified(self, names: Sequence[str]) -> Part:
        """Returns columns, any one of them, with the name of the table."""
        return (f"{self.spell(self.relation.name)}.", [self.spell(name) for name in names])

    def column(self, *kinds: Kind, in_order: bool = False) -> int | None:
        """Returns a column of one of these kinds. ``in_order``: for ORDER BY, where names of results come first."""
        if (kinds, in_order) not in self._columns:
            names = [column.name for column in self.relation.table.columns if column.kind in kinds]
            hidden = FUNCTIONS | {"?column?"} if in_order else ()
            parts = self._named(names, hidden)
            self._columns[kinds, in_order] = self._rule("/".join(kinds), *parts) if names else None
        return self._columns[kinds, in_order]

    def _named(self, names: Sequence[str], hidden: Collection[str] = ()) -> list[Part]:
        """Returns columns, any one of them, with the name of the table, or without it where that is enough."""
        bare = [self.spell(name) for name in names if name in self._bare and name.lower() not in hidden]
        return [self.qualified(names), *bare]

    def _rule(self, name: str, *alternatives: Part) -> int:
        return self._writer.rule(f"{name} of {self.relation.name}", *alternatives)

    def _calls(self, begin: Part, *arguments: Part | None) -> list[Part]:
        """Returns calls of a function with each of the arguments that exist."""
        return [(begin, argument, ")") for argument in arguments if argument is not None]

    @cached_property
    def any_column(self) -> int:
        """Returns any column."""
        made = self.column(*COMPARABLE, "other")
        assert made is not None
        return made

    @cached_property
    def number(self) -> int | None:
        """Returns a number that depends on a column.

        A number that stands in it is at its end, and no divisor is 0, so that no part is computed beforehand and
        fails.
        """
        column, text, shared = self.column(*NUMBERS), self.column(*TEXTS), self._shared
        base: list[Part] = [*self._calls("LENGTH(", text)]
        if self._dialect == "postgresql" and (date := self.column("date", "datetime")) is not None:
            base += [(f"EXTRACT({part} FROM ", date, ")") for part in _PARTS if part]
        operands = list(base)
        if column is not None:
            inner: list[Part] = [
                ([shared.unsigned, column], [" + ", " - "], column),
                (column, [" + ", " - "], shared.unsigned),
            ]
            operands += [column, *self._calls("ABS(", column), ("COALESCE(", column, ", ", shared.number, ")")]
            base, operands = list(operands), [*operands, ("(", inner, ")")]
        if not base:
            return None
        sign = self._writer.words(" + ", " - ", " * ")
        more: list[Part] = [(sign, operands)]
        if column is not None:
            more.append((" / NULLIF(", column, ", ", "0", ")"))
        last = optional([(sign, shared.unsigned), (" / ", shared.divisor)])
        return self._rule("number", (base, optional(Many(more, (), 2)), last))

    @cached_property
    def text(self) -> int | None:
        """Returns a text that depends on a column."""
        column, date, shared = self.column(*TEXTS), self.column("date", "datetime"), self._shared
        base: list[Part] = []
        if column is not None:
            base += [column, *self._calls(self._writer.words("UPPER(", "LOWER("), column)]
            base.append(("COALESCE(", column, ", ", shared.text, ")"))
        if date is not None and self._dialect == "sqlite":
            base.append((self._writer.words(*(f"STRFTIME('{each}', " for each, _ in _PARTS.values())), date, ")"))
        elif date is not None:
            base.append(
                ("TO_CHAR(", date, ", ", self._writer.words(*(f"'{each}'" for _, each in _PARTS.values())), ")")
            )
        if not base:
            return None
        added: list[Part] = [shared.text] if column is None else [shared.text, column]
        return self._rule("text", (base, optional(Many((" || ", added), (), 3))))

    @cached_property
    def item(self) -> int | None:
        """Returns a column of a result that can be compared, with or without a name of its own."""
        parts = [part for part in (self.column(*COMPARABLE), self.number, self.text) if part is not None]
        return self._result("item", parts)

    @cached_property
    def other(self) -> int | None:
        """Returns a column of a result that cannot be compared."""
        column = self.column("other")
        return None if column is None else self._result("other item", [column])

    def _result(self, name: str, parts: Sequence[Part]) -> int | None:
        return self._rule(name, (list(parts), optional(" AS ", self._shared.alias))) if parts else None

    @cached_property
    def measure(self) -> int:
        """Returns an aggregate that is a number."""
        words, exact = self._writer.words, self.number if self._dialect == "sqlite" else self.column("exact")
        key = self.column(*COMPARABLE)
        counted: list[Part] = [self.any_column] if key is None else [self.any_column, ("DISTINCT ", key)]
        found = [*self._calls(words("SUM(", "AVG(", "MIN(", "MAX("), self.number), ("COUNT(", counted, ")")]
        if exact is not None:
            found.append(("ROUND(", words("SUM(", "AVG("), exact, ")", ", ", self._shared.digit, ")"))
        return self._rule("measure", *found)

    def _extremes(self, argument: Part | None) -> list[Part]:
        return self._calls(self._writer.words("MIN(", "MAX("), argument)

    @cached_property
    def aggregate(self) -> int:
        """Returns any aggregate."""
        others = [self.text, *(self.column(kind) for kind, _ in self._moments)]
        return self._rule("aggregate", self.measure, *(each for other in others for each in self._extremes(other)))

    @cached_property
    def aggregate_item(self) -> int:
        """Returns a column of a result that is an aggregate."""
        return self._rule("aggregate item", (self.aggregate, optional(" AS ", self._shared.alias)))

    @cached_property
    def having(self) -> int:
        """Returns a condition of an aggregate."""
        shared = self._shared
        found: list[Part] = [(self.measure, shared.compare, shared.number)]
        found += [(each, shared.compare, shared.text) for each in self._extremes(self.text)]
        for kind, literal in self._moments:
            found += [(each, shared.compare, literal) for each in self._extremes(self.column(kind))]
        return self._rule("condition of an aggregate", *found)

    @property
    def _moments(self) -> tuple[tuple[Kind, int], ...]:
        return ("date", self._shared.date), ("datetime", self._shared.datetime), ("time", self._shared.time)

    def _listed(self, left: Part, literal: int) -> Part:
        return (left, self._writer.words(" IN (", " NOT IN ("), Many(literal, ", ", MAX_VALUES), ")")

    @cached_property
    def condition(self) -> int:
        """Returns a condition without a subquery."""
        shared, words = self._shared, self._writer.words
        found: list[Part] = [(self.any_column, words(" IS NULL", " IS NOT NULL"))]
        if self.number is not None:
            column = self.column(*NUMBERS)
            right = shared.number if column is None else [shared.number, column]
            found += [(self.number, shared.compare, right), self._listed(self.number, shared.number)]
            found.append((self.number, " BETWEEN ", shared.number, " AND ", shared.number))
        if self.text is not None:
            found += [(self.text, shared.compare, shared.text), self._listed(self.text, shared.text)]
            found.append((self.text, words(" LIKE ", " NOT LIKE "), shared.pattern))
        for kind, literal in self._moments:
            if (column := self.column(kind)) is not None:
                found += [(column, shared.compare, [literal, column]), self._listed(column, literal)]
                found.append((column, " BETWEEN ", literal, " AND ", literal))
        if (flag := self.column("bool")) is not None:
            found.append((flag, words(" = TRUE", " = FALSE")))
        for column_ in self.relation.table.columns:
            if column_.values:
                texts = words(*("'" + value.replace("'", "''") + "'" for value in column_.values))
                found.append((self._named([column_.name]), words(" = ", " <> "), texts))
        return self._rule("condition", *found)
