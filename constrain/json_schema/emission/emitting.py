"""The interface of the emitter (``emitter``) for the modules that make the automata of arrays and objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.spelling.punctuation import Punctuation
    from constrain.language.grammar import Terminal
    from constrain.language.policies import Policies
    from constrain.language.tree import Expression


RULE_STEPS = 10
"""Compilation steps for one rule; ``EDGE_STEPS``: for each of its edges, kernel included."""

EDGE_STEPS = 4

TERMINAL_STEPS = 15
"""Compilation steps for one terminal, without its expression."""


class UndeclaredKey(NamedTuple):
    """The symbols that read an undeclared key: ``key`` and what stands before and after it, perhaps ``EPSILON``."""

    before: int | None
    key: int
    after: int | None


class Notation(Protocol):
    """The notation of an object or array that is not JSON: the symbols that an ``Emitter`` takes in its rule."""

    def begin_rule(self) -> None:
        """Begins the rule of an object or array."""

    def line_break(self) -> int | None:
        """Returns the symbol of a line break that may be left out; ``EPSILON`` if there are none."""

    def key(self, name: str) -> int:
        """Returns the symbol that reads a declared key and what stands around it."""

    def undeclared_key(self, expression: Expression) -> UndeclaredKey:
        """Returns the symbols that read an undeclared key of ``expression``, and what stands around it."""

    def member(self, key: int, goal: Goal) -> tuple[int, ...]:
        """Returns the symbols that read a member's value, of a goal with a value, behind the key that ``key`` reads."""

    def item(self, goal: Goal) -> tuple[int, ...]:
        """Returns the symbols that read an item of a goal, which must admit at least one value."""


class Emitting(Protocol):
    """An ``Emitter``: gives terminals and goals their symbols."""

    policies: Policies
    punctuation: Punctuation

    @property
    def keys_apart(self) -> bool:
        """Whether keys and colons are separate lexemes in the rule that is being made."""

    def add(self, terminal: Terminal) -> int | None:
        """Adds a terminal to the grammar; returns its symbol, or ``EPSILON`` if it matches the empty text only."""

    def key(self, name: str) -> int:
        """Returns the symbol that reads a declared key and its colon; only the key if ``keys_apart``."""

    def undeclared_key(self, expression: Expression) -> UndeclaredKey:
        """Returns the symbols that read an undeclared key of ``expression``, and its colon."""

    def member(self, key: int, goal: Goal) -> tuple[int, ...]:
        """Returns the symbols that read a member's value, of a goal with a value, behind the key that ``key`` reads."""

    def item(self, goal: Goal) -> tuple[int, ...]:
        """Returns the symbols that read an item of a goal, which must admit at least one value."""
