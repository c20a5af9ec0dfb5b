"""Questions about rules as a whole: whether they have any text, and which terminals may follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.language.grammar import EPSILON

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.language.grammar import Rule


def productive_rules(rules: Sequence[Rule]) -> set[int]:
    """Returns the rules that have a text, if all terminals have one."""
    return _least(rules, lambda _: True)


def silent_rules(rules: Sequence[Rule]) -> set[int]:
    """Returns the rules that may match the empty text; conditions are ignored."""
    return _least(rules, lambda _: False)


def _least(rules: Sequence[Rule], reads: Callable[[int], bool]) -> set[int]:
    """Returns the rules that such terminals can finish; a rule is examined again when a rule it uses is found."""
    users: list[set[int]] = [set() for _ in rules]
    for index, rule in enumerate(rules):
        for edge in rule.edges:
            if edge.symbol is not EPSILON and edge.symbol < 0:
                users[~edge.symbol].add(index)
    found: set[int] = set()
    waiting = list(range(len(rules)))
    while waiting:
        index = waiting.pop()
        if index not in found and _can_end(rules[index], found, reads):
            found.add(index)
            waiting.extend(users[index])
    return found


def _can_end(rule: Rule, found: set[int], reads: Callable[[int], bool]) -> bool:
    onward: dict[int, list[int]] = {}
    for edge in rule.edges:
        if edge.symbol is EPSILON or (reads(edge.symbol) if edge.symbol >= 0 else ~edge.symbol in found):
            onward.setdefault(edge.source, []).append(edge.target)
    reached, waiting = {0}, [0]
    while waiting:
        for target in onward.get(waiting.pop(), ()):
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return not reached.isdisjoint(rule.accepting)


def followers(rules: Sequence[Rule], index: int) -> set[int]:
    """Returns the terminals that may come directly after a rule; conditions are ignored."""
    silent = silent_rules(rules)
    found: set[int] = set()
    met: set[tuple[int, int]] = set()
    waiting = [
        (number, edge.target) for number, rule in enumerate(rules) for edge in rule.edges if edge.symbol == ~index
    ]
    while waiting:
        number, state = waiting.pop()
        if (number, state) in met:
            continue
        met.add((number, state))
        if state in rules[number].accepting:
            callers = ((user, edge) for user, rule in enumerate(rules) for edge in rule.edges)
            waiting.extend((user, edge.target) for user, edge in callers if edge.symbol == ~number)
        for edge in rules[number].edges:
            if edge.source != state:
                continue
            if edge.symbol is not EPSILON and edge.symbol >= 0:
                found.add(edge.symbol)
                continue
            if edge.symbol is EPSILON or ~edge.symbol in silent:
                waiting.append((number, edge.target))
            if edge.symbol is not EPSILON:
                waiting.append((~edge.symbol, 0))
    return found
