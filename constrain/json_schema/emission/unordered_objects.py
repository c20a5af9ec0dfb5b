"""The automaton of an object with its keys in any order: one state that offers every unused key.

Each declared key has a counter that records its use, so edges and slots are linear in the number of keys, and only the
sets of keys that occur are ever distinguished. ``others`` counts members that are not required, so that a maximum
always leaves room for the required ones; ``total`` counts all members, if bounds or a last key need it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError
from constrain.json_schema.emission.emitting import EDGE_STEPS
from constrain.language.grammar import EPSILON, TEXT_SET, Action, Condition, Edge
from constrain.language.rule_automaton import END
from constrain.work import MAX_DISTINCT, spend

if TYPE_CHECKING:
    from constrain.json_schema.emission.emitting import Emitting, UndeclaredKey
    from constrain.json_schema.shapes.data import Goal, ObjectShape
    from constrain.json_schema.shapes.keys import KeyClass
    from constrain.kernel import RuleAutomaton


class Member(NamedTuple):
    """A declared key whose schema admits at least one value."""

    key: int  # terminal
    goal: Goal
    required: bool


def check_new_keys(shape: ObjectShape, members: int) -> None:
    """Raises LimitError if an object must have too many undeclared keys."""
    if shape.minimum - members > MAX_DISTINCT:
        raise LimitError(
            f"an object must have more undeclared keys than MAX_DISTINCT = {MAX_DISTINCT}; lower minProperties"
        )


def add_key(emitter: Emitting, automaton: RuleAutomaton, edge: Edge) -> int:
    """Adds an edge that reads a declared key, and one for a separate colon; returns the state before the value."""
    automaton.edges.append(edge)
    if not emitter.keys_apart:
        return edge.target
    value = automaton.state()
    automaton.edges.append(Edge(edge.target, emitter.add(emitter.punctuation.colon), value))
    return value


def add_undeclared_key(automaton: RuleAutomaton, key: UndeclaredKey, edge: Edge) -> int:
    """Adds an edge that reads an undeclared key, and edges for what stands around it; returns the state behind."""
    if key.before is not EPSILON:
        inside = automaton.state()
        automaton.edges.append(Edge(edge.source, key.before, inside, edge.conditions))
        edge = edge._replace(source=inside)
    value = automaton.state()
    automaton.edges += [edge, Edge(edge.target, key.after, value)]
    return value


class _Counted(NamedTuple):
    """Actions of edges that read keys, and conditions, in an object whose members are counted."""

    required_actions: tuple[tuple[Action, int], ...]
    optional_actions: tuple[tuple[Action, int], ...]
    more: tuple[Condition, ...]
    """Conditions for a further member."""
    fits: tuple[Condition, ...]
    """Conditions for a further member that is not required, with room left for the required ones."""
    enough: tuple[Condition, ...]
    """Conditions for the end of the object."""


def add_unordered(
    emitter: Emitting,
    automaton: RuleAutomaton,
    shape: ObjectShape,
    opened: int,
    members: list[Member],
    classes: list[KeyClass],
) -> None:
    """Adds the members and the end of an object, from the state after the opening brace to END."""
    spend(EDGE_STEPS * shape.minimum * len(members))
    edges = automaton.edges
    available = len(members) + sum(key_class.number for key_class in classes)
    greatest = available if shape.maximum is None else min(available, shape.maximum)
    offer, following = automaton.state(), automaton.state()
    edges.append(Edge(opened, EPSILON, offer))
    counted = _count(automaton, shape, sum(member.required for member in members), greatest, available)
    for member in members:
        _add_named(emitter, automaton, member, (offer, following), counted)
    if classes:
        _add_undeclared(emitter, automaton, classes, (offer, following), counted)
    if greatest > 1:
        edges.append(Edge(following, emitter.add(emitter.punctuation.comma), offer, counted.more))
    edges.append(Edge(following, emitter.add(emitter.punctuation.close_object), END, counted.enough))


def _count(automaton: RuleAutomaton, shape: ObjectShape, needed: int, greatest: float, available: float) -> _Counted:
    """Returns counters of all members, of optional ones, and of required ones, each only if it is needed."""
    actions: tuple[tuple[Action, int], ...] = ()
    more: tuple[Condition, ...] = ()
    enough: tuple[Condition, ...] = ()
    if greatest != inf or shape.minimum > max(needed, 1):
        total = automaton.slot(shape.minimum if greatest == inf else int(greatest))
        actions = ((Action.INCREMENT, total),)
        if greatest != inf:
            more = (Condition(total, 0, int(greatest) - 1),)
        if shape.minimum > max(needed, 1):
            enough = (Condition(total, shape.minimum, None),)
    optional = required = actions
    fits: tuple[Condition, ...] = ()
    if greatest < available:
        others = automaton.slot(int(greatest) - needed)
        optional = (*actions, (Action.INCREMENT, others))
        fits = (Condition(others, 0, int(greatest) - needed - 1),)
    if needed:
        found = automaton.slot(needed)
        required = (*actions, (Action.INCREMENT, found))
        enough += (Condition(found, needed, None),)
    return _Counted(required, optional, more, fits, enough)


def _add_named(
    emitter: Emitting, automaton: RuleAutomaton, member: Member, around: tuple[int, int], counted: _Counted
) -> None:
    offer, following = around
    used = automaton.slot(1)
    actions = counted.required_actions if member.required else counted.optional_actions
    conditions = (Condition(used, 0, 0), *(() if member.required else counted.fits))
    edge = Edge(offer, member.key, automaton.state(), conditions, (*actions, (Action.INCREMENT, used)))
    value = add_key(emitter, automaton, edge)
    automaton.edges += [Edge(value, symbol, following) for symbol in emitter.member(member.key, member.goal)]


def _add_undeclared(
    emitter: Emitting, automaton: RuleAutomaton, classes: list[KeyClass], around: tuple[int, int], counted: _Counted
) -> None:
    offer, following = around
    texts = automaton.slot(TEXT_SET)
    actions = (*counted.optional_actions, (Action.REMEMBER, texts))
    for key_class in classes:
        key = emitter.undeclared_key(key_class.expression)
        edge = Edge(offer, key.key, automaton.state(), counted.fits, actions, texts)
        value = add_undeclared_key(automaton, key, edge)
        automaton.edges += [Edge(value, symbol, following) for symbol in emitter.member(key.key, key_class.goal)]
