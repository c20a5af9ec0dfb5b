"""Automata of rules for objects with groups of independent keys (``formulas.independent_keys``).

In schema order, chains of states go over the keys: ``first`` before any member, ``following`` after one. Both lead to
``expected``, where the key must come; a comma is read only if the key may come::

    first 0 --> first 1 --> ... --> first n --}--> END     (each step skips a key)
       |           |
       v           v
    expected 0  expected 1  --key, value--> following 2 --> ... --> following n --}--> END
                   ^                             |
                   '--------- , (if it may) -----'  (to expected 2 and so on)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.json_schema.emission.unordered_objects import add_key, add_undeclared_key
from constrain.language.grammar import EPSILON, TEXT_SET, Action, Condition, Edge
from constrain.language.rule_automaton import END, START

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.emission.emitting import Emitting
    from constrain.json_schema.formulas.independent_keys import Change, IndependentKeys
    from constrain.json_schema.shapes.data import Goal
    from constrain.kernel import RuleAutomaton

Guard = tuple[Condition, ...]
Effects = tuple[tuple[Action, int], ...]


def add_independent(emitter: Emitting, rule: RuleAutomaton, keys: IndependentKeys) -> None:
    """Adds the objects, of which at least one is known to exist, from the start of the rule to its end."""
    _IndependentEmission(emitter, rule, keys).add()


class _IndependentEmission:
    def __init__(self, emitter: Emitting, rule: RuleAutomaton, keys: IndependentKeys) -> None:
        self.emitter = emitter
        self.rule = rule
        self.keys = keys
        places = range(len(keys.names))
        self.reads: list[list[tuple[Guard, Effects, Goal]]] = [[] for _ in places]
        self.readable: list[list[Guard]] = [[] for _ in places]  # states before each key
        self.skips: list[list[tuple[Guard, Effects]]] = [[] for _ in places]
        self.complete: list[list[Guard]] = []  # by group: its accepting states
        for place, (goal, required) in keys.free.items():
            if goal.productive:
                self.reads[place].append(((), (), goal))
                self.readable[place].append(())
            if not required:
                self.skips[place].append(((), ()))
        for group in keys.groups:
            changes = group.useful(any_order=keys.any_order)
            slot = rule.slot(group.states - 1) if group.states > 1 else -1
            for place in group.places:
                self._add_changes(place, [change for change in changes if change.place == place], slot)
            self.complete.append(_guards(slot, group.accepting))

    def _add_changes(self, place: int, changes: list[Change], slot: int) -> None:
        unchanged = {change.before for change in changes if change.goal is None and change.after == change.before}
        self.skips[place] += ((guard, ()) for guard in _guards(slot, unchanged))
        for before, after, goal in dict.fromkeys((change.before, change.after, change.goal) for change in changes):
            if goal is None and before in unchanged:
                continue
            (guard,) = _guards(slot, {before})
            effects = ((Action.INCREMENT, slot),) * (after - before)
            if goal is None:
                self.skips[place].append((guard, effects))
            else:
                self.reads[place].append((guard, effects, goal))
        self.readable[place] += _guards(slot, {change.before for change in changes if change.goal is not None})

    def add(self) -> None:
        """Adds the edges that read the objects to the rule."""
        opened = self.rule.state()
        self.rule.edges.append(Edge(START, self.emitter.add(self.emitter.punctuation.open_object), opened))
        if self.keys.any_order:
            self._add_unordered(opened)
        else:
            self._add_ordered(opened)

    def _add_ordered(self, first: int) -> None:
        rule, edges, add, punctuation = self.rule, self.rule.edges, self.emitter.add, self.emitter.punctuation
        comma = add(punctuation.comma)
        following = rule.state()  # never reached at the first key
        for place, reads in enumerate(self.reads):
            next_first, next_following = rule.state(), rule.state()
            if reads:
                expected = rule.state()
                for guard in self.readable[place]:
                    edges.append(Edge(first, EPSILON, expected, guard))
                    if place:
                        edges.append(Edge(following, comma, expected, guard))
                for guard, effects, goal in reads:
                    self._add_read(expected, place, guard, effects, goal, next_following)
            for guard, effects in self.skips[place]:
                edges.append(Edge(first, EPSILON, next_first, guard, effects))
                if place:
                    edges.append(Edge(following, EPSILON, next_following, guard, effects))
            first, following = next_first, next_following
        edges.append(Edge(first, add(punctuation.close_empty_object), END))
        edges.append(Edge(following, add(punctuation.close_object), END))
        if self._has_classes():
            expected = rule.state()
            edges += [Edge(first, EPSILON, expected), Edge(following, comma, expected)]
            self._add_classes(expected, following)

    def _add_unordered(self, opened: int) -> None:
        rule, edges, add, punctuation = self.rule, self.rule.edges, self.emitter.add, self.emitter.punctuation
        offer, following = rule.state(), rule.state()
        edges.append(Edge(opened, EPSILON, offer))
        comma = add(punctuation.comma)
        present: Guard = ()
        for place, reads in enumerate(self.reads):
            if not reads:
                continue
            used = rule.slot(1)
            if place in self.keys.free and self.keys.free[place][1]:
                present += (Condition(used, 1, None),)
            unused = (Condition(used, 0, 0),)
            for guard, effects, goal in reads:
                self._add_read(offer, place, unused + guard, (*effects, (Action.INCREMENT, used)), goal, following)
            if not self._has_classes():
                edges += [Edge(following, comma, offer, unused + guard) for guard in self.readable[place]]
        if self._has_classes():
            edges.append(Edge(following, comma, offer))
            self._add_classes(offer, following)
        if not present and all(0 in group.accepting for group in self.keys.groups):
            edges.append(Edge(opened, add(punctuation.close_empty_object), END))
        for guards in self.complete:
            if guards != [()]:
                following, before = rule.state(), following
                edges += [Edge(before, EPSILON, following, guard) for guard in guards]
        edges.append(Edge(following, add(punctuation.close_object), END, present))

    def _add_read(self, source: int, place: int, guard: Guard, effects: Effects, goal: Goal, target: int) -> None:
        key = self.emitter.key(self.keys.names[place])
        value = add_key(self.emitter, self.rule, Edge(source, key, self.rule.state(), guard, effects))
        self.rule.edges += [Edge(value, symbol, target) for symbol in self.emitter.member(key, goal)]

    def _has_classes(self) -> bool:
        return any(goal.productive for _, goal in self.keys.classes)

    def _add_classes(self, source: int, target: int) -> None:
        rule = self.rule
        texts = rule.slot(TEXT_SET)
        for keys, goal in self.keys.classes:
            if goal.productive:
                key = self.emitter.undeclared_key(keys.expression)
                edge = Edge(source, key.key, rule.state(), (), ((Action.REMEMBER, texts),), texts)
                value = add_undeclared_key(rule, key, edge)
                rule.edges += [Edge(value, symbol, target) for symbol in self.emitter.member(key.key, goal)]


def _guards(slot: int, states: Iterable[int]) -> list[Guard]:
    """Returns the conditions under each of which a group is in one of these states."""
    runs: list[list[int]] = []
    for state in sorted(states):
        if runs and runs[-1][1] == state - 1:
            runs[-1][1] = state
        else:
            runs.append([state, state])
    return [() if slot < 0 else (Condition(slot, low, high),) for low, high in runs]
