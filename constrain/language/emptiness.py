"""Whether expressions and rules have a text, and the empty one; and which terminals may follow a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from constrain import kernel
from constrain.language.grammar import EPSILON
from constrain.language.tree import (
    ANY_BYTE,
    Alternation,
    ByteClass,
    CharClass,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    LiteralTable,
    Repetition,
    encodable,
    nullable,
    parts_first,
)
from constrain.work import asked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from constrain.language.grammar import Rule

_State = TypeVar("_State")

_SOME_BYTES = Repetition(ANY_BYTE, 1, None)


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
    return not reached(onward, {0}).isdisjoint(rule.accepting)


def reached(onward: Mapping[_State, Iterable[_State]], starts: Iterable[_State]) -> set[_State]:
    """Returns all states that edges lead to from some states, these included."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        new = [state for state in onward.get(waiting.pop(), ()) if state not in found]
        found.update(new)
        waiting += new
    return found


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


def non_empty_part(expression: Expression) -> tuple[Expression | None, bool]:
    """Returns the nonempty texts, if there are any, and whether the empty text matches."""
    is_nullable = nullable(expression)
    match expression:
        case Repetition(part, 0, maximum) if maximum != 0 and not nullable(part):
            expression = Repetition(part, 1, maximum)
        case _ if is_nullable:
            expression = Intersection((expression, _SOME_BYTES))
    has_text = has_text_by_structure(expression)
    if has_text is None:
        has_text = not asked(kernel.is_empty, expression)
    return (expression if has_text else None), is_nullable


def has_text_by_structure(expression: Expression) -> bool | None:
    """Returns whether an expression has a text; ``None`` if its parts do not decide."""
    known: dict[int, bool | None] = {}
    for node in parts_first(expression, known):
        known[id(node)] = _has_text(node, known)
    return known[id(expression)]


def _has_text(node: Expression, known: Mapping[int, bool | None]) -> bool | None:
    """The same; ``known``: the answers for its parts, by their ids."""
    match node:
        case Literal():
            return True
        case LiteralSet(texts):
            return bool(texts)
        case LiteralTable(texts):
            return len(texts) > 0
        case ByteClass(ranges):
            return bool(ranges)
        case CharClass(ranges):
            return encodable(ranges)
        case Concatenation(parts):
            found = {known[id(part)] for part in parts}
            return False if False in found else None if None in found else True
        case Alternation(parts):
            found = {known[id(part)] for part in parts}
            return True if True in found else None if None in found else False
        case Repetition(part, minimum, _):
            return minimum == 0 or known[id(part)]
    return None
