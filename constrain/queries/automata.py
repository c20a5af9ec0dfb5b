"""Rules in a short notation: a text is a terminal, a tuple a sequence, a list a choice, an ``int`` a symbol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from constrain.language.grammar import EPSILON, Action, Condition, Edge, GrammarBuilder
from constrain.language.tree import Literal, LiteralSet

if TYPE_CHECKING:
    from collections.abc import Hashable

    from constrain.language.tree import Expression

Part: TypeAlias = "str | int | tuple[Part, ...] | list[Any] | Many"


class Many(NamedTuple):
    """A part once or several times, up to ``most``, with one of the separators between them.

    Not inside a part that repeats.
    """

    part: Part
    separator: Part
    most: int


class Automaton:
    """The automaton of one rule while it is written. States have names of any kind; ``start`` and ``end`` are known."""

    START, END = "start", "end"

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._states: dict[Hashable, int] = {self.START: 0, self.END: 1}
        self.edges: list[Edge] = []
        self.slots: list[int] = []

    def state(self, name: Hashable) -> int:
        """Returns the number of the state with this name."""
        return self._states.setdefault(name, len(self._states))

    def _new(self) -> int:
        return self.state(len(self._states))

    def add(
        self,
        source: Hashable,
        part: Part,
        target: Hashable,
        conditions: tuple[Condition, ...] = (),
        actions: tuple[tuple[Action, int], ...] = (),
    ) -> None:
        """Adds a way from one state to another; conditions and actions are of its first edge."""
        self._add(self.state(source), part, self.state(target), conditions, actions)

    def _add(
        self,
        source: int,
        part: Part,
        target: int,
        conditions: tuple[Condition, ...] = (),
        actions: tuple[tuple[Action, int], ...] = (),
    ) -> None:
        if isinstance(part, str | int):
            symbol = self._writer.words(part) if isinstance(part, str) else part
            self.edges.append(Edge(source, symbol, target, conditions, actions))
            return
        if conditions or actions or part == ():
            between = self._new() if part else target
            self.edges.append(Edge(source, EPSILON, between, conditions, actions))
            source = between
        if isinstance(part, Many):
            slot = len(self.slots)
            self.slots.append(part.most)
            before, behind, again = self._new(), self._new(), self._new()
            self.edges.append(Edge(source, EPSILON, before))
            self._add(before, part.part, behind)
            once_more = (Condition(slot, 0, part.most - 2),), ((Action.INCREMENT, slot),)
            self.edges.append(Edge(behind, EPSILON, again, *once_more))
            self._add(again, part.separator, before)
            self.edges.append(Edge(behind, EPSILON, target))
        elif isinstance(part, list):
            for each in part:
                self._add(source, each, target)
        else:
            for position, each in enumerate(part, 1):
                behind = target if position == len(part) else self._new()
                self._add(source, each, behind)
                source = behind


class Writer:
    """Writes the rules of a grammar."""

    def __init__(self) -> None:
        self._builder = GrammarBuilder()
        self._words: dict[tuple[str, ...], int] = {}
        self.build = self._builder.build
        self.declare = self._builder.rule

    def words(self, *texts: str) -> int:
        """Returns the symbol of a terminal of one text, or of any one of several."""
        symbol = self._words.get(texts)
        if symbol is None:
            spelled = tuple(text.encode() for text in texts)
            made = LiteralSet(spelled) if len(texts) > 1 else Literal(*spelled)
            symbol = self._words[texts] = self._builder.terminal("|".join(texts), made)
        return symbol

    def terminal(self, name: str, expression: Expression) -> int:
        """Returns the symbol of a terminal."""
        return self._builder.terminal(name, expression)

    def rule(self, name: str, *alternatives: Part) -> int:
        """Returns the symbol of a new rule with these alternatives."""
        symbol = self.declare(name)
        self.define(symbol, *alternatives)
        return symbol

    def define(self, symbol: int, *alternatives: Part) -> None:
        """Defines a rule by its alternatives."""
        automaton = Automaton(self)
        automaton.add(Automaton.START, list(alternatives), Automaton.END)
        self.finish(symbol, automaton)

    def finish(self, symbol: int, automaton: Automaton) -> None:
        """Defines a rule by its automaton."""
        self._builder.define_automaton(symbol, automaton.edges, (1,), automaton.slots)


def optional(*parts: Part) -> Part:
    """Returns a sequence that may be left out."""
    return [(), parts]
