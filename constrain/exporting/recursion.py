"""Rules without the empty text, without left recursion, and without recursion that a loop can say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.exporting.arcs import Arc, Automaton
from constrain.exporting.nodes import Name, names_in
from constrain.language.emptiness import reached

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.exporting.nodes import Key

MAX_UNFOLDED_EDGES = 100_000
"""Edges of the rules of an exported grammar while left recursion is taken out of them. Beyond: LimitError."""

Automata = dict["Key", Automaton]


def drop_empty_texts(rules: Automata) -> set[Key]:
    """Takes the empty text out of all rules; edges that read one of them may read nothing instead.

    Returns the rules that had it.
    """

    def is_nullable(arc: Arc, known: set[Key]) -> bool:
        return arc.label is None or (isinstance(arc.label, Name) and arc.label.key in known)

    nullable = _least(rules, is_nullable)
    for key, rule in rules.items():
        skipped = [arc._replace(label=None) for arc in rule.arcs if arc.label and is_nullable(arc, nullable)]
        rule.arcs += [arc for arc in skipped if arc.source != arc.target]
        if key in nullable:
            _drop_empty_text(rule)
    _drop_rules_without_texts(rules)
    return nullable


def _least(rules: Automata, passes: Callable[[Arc, set[Key]], bool]) -> set[Key]:
    """Returns the rules that may end by such edges, which are told the rules found so far."""
    found: set[Key] = set()

    def ends(rule: Automaton) -> bool:
        return not _start(rule, lambda arc: passes(arc, found)).isdisjoint(rule.accepting)

    while new := {key for key, rule in rules.items() if key not in found and ends(rule)}:
        found |= new
    return found


def _start(rule: Automaton, passes: Callable[[Arc], bool] = lambda arc: arc.label is None) -> set[int]:
    """Returns the states that such edges lead to from the first one; by default, edges that read nothing."""
    onward: dict[int, set[int]] = {}
    for arc in filter(passes, rule.arcs):
        onward.setdefault(arc.source, set()).add(arc.target)
    return reached(onward, {0})


def _drop_empty_text(rule: Automaton) -> None:
    """Doubles the states: before anything was read, and after it; only after it the rule may end."""
    behind = rule.states
    arcs = []
    for arc in rule.arcs:
        arcs.append(Arc(arc.source + behind, arc.label, arc.target + behind))
        arcs.append(Arc(arc.source, arc.label, arc.target if arc.label is None else arc.target + behind))
    rule.arcs = arcs
    rule.accepting = {state + behind for state in rule.accepting}
    rule.trim()


def _drop_rules_without_texts(rules: Automata) -> None:
    """Drops the edges that read a rule without any text; the rules themselves stay, without edges."""

    def has_text(arc: Arc, full: set[Key]) -> bool:
        return arc.label is None or all(key in full or key not in rules for key in names_in(arc.label))

    full = _least(rules, has_text)
    for rule in rules.values():
        rule.arcs = [arc for arc in rule.arcs if has_text(arc, full)]
        rule.trim()


def drop_left_recursion(rules: Automata) -> None:
    """Takes left recursion out of rules that have no empty texts (after Paull: Moore 2000, section 2).

    Raises LimitError.
    """
    for group in _left_recursive_groups(rules):
        for index, key in enumerate(group):
            for other in group[:index]:
                _unfold_beginnings(rules[key], other, rules[other])
            _loop_instead_of_beginning(rules[key], key)
            if sum(len(rules[each].arcs) for each in group) > MAX_UNFOLDED_EDGES:
                raise LimitError(
                    f"without left recursion, the rules have more than MAX_UNFOLDED_EDGES = {MAX_UNFOLDED_EDGES} edges"
                )


def _left_recursive_groups(rules: Automata) -> list[list[Key]]:
    begins: dict[Key, set[Key]] = {key: _beginnings(rule) & rules.keys() for key, rule in rules.items()}
    reach = {key: reached(begins, begins[key]) for key in begins}
    groups: list[list[Key]] = []
    seen: set[Key] = set()
    for key in begins:
        if key in reach[key] and key not in seen:
            groups.append([each for each in begins if each in reach[key] and key in reach[each]])
            seen.update(groups[-1])
    return groups


def _beginnings(rule: Automaton) -> set[Key]:
    """Returns the names with which a text of the rule may begin."""
    before = _start(rule)
    labels = [arc.label for arc in rule.arcs if arc.source in before and arc.label is not None]
    return {key for label in labels for key in names_in(label)}


def _unroll(rule: Automaton) -> set[int]:
    """Gives the rule states of their own for the time before anything was read; returns these."""
    before = _start(rule)
    first = rule.states
    later = {state: first + index for index, state in enumerate(sorted(before))}
    arcs = []
    for arc in rule.arcs:
        target = later.get(arc.target, arc.target)
        arcs.append(arc._replace(source=later.get(arc.source, arc.source), target=target))
        if arc.source in before:
            arcs.append(arc if arc.label is None else arc._replace(target=target))
    rule.arcs = arcs
    rule.accepting = {later.get(state, state) for state in rule.accepting}  # the rule has no empty text
    rule.trim()
    return before


def _unfold_beginnings(rule: Automaton, key: Key, other: Automaton) -> None:
    """Replaces another rule by what it reads, where the rule begins with it."""
    before = _unroll(rule)
    replaced = [arc for arc in rule.arcs if arc.source in before and arc.label == Name(key)]
    kept = [arc for arc in rule.arcs if arc not in replaced]
    for arc in replaced:
        offset = 1 + max((max(each.source, each.target) for each in (*kept, *rule.arcs)), default=0)
        kept.append(Arc(arc.source, None, offset))
        kept += [Arc(each.source + offset, each.label, each.target + offset) for each in other.arcs]
        kept += [Arc(state + offset, None, arc.target) for state in other.accepting]
    rule.arcs = kept
    rule.trim()


def _loop_instead_of_beginning(rule: Automaton, key: Key) -> None:
    """Where the rule begins with itself, its end leads on instead."""
    before = _unroll(rule)
    found = [arc for arc in rule.arcs if arc.source in before and arc.label == Name(key)]
    kept = [arc for arc in rule.arcs if arc not in found]
    rule.arcs = kept + [Arc(state, None, arc.target) for arc in found for state in sorted(rule.accepting)]
    rule.arcs = list(dict.fromkeys(arc for arc in rule.arcs if arc.label is not None or arc.source != arc.target))
    rule.trim()


def loop_at_ends(rules: Automata) -> None:
    """Where a rule ends with itself, its beginning follows instead."""
    for key, rule in rules.items():
        leaving = {arc.source for arc in rule.arcs}
        last = rule.accepting - leaving
        rule.arcs = [
            arc._replace(label=None, target=0) if arc.target in last and arc.label == Name(key) else arc
            for arc in rule.arcs
        ]
        rule.arcs = [arc for arc in rule.arcs if arc.label is not None or arc.source != arc.target]
        rule.trim()


def find_recursion(rules: Automata, root: Key) -> Key | None:
    """Returns a rule that uses itself, perhaps by way of others; None if there is none below the root."""
    uses = {
        key: {name for arc in rule.arcs if arc.label is not None for name in names_in(arc.label)} & rules.keys()
        for key, rule in rules.items()
    }
    below = reached(uses, {root})
    return next((key for key in uses if key in below and key in reached(uses, uses[key])), None)
