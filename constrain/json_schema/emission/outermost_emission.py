"""The outermost object of a call in a form of its own (``arguments.Outermost``): its keys, and rules for its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from constrain.errors import UnsupportedSchemaError
from constrain.json_schema.shapes.data import NO_SHAPES
from constrain.language.grammar import EPSILON, Edge, Rule
from constrain.language.rule_automaton import END, START

if TYPE_CHECKING:
    from constrain.json_schema.emission.arguments import Outermost
    from constrain.json_schema.emission.emitting import UndeclaredKey
    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.shapes.strings import StringShape
    from constrain.language.grammar import Terminal
    from constrain.language.tree import Expression


class Host(Protocol):
    """An ``Emitter``: holds the grammar, and makes the rules of JSON."""

    def add(self, terminal: Terminal) -> int | None:
        """Adds a terminal to the grammar; returns its symbol, or ``EPSILON`` if it matches the empty text only."""

    def strings(self, goal: Goal) -> tuple[StringShape, ...]:
        """Returns the strings of a goal that the grammar contains."""

    def symbols(self, goal: Goal) -> tuple[int, ...]:
        """Returns the symbols that read a value of a goal as JSON."""

    def reserve(self) -> int:
        """Returns the number of a rule to be made."""

    def set_rule(self, number: int, rule: Rule) -> None:
        """Makes a reserved rule."""


class OutermostEmission:
    """The symbols of one form in one grammar; ``raw`` are those of strings without quotes, ``keys`` those of keys."""

    def __init__(self, host: Host, form: Outermost) -> None:
        self.raw: set[int] = set()
        self.keys: dict[str, int] = {}
        self._host = host
        self._form = form
        self._values: dict[Goal, tuple[int, ...]] = {}

    def begin_rule(self) -> None:
        """Begins the rule of the object."""

    def line_break(self) -> int | None:
        """Returns ``EPSILON``: there are no line breaks that may be left out."""
        return EPSILON

    def key(self, name: str) -> int:
        """Returns the symbol that reads a declared key."""
        symbol = self.keys.get(name)
        if symbol is None:
            symbol = self.keys[name] = self._symbol(self._form.key_terminal(name))
        return symbol

    def undeclared_key(self, expression: Expression) -> UndeclaredKey:  # noqa: ARG002 - as other notations
        """Raises UnsupportedSchemaError."""
        raise UnsupportedSchemaError(
            "this form cannot express arguments that the schema does not declare by name", pointer=""
        )

    def member(self, key: int, goal: Goal) -> tuple[int, ...]:  # noqa: ARG002 - as other notations
        """Returns the symbols that read a value of the object and its end."""
        symbols = self._values.get(goal)
        if symbols is None:
            symbols = self._values[goal] = self._value(goal)
        return symbols

    def item(self, goal: Goal) -> tuple[int, ...]:
        """Returns the symbols of an item, though this form has no arrays."""
        return self._host.symbols(goal)

    def _value(self, goal: Goal) -> tuple[int, ...]:
        shapes = goal.shapes
        assert shapes is not None
        if self._form.raw_strings and shapes.strings and shapes == NO_SHAPES._replace(strings=shapes.strings):
            symbol = self._symbol(self._form.raw(self._host.strings(goal)))
            self.raw.add(symbol)
            return (symbol,)
        symbols = self._host.symbols(goal)
        if not self._form.behind_value:
            return symbols
        behind = self._symbol(self._form.behind_terminal())
        number = self._host.reserve()
        edges = [Edge(START, symbol, 2) for symbol in symbols]
        self._host.set_rule(number, Rule("argument", (*edges, Edge(2, behind, END)), (END,)))
        return (~number,)

    def _symbol(self, terminal: Terminal) -> int:
        symbol = self._host.add(terminal)
        assert symbol is not EPSILON
        return symbol
