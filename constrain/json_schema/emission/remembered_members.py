"""Automata of rules for objects whose formulas are tested against memory (``formulas.remembered.members``).

A test of a condition is a walk along its diagram: a state for each node, and edges that read nothing and test the
memory. At most one path leads through the diagram, and it reaches the end if the condition holds::

    { --> offer --test--> "key": value --> following --tests of all parts--> }
            ^                                  |
            '---- , ---- tests: may more come? '
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from constrain.json_schema.emission.unordered_objects import add_key, add_undeclared_key
from constrain.json_schema.formulas.formulas import ALWAYS, NEVER
from constrain.json_schema.formulas.remembered.questions import LEVEL, PRESENT, Key, UndeclaredKeys
from constrain.language.grammar import EPSILON, TEXT_SET, Action, Condition, Edge
from constrain.language.rule_automaton import END, START

if TYPE_CHECKING:
    from constrain.json_schema.emission.emitting import Emitting
    from constrain.json_schema.formulas.remembered.members import RememberedMembers
    from constrain.json_schema.formulas.remembered.questions import ValueCell
    from constrain.kernel import RuleAutomaton

Effects = tuple[tuple[Action, int], ...]


def add_remembered(emitter: Emitting, rule: RuleAutomaton, members: RememberedMembers) -> None:
    """Adds the objects, of which at least one is known to exist, from the start of the rule to its end."""
    _RememberedEmission(emitter, rule, members).add()


class _RememberedEmission:
    def __init__(self, emitter: Emitting, rule: RuleAutomaton, members: RememberedMembers) -> None:
        self.emitter = emitter
        self.rule = rule
        self.decisions = members.decisions
        self.variables = members.variables
        self.viability = members.viability
        self.ways: dict[Key | UndeclaredKeys, list[tuple[int, ValueCell]]] = {}
        self.used: dict[Key, int] = {}  # 0: not read; n: its value is of the nth cell
        self.number: dict[UndeclaredKeys, int] = {}  # the number of members, if needed
        self.texts = -1  # the slot of undeclared keys that were read
        self.broken: dict[int, int] = {}  # by variable: whether some value violates its goal
        for key in members.keys:
            ways = self.viability.ways(key)
            if ways or key.present >= 0:
                self.ways[key] = ways
                self.used[key] = rule.slot(max(len(ways), 1))
        for each in members.classes:
            self.broken.update((variable, rule.slot(1)) for variable in each.valued.values())
            count = len(each.levels) if each.number == inf else int(each.number)
            if count:
                self.number[each] = rule.slot(count)
            ways = self.viability.ways(each)
            if ways:
                self.ways[each] = ways

    def add(self) -> None:
        """Adds the edges that read the objects to the rule."""
        rule, edges, punctuation = self.rule, self.rule.edges, self.emitter.punctuation
        opening, closing, closing_empty, comma = map(
            self.emitter.add,
            (punctuation.open_object, punctuation.close_object, punctuation.close_empty_object, punctuation.comma),
        )
        opened, offer, following = rule.state(), rule.state(), rule.state()
        edges.append(Edge(START, opening, opened))
        edges.append(Edge(opened, EPSILON, offer))
        if self.viability.may_be_empty():
            edges.append(Edge(opened, closing_empty, END))
        for owner, ways in self.ways.items():
            for number, (condition, cell) in enumerate(ways, 1):
                source = self._tested(offer, condition)
                if isinstance(owner, Key):
                    self._add_key(source, owner, number, cell, following)
                else:
                    self._add_undeclared(source, owner, cell, following)
        for source, conditions in self._more(following):
            edges.append(Edge(source, comma, offer, conditions))
        present: tuple[Condition, ...] = ()
        source = following
        for part in self.viability.enough():
            variable, low, high = self.decisions.question(part)
            kind, owner, _ = self.variables[variable]
            if kind == PRESENT and isinstance(owner, Key) and (low, high) == (NEVER, ALWAYS):
                present += (Condition(self.used[owner], 1, None),)
            else:
                source = self._tested(source, part)
        edges.append(Edge(source, closing, END, present))

    def _add_key(self, source: int, key: Key, number: int, cell: ValueCell, target: int) -> None:
        slot, symbol = self.used[key], self.emitter.key(key.name)
        edge = Edge(
            source,
            symbol,
            self.rule.state(),
            (Condition(slot, 0, 0),),
            ((Action.INCREMENT, slot),) * number,
        )
        value = add_key(self.emitter, self.rule, edge)
        self.rule.edges += [Edge(value, each, target) for each in self.emitter.member(symbol, cell.goal)]

    def _add_undeclared(self, source: int, each: UndeclaredKeys, cell: ValueCell, target: int) -> None:
        rule = self.rule
        if self.texts < 0:
            self.texts = rule.slot(TEXT_SET)
        effects: Effects = ((Action.REMEMBER, self.texts),)
        if each in self.number:
            effects += ((Action.INCREMENT, self.number[each]),)
        effects += tuple((Action.INCREMENT, self.broken[variable]) for variable, answer in cell.answers if not answer)
        key = self.emitter.undeclared_key(each.shared.keys.expression)
        edge = Edge(source, key.key, rule.state(), self._keys_left(each), effects, self.texts)
        value = add_undeclared_key(rule, key, edge)
        rule.edges += [Edge(value, symbol, target) for symbol in self.emitter.member(key.key, cell.goal)]

    def _keys_left(self, each: UndeclaredKeys) -> tuple[Condition, ...]:
        return () if each.number == inf else (Condition(self.number[each], 0, int(each.number) - 1),)

    def _more(self, following: int) -> list[tuple[int, tuple[Condition, ...]]]:
        """Returns the states where another member may come, each with its conditions."""
        needed: dict[tuple[int, tuple[Condition, ...]], None] = {}
        for owner, ways in self.ways.items():
            left = (Condition(self.used[owner], 0, 0),) if isinstance(owner, Key) else self._keys_left(owner)
            needed.update(dict.fromkeys((condition, left) for condition, _ in ways))
        if (ALWAYS, ()) in needed:
            return [(following, ())]
        return [(self._tested(following, condition), left) for condition, left in needed]

    # Tests.

    def _tested(self, source: int, condition: int) -> int:
        """Returns the state after the condition tested true."""
        if condition == ALWAYS:
            return source
        target = self.rule.state()
        states = {condition: source, ALWAYS: target}
        stack = [condition]
        while stack:
            node = stack.pop()
            variable, low, high = self.decisions.question(node)
            for after, answer in ((low, False), (high, True)):
                if after == NEVER:
                    continue
                guards = self._guards(variable, answer)
                if guards and after not in states:
                    states[after] = self.rule.state()
                    stack.append(after)
                self.rule.edges += [Edge(states[node], EPSILON, states[after], (guard,)) for guard in guards]
        return target

    def _guards(self, variable: int, answer: bool) -> list[Condition]:  # noqa: FBT001  (a truth value is what it is)
        """Returns the conditions under each of which memory gives this answer."""
        kind, owner, number = self.variables[variable]
        if isinstance(owner, Key):
            slot = self.used[owner]
            if kind == PRESENT:
                return [Condition(slot, 1, None) if answer else Condition(slot, 0, 0)]
            cells = [cell for _, cell in self.ways.get(owner, ())]
            return _runs(slot, [n for n, cell in enumerate(cells, 1) if (variable, answer) in cell.answers])
        slot = self.number[owner] if kind == LEVEL else self.broken[variable]
        least = number if kind == LEVEL else 1
        return [Condition(slot, least, None) if answer == (kind == LEVEL) else Condition(slot, 0, least - 1)]


def _runs(slot: int, numbers: list[int]) -> list[Condition]:
    """Returns the conditions under each of which a counter has one of these numbers, given in ascending order."""
    found: list[Condition] = []
    for number in numbers:
        if found and found[-1].maximum == number - 1:
            found[-1] = found[-1]._replace(maximum=number)
        else:
            found.append(Condition(slot, number, number))
    return found
