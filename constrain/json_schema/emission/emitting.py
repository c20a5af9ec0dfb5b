"""What the makers of automata ask of the emitter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from constrain.json_schema.policies import Policies
    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.spelling.punctuation import Punctuation
    from constrain.language.grammar import Terminal
    from constrain.language.tree import Expression


class Emitting(Protocol):
    """An ``Emitter``: it gives terminals and goals their symbols.

    ``keys_apart``: declared keys are read apart from their colons in the rule that is being made.
    """

    policies: Policies
    punctuation: Punctuation
    keys_apart: bool

    def add(self, terminal: Terminal) -> int | None:
        """The symbol of a terminal that may have no text at all."""

    def key(self, name: str) -> int:
        """The symbol of a declared key, its colon included unless ``keys_apart``."""

    def undeclared_key(self, expression: Expression) -> int:
        """The symbol of a class of undeclared keys, without the colon."""

    def symbols(self, goal: Goal) -> tuple[int, ...]:
        """The symbols that read a value of a productive goal."""
