"""Automata of rules from automata of combinations (``formulas.shape_automaton``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from constrain.json_schema.emission.unordered_objects import add_key, add_undeclared_key
from constrain.json_schema.formulas.independent_keys import IndependentKeys
from constrain.json_schema.formulas.shape_automaton import OPENED, Read, ShapeAutomaton
from constrain.json_schema.shapes.data import ArrayShape
from constrain.language.grammar import EPSILON, TEXT_SET, VALUE_SET, Action, Condition, Edge
from constrain.language.rule_automaton import END, START

if TYPE_CHECKING:
    from constrain.json_schema.emission.emitting import Emitting
    from constrain.json_schema.formulas.remembered.members import RememberedMembers
    from constrain.json_schema.shapes.data import Combination, ObjectShape
    from constrain.kernel import RuleAutomaton


def add_combined(emitter: Emitting, rule: RuleAutomaton, shape: Combination) -> None:
    """Adds edges from START to END that read the values of a combination, which must admit at least one."""
    automaton = shape.automaton
    if isinstance(automaton, ShapeAutomaton):
        _AutomatonEmission(emitter, rule, automaton, shape.base).add()
    elif isinstance(automaton, IndependentKeys):
        from constrain.json_schema.emission.independent_keys import add_independent

        add_independent(emitter, rule, automaton)
    else:
        from constrain.json_schema.emission.remembered_members import add_remembered

        add_remembered(emitter, rule, cast("RememberedMembers", automaton))


class _AutomatonEmission:
    def __init__(
        self, emitter: Emitting, rule: RuleAutomaton, automaton: ShapeAutomaton, base: ArrayShape | ObjectShape
    ) -> None:
        self.emitter = emitter
        self.rule = rule
        self.automaton = automaton
        self.array = array = isinstance(base, ArrayShape)
        useful = automaton.useful()
        self.states = {state: rule.state() for state in sorted(useful)}
        self.reads = [
            read for read in automaton.reads if read.source in useful and read.target in useful and read.goal.productive
        ]
        self.distinct = rule.slot(VALUE_SET) if isinstance(base, ArrayShape) and base.unique else -1
        self.used: dict[str, int] = {}  # slots that record keys as read, with keys in any order
        self.texts = -1  # the slot of undeclared keys that were read
        if any(isinstance(read.label, int) for read in self.reads):
            self.texts = rule.slot(TEXT_SET)
        if automaton.any_order and not array:
            labels = dict.fromkeys(read.label for read in self.reads if isinstance(read.label, str))
            self.used = {label: rule.slot(1) for label in labels}

    def add(self) -> None:
        """Adds the edges that read the arrays or objects of the automaton to the rule."""
        edges, punctuation, add = self.rule.edges, self.emitter.punctuation, self.emitter.add
        brackets = (
            (punctuation.open_array, punctuation.close_array, punctuation.close_empty_array)
            if self.array
            else (punctuation.open_object, punctuation.close_object, punctuation.close_empty_object)
        )
        opening, closing, closing_empty = map(add, brackets)
        edges.append(Edge(START, opening, self.states[OPENED]))
        for state in sorted(self.automaton.closing & self.states.keys()):
            edges.append(Edge(self.states[state], closing_empty if state == OPENED else closing, END))
        for source, target in self.automaton.skips:
            if source in self.states and target in self.states:
                edges.append(Edge(self.states[source], EPSILON, self.states[target]))
        offered: dict[int, list[Read]] = {}
        for read in self.reads:
            offered.setdefault(read.source, []).append(read)
            self._add_read(read)
        comma = add(punctuation.comma)
        for source, target in self.automaton.go_on:
            if source in self.states and target in self.states:
                symbol = EPSILON if source == OPENED else comma
                for conditions in self._something_left(offered.get(target, [])):
                    edges.append(Edge(self.states[source], symbol, self.states[target], conditions))

    def _something_left(self, reads: list[Read]) -> list[tuple[Condition, ...]]:
        """Returns the conditions under each of which a key for one of the reads is left."""
        slots = {self.used.get(read.label, -1) if isinstance(read.label, str) else -1 for read in reads}
        if not self.used or -1 in slots:
            return [()]
        return [(Condition(slot, 0, 0),) for slot in sorted(slots)]

    def _add_read(self, read: Read) -> None:
        edges, label = self.rule.edges, read.label
        source, target = self.states[read.source], self.states[read.target]
        if label is None:
            symbols = self.emitter.item(read.goal)
            edges += [Edge(source, symbol, target, distinct=self.distinct) for symbol in symbols]
            return
        if isinstance(label, str):
            conditions: tuple[Condition, ...] = ()
            actions: tuple[tuple[Action, int], ...] = ()
            if label in self.used:
                conditions = (Condition(self.used[label], 0, 0),)
                actions = ((Action.INCREMENT, self.used[label]),)
            key = self.emitter.key(label)
            value = add_key(self.emitter, self.rule, Edge(source, key, self.rule.state(), conditions, actions))
        else:
            undeclared = self.emitter.undeclared_key(self.automaton.classes[label].expression)
            key = undeclared.key
            edge = Edge(source, key, self.rule.state(), (), ((Action.REMEMBER, self.texts),), self.texts)
            value = add_undeclared_key(self.rule, undeclared, edge)
        edges += [Edge(value, symbol, target) for symbol in self.emitter.member(key, read.goal)]
