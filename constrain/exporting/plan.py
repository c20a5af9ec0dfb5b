"""The definitions of an exported grammar: what each rule and each terminal reads, without names yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.exporting.characters import NotCharactersError
from constrain.exporting.nodes import Name, Text, names_in, rebuilt, size
from constrain.exporting.notations.names import hint_of_rule, hint_of_terminal
from constrain.exporting.reduction import Graph, as_rules
from constrain.exporting.terminals import Terminals
from constrain.language.tree import CharClass

if TYPE_CHECKING:
    from constrain.exporting.draft import Draft
    from constrain.exporting.nodes import Key
    from constrain.language.tree import Expression

_SMALL = 3
"""Leaves of a definition that is written in the place of its name, however often it is needed."""

_SMALL_ONCE = 12
"""Leaves of a definition that is written in the place of its name if it is needed there only."""


_MOST_OPEN = 12
"""Definitions inside one another that are written in the places of their names."""


@dataclass
class Plan:
    """Definitions by key, readable names for them, and where the texts begin.

    ``parts``: whether the automata of terminals become rules, too; otherwise ``Terminals.parts`` has them.
    """

    start: Key
    nodes: dict[Key, Expression] = field(default_factory=dict)
    hints: dict[Key, str] = field(default_factory=dict)
    nullable: bool = False


class Planning:
    """Collects the definitions of a draft, whose rules have no empty texts."""

    def __init__(self, draft: Draft, *, booleans: bool, nullable: bool) -> None:
        self._draft = draft
        self._states = 0
        self.terminals = Terminals(booleans=booleans)
        self.plan = Plan(("rule", 0), nullable=nullable)

    def add_rules(self) -> None:
        """Defines the rules that the start needs, each with rules for the states in which its ways meet."""
        waiting: list[Key] = [self.plan.start]
        seen = set(waiting)
        for key in waiting:
            automaton = self._draft.rules[key]
            hint = hint_of_rule(automaton.name)
            self.plan.hints[key] = hint
            self._add(key, Graph(automaton.arcs, automaton.accepting), hint)
            for arc in automaton.arcs:
                found = {} if arc.label is None else dict.fromkeys(names_in(arc.label))
                new = [each for each in found if each in self._draft.rules and each not in seen]
                seen.update(new)
                waiting += new

    def add_terminals(self) -> None:
        """Defines the terminals that rules name."""
        used = {key: None for node in list(self.plan.nodes.values()) for key in names_in(node) if key[0] == "terminal"}
        for key in used:
            self.plan.nodes[key] = self.terminal(key[1])
            self.plan.hints[key] = hint_of_terminal(self._draft.terminals[key[1]].name)
        for number, node in enumerate(self.terminals.characters):
            self.plan.nodes["character", number] = node
            self.plan.hints["character", number] = "char"

    def terminal(self, index: int) -> Expression:
        """Returns what a terminal reads. Raises LimitError and ExportError with its place."""
        terminal = self._draft.terminals[index]
        where = f" (in the terminal {terminal.name})"
        pointer = terminal.pointer or None
        try:
            return self.terminals.node(terminal.expression)
        except LimitError as error:
            raise LimitError(f"{error.message}{where}", pointer=pointer) from error
        except NotCharactersError:
            self._draft.refuse(
                terminal.pointer or terminal.name,
                f"{self._draft.title} consists of characters, but the text here may have parts of them",
            )

    def add_parts(self) -> None:
        """Defines the automata that terminals name, as rules."""
        for number, (arcs, accepting) in enumerate(self.terminals.parts):
            key: Key = ("part", number)
            user = next((other for other, node in self.plan.nodes.items() if key in names_in(node)), None)
            if user is None:
                continue  # it stood beside an expression without texts
            hint = self.plan.hints[key] = f"{self.plan.hints[user]} part"
            self._add(key, Graph(arcs, accepting), hint)

    def _add(self, key: Key, graph: Graph, hint: str) -> None:
        names: dict[int, Name] = {}

        def name_of(state: int) -> Name:
            if state not in names:
                self._states += 1
                names[state] = Name(("state", self._states))
            return names[state]

        self.plan.nodes[key], states = as_rules(graph, Name(key), name_of)
        for name, node in states:
            self.plan.nodes[name.key] = node
            self.plan.hints[name.key] = f"{hint} {self._begins_with(node)}"

    def _begins_with(self, node: Expression) -> str:
        """Returns the property with which a rest of an object begins; "rest" for other rests."""
        for key in names_in(node):
            name = self._draft.terminals[key[1]].name if key[0] == "terminal" else ""
            if name.startswith("key "):
                return f"from {name.removeprefix('key ')}"
        return "rest"


def inline(plan: Plan, kept: tuple[str, ...] = ()) -> None:
    """Writes short definitions in the places of their names, and drops the names that nothing needs any more.

    ``kept``: kinds of names that stay.
    """
    uses: dict[Key, int] = {}
    for node in plan.nodes.values():
        for key in names_in(node):
            uses[key] = uses.get(key, 0) + 1
    writing = _Inlining(plan, uses, kept)
    done = {plan.start: writing.of(plan.start)}
    waiting = [plan.start]
    for key in waiting:
        for name in names_in(done[key]):
            if name not in done:
                done[name] = writing.of(name)
                waiting.append(name)
    plan.nodes = done


class _Inlining:
    def __init__(self, plan: Plan, uses: dict[Key, int], kept: tuple[str, ...]) -> None:
        self._plan = plan
        self._kept = kept
        self._uses = uses
        self._done: dict[Key, Expression] = {}
        self._open: set[Key] = set()

    def of(self, key: Key) -> Expression:
        """Returns a definition in which short others are written out."""
        if key not in self._done:
            self._open.add(key)
            self._done[key] = self._written(self._plan.nodes[key])
            self._open.discard(key)
        return self._done[key]

    def _written(self, node: Expression) -> Expression:
        if isinstance(node, Name) and node.key != self._plan.start and node.key not in self._open:
            return self._in_place(node.key, node)
        return rebuilt(node, self._written)

    def _in_place(self, key: Key, name: Name) -> Expression:
        """Returns the definition of a name, if it is short, or else the name."""
        kind = key[0]
        length = size(self._plan.nodes[key])
        if (
            kind in self._kept
            or len(self._open) > _MOST_OPEN
            or length > (_SMALL_ONCE if self._uses[key] == 1 else _SMALL)
        ):
            return name
        node = self.of(key)
        if key in names_in(node) or (kind in ("rule", "state") and size(node) > _SMALL):
            return name
        return node if size(node) <= _SMALL_ONCE or isinstance(node, (Text, CharClass)) else name
