"""Rules of a grammar as automata whose edges are nodes, and the edges' memory while it is not yet written out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from constrain.exporting.nodes import Name, Token, repeat
from constrain.language.emptiness import reached
from constrain.language.grammar import EPSILON
from constrain.language.special import terminal_special

if TYPE_CHECKING:
    from constrain.language.grammar import Action, Condition, Grammar, Rule
    from constrain.language.tree import Expression


class Arc(NamedTuple):
    """An edge of a rule: it reads a node, or nothing; the rest is that of ``language.grammar.Edge``."""

    source: int
    label: Expression | None
    target: int
    conditions: tuple[Condition, ...] = ()
    actions: tuple[tuple[Action, int], ...] = ()
    excluding: int = -1
    distinct: int = -1

    @property
    def has_memory(self) -> bool:
        """Whether the edge tests or changes memory."""
        return bool(self.conditions or self.actions) or self.excluding >= 0 or self.distinct >= 0


@dataclass
class Automaton:
    """One rule: ``start`` has no number of its own, it is state 0."""

    name: str
    arcs: list[Arc]
    accepting: set[int]
    slots: tuple[int, ...] = ()

    @property
    def states(self) -> int:
        """A number above those of all states."""
        return 1 + max((max(arc.source, arc.target) for arc in self.arcs), default=max(self.accepting, default=0))

    def out(self) -> dict[int, list[Arc]]:
        """Returns the edges by the state that they leave."""
        found: dict[int, list[Arc]] = defaultdict(list)
        for arc in self.arcs:
            found[arc.source].append(arc)
        return found

    def trim(self) -> None:
        """Drops the edges that stand on no way from the start to an accepting state."""
        onward: dict[int, set[int]] = defaultdict(set)
        backward: dict[int, set[int]] = defaultdict(set)
        for arc in self.arcs:
            onward[arc.source].add(arc.target)
            backward[arc.target].add(arc.source)
        begun, ending = reached(onward, {0}), reached(backward, self.accepting)
        useful = begun & ending
        self.arcs = [arc for arc in self.arcs if arc.source in useful and arc.target in useful]
        self.accepting &= useful


def rule_automaton(rule: Rule, grammar: Grammar) -> Automaton:
    """Returns the automaton of a rule; it names terminals ``("terminal", index)`` and rules ``("rule", index)``."""
    arcs = []
    for edge in rule.edges:
        label: Expression | None = None
        if edge.symbol is not EPSILON:
            label = Name(("rule", ~edge.symbol)) if edge.symbol < 0 else terminal_label(grammar, edge.symbol)
        arcs.append(Arc(edge.source, label, edge.target, edge.conditions, edge.actions, edge.excluding, edge.distinct))
    return Automaton(rule.name, arcs, set(rule.accepting), rule.slots)


def terminal_label(grammar: Grammar, index: int) -> Expression:
    """Returns the node that reads a terminal."""
    special = terminal_special(grammar.terminals[index])
    return Name(("terminal", index)) if special is None else Token(special)


def counted(part: Expression, minimum: int, maximum: int | None) -> list[Expression | None]:
    """Returns the labels of the edges that together read a part so many times; the part has no empty text."""
    if maximum == 0:
        return [None]
    some = repeat(part, max(minimum, 1), maximum)
    return [None, some] if minimum == 0 else [some]
