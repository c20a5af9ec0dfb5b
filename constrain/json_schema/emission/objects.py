"""The automaton of an object with its keys in schema order: declared keys, then those of the key classes.

``C0`` offers the first key or skips it, ``M1`` follows its member; a comma is read only if a member follows::

    START --{--> C0 --"a":--> V0 --value--> M1 --}--> END
                  |                          |
                  | (if optional)            | ,
                  v                          v
                 C1 --"b":--> V1 ...        C1

Edges are linear in the number of keys. A counter exists only if the number of members has a bound that the automaton
does not enforce by itself, a set of used keys only if an undeclared key could come twice.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.emission.unordered_objects import (
    Member,
    add_key,
    add_undeclared_key,
    add_unordered,
    check_new_keys,
)
from constrain.json_schema.shapes.keys import KeyClass, key_classes
from constrain.json_schema.shapes.objects import key_goals
from constrain.language.grammar import EPSILON, TEXT_SET, Action, Condition, Edge
from constrain.language.rule_automaton import END, START, RuleAutomaton

if TYPE_CHECKING:
    from constrain.json_schema.emission.emitting import Emitting
    from constrain.json_schema.shapes.data import ObjectShape


class OrderedMembers(NamedTuple):
    """The members of an object with keys in order; ``counter``, if any, counts ``minimum`` to ``maximum`` of them."""

    members: list[Member]
    classes: list[KeyClass]
    extra: float  # number of keys in all classes
    minimum: int
    maximum: int | None
    counter: int

    def at_most(self, number: int) -> tuple[Condition, ...]:
        """Returns the condition that there are at most ``number`` members so far."""
        return () if self.maximum is None else (Condition(self.counter, 0, number),)

    def at_least(self, number: float) -> tuple[Condition, ...]:
        """Returns the condition that there are at least ``number`` members so far."""
        return () if number <= 0 else (Condition(self.counter, int(number), None),)

    def counted(self) -> tuple[tuple[Action, int], ...]:
        """Returns the actions of an edge that reads a key."""
        return () if self.counter < 0 else ((Action.INCREMENT, self.counter),)


def add_object(emitter: Emitting, automaton: RuleAutomaton, shape: ObjectShape) -> None:
    """Adds edges from START to END that read the objects of a shape, which must admit at least one."""
    edges = automaton.edges
    punctuation = emitter.punctuation
    needed = len(shape.required)
    full = shape.maximum == needed  # no room for others
    members = declared_members(emitter, shape, only_required=full)
    opened = automaton.state()
    edges.append(Edge(START, emitter.add(punctuation.open_object), opened))
    if needed == 0 and shape.minimum == 0:
        edges.append(Edge(opened, emitter.add(punctuation.close_empty_object), END))
    if shape.maximum == 0:
        return
    classes = [] if full else key_classes(shape)
    check_new_keys(shape, members)
    if not members and not classes:
        return
    if emitter.policies.property_order == "any":
        add_unordered(emitter, automaton, shape, opened, members, classes)
        return
    ordered = _ordered_members(automaton, shape, members, classes, needed)
    first = opened
    if not members:
        first = automaton.state()
        edges.append(Edge(opened, EPSILON, first))
    last = _add_members(emitter, automaton, ordered, first, needed)
    if classes:
        _add_classes(emitter, automaton, ordered, last)


def declared_members(emitter: Emitting, shape: ObjectShape, *, only_required: bool) -> list[Member]:
    """Returns the declared members in schema order, then the required keys outside ``properties``."""
    required = frozenset(shape.required)
    key = emitter.key
    members = [
        Member(key(name), goal, name in required)
        for name, goal in shape.properties.items()
        if goal.productive and (name in required or not only_required)
    ]
    undeclared = key_goals(shape, (name for name in shape.required if name not in shape.properties))
    return members + [Member(key(name), goal, required=True) for name, goal in undeclared.items()]


def _ordered_members(
    automaton: RuleAutomaton, shape: ObjectShape, members: list[Member], classes: list[KeyClass], needed: int
) -> OrderedMembers:
    extra = sum(key_class.number for key_class in classes)
    minimum = 0 if shape.minimum <= max(needed, 1) else shape.minimum  # one member: the empty object is left out
    maximum = None if shape.maximum is None or shape.maximum >= len(members) + extra else shape.maximum
    counter = -1
    if minimum or maximum is not None:
        counter = automaton.slot(minimum if maximum is None else maximum)
    return OrderedMembers(members, classes, extra, minimum, maximum, counter)


def _add_members(emitter: Emitting, automaton: RuleAutomaton, ordered: OrderedMembers, first: int, needed: int) -> int:
    """Adds the declared members; returns the state that offers an undeclared one.

    ``needed``: number of required members, all of them still to come.
    """
    edges = automaton.edges
    add, punctuation = emitter.add, emitter.punctuation
    members, maximum = ordered.members, ordered.maximum
    counted = ordered.counted()
    offer = first
    for index, (key, goal, required) in enumerate(members):
        needed -= required
        left = len(members) - index - 1 + ordered.extra
        fits = () if required or maximum is None else ordered.at_most(maximum - 1 - needed)
        value = add_key(emitter, automaton, Edge(offer, key, automaton.state(), fits, counted))
        following = automaton.state()
        edges += [Edge(value, symbol, following) for symbol in emitter.member(key, goal)]
        if left:
            next_offer = automaton.state()
            if not required:
                edges.append(Edge(offer, EPSILON, next_offer, ordered.at_least(ordered.minimum - left)))
            room = () if needed or maximum is None else ordered.at_most(maximum - 1)
            edges.append(Edge(following, add(punctuation.comma), next_offer, room))
            offer = next_offer
        if needed == 0:
            edges.append(Edge(following, add(punctuation.close_object), END, ordered.at_least(ordered.minimum)))
    return offer


def _add_classes(emitter: Emitting, automaton: RuleAutomaton, ordered: OrderedMembers, offer: int) -> None:
    """Adds a loop over the undeclared keys, each at most once."""
    edges, maximum = automaton.edges, ordered.maximum
    punctuation = emitter.punctuation
    following = automaton.state()
    used, total = -1, -1
    again = ordered.extra > 1 and (maximum is None or maximum > 1)
    actions = ordered.counted()
    if again:
        used = automaton.slot(TEXT_SET)
        actions += ((Action.REMEMBER, used),)
        if ordered.extra != inf:
            total = automaton.slot(int(ordered.extra))
            actions += ((Action.INCREMENT, total),)
    fits = () if maximum is None else ordered.at_most(maximum - 1)
    for key_class in ordered.classes:
        key = emitter.undeclared_key(key_class.expression)
        value = add_undeclared_key(automaton, key, Edge(offer, key.key, automaton.state(), fits, actions, used))
        edges += [Edge(value, symbol, following) for symbol in emitter.member(key.key, key_class.goal)]
    edges.append(Edge(following, emitter.add(punctuation.close_object), END, ordered.at_least(ordered.minimum)))
    if again:
        left = () if total < 0 else (Condition(total, 0, int(ordered.extra) - 1),)
        edges.append(Edge(following, emitter.add(punctuation.comma), offer, fits + left))
