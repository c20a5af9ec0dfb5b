"""Regular rules and parts of a grammar to convert: which there are, their sets of characters, their expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.conversion.parts import Characters, Except, Text, leaves
from constrain.language.tree import EMPTY_TEXT, MAX_CODE_POINT, Complement, Expression, Intersection, Literal
from constrain.lark.reading.syntax import Choice, Repeat, Sequence, Special, Symbol
from constrain.regex.anchors import repetition, sequence, union
from constrain.regex.classes import normalize
from constrain.regex.parsing.parser import char_class

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.conversion.parts import Original
    from constrain.language.tree import Ranges

MAX_CONVERTED_DEPTH = 60
"""Levels of operators, through all rules inside, in a rule of a converted grammar that becomes a terminal. Beyond: the
rule stays a rule; in an exception of EBNF, GrammarError."""


def regular_rules(original: Original) -> list[str]:
    """Returns the regular rules without special tokens, in an order in which used rules come first."""
    bodies = {name: rule.body for name, rule in original.rules.items()}
    uses = {name: {each.name for each in leaves(body) if isinstance(each, Symbol)} for name, body in bodies.items()}
    users: dict[str, list[str]] = {name: [] for name in bodies}
    for name, used in uses.items():
        for other in used:
            users[other].append(name)
    left = {name: len(used) for name, used in uses.items()}
    waiting = [name for name, count in left.items() if not count]
    depths: dict[str, int] = {}
    for name in waiting:
        depth = _depth(bodies[name], depths)
        if depth > MAX_CONVERTED_DEPTH or any(isinstance(each, Special) for each in leaves(bodies[name])):
            continue
        depths[name] = depth
        for user in users[name]:
            left[user] -= 1
            if not left[user]:
                waiting.append(user)
    return list(depths)


def _depth(node: Any, known: Mapping[str, int]) -> int:
    match node:
        case Sequence(parts) | Choice(parts):
            return 1 + max((_depth(part, known) for part in parts), default=0)
        case Repeat(part, _, _):
            return 1 + _depth(part, known)
        case Except(part, other, _):
            return 2 + max(_depth(each, known) for each in (part, other) if each is not None)
        case Symbol(name, _):
            return 1 + known[name]
    return 1


def nullable_rules(original: Original) -> set[str]:
    """Returns the rules that have the empty text."""
    found: set[str] = set()
    while more := {
        name for name, rule in original.rules.items() if name not in found and is_nullable(rule.body, found)
    }:
        found |= more
    return found


def is_nullable(node: Any, nullable: set[str]) -> bool:
    """Returns whether a node has the empty text."""
    match node:
        case Sequence(parts):
            return all(is_nullable(part, nullable) for part in parts)
        case Choice(parts):
            return any(is_nullable(part, nullable) for part in parts)
        case Repeat(part, minimum, _):
            return minimum == 0 or is_nullable(part, nullable)
        case Except(part, other, _):
            return other is not None and is_nullable(part, nullable) and not is_nullable(other, nullable)
        case Symbol(name, _):
            return name in nullable
        case Text(value, _):
            return not value
    return False


def without_empty(node: Except, nullable: set[str]) -> Any:
    """Returns an exception of the empty text as a node without exception, where one is near; None otherwise.

    ``nullable``: the rules that have the empty text.
    """
    if node.other is not None:
        return None
    if not is_nullable(node.part, nullable):
        return node.part
    match node.part:
        case Repeat(part, 0, maximum) if maximum != 0 and not is_nullable(part, nullable):
            return part if maximum == 1 else Repeat(part, 1, maximum)
    return None


def productive_rules(original: Original) -> set[str]:
    """Returns the rules that have any text."""
    found: set[str] = set()
    while more := {
        name for name, rule in original.rules.items() if name not in found and _is_productive(rule.body, found)
    }:
        found |= more
    return found


def _is_productive(node: Any, productive: set[str]) -> bool:
    match node:
        case Sequence(parts):
            return all(_is_productive(part, productive) for part in parts)
        case Choice(parts):
            return any(_is_productive(part, productive) for part in parts)
        case Repeat(part, minimum, _):
            return minimum == 0 or _is_productive(part, productive)
        case Symbol(name, _):
            return name in productive
    return True


def character_sets(original: Original, regular: list[str]) -> dict[str, Ranges]:
    """Returns the characters of the rules all of whose texts are one character; ``regular``: in order of use."""
    found: dict[str, Ranges] = {}
    for name in regular:
        ranges = characters_of(original.rules[name].body, found)
        if ranges is not None:
            found[name] = ranges
    return found


def characters_of(node: Any, sets: Mapping[str, Ranges]) -> Ranges | None:
    """Returns the characters of a node all of whose texts are one character; None for any other node."""
    match node:
        case Characters(ranges, _):
            return ranges
        case Text(value, _) if len(value) == 1:
            return ((ord(value), ord(value)),)
        case Symbol(name, _):
            return sets.get(name)
        case Choice(parts):
            inside = [characters_of(part, sets) for part in parts]
            some = [ranges for ranges in inside if ranges is not None]
            return normalize(pair for ranges in some for pair in ranges) if len(some) == len(inside) else None
        case Except(part, other, _):
            left = characters_of(part, sets)
            right = () if other is None else characters_of(other, sets)
            return None if left is None or right is None else difference(left, right)
    return None


def difference(left: Ranges, right: Ranges) -> Ranges:
    """Returns the characters of one set that are not in another."""
    edges = [0, *(edge for low, high in right for edge in (low, high + 1)), MAX_CODE_POINT + 1]
    others = [(low, high - 1) for low, high in zip(edges[::2], edges[1::2], strict=True) if low < high]
    both = [
        (max(low, first), min(high, last))
        for low, high in left
        for first, last in others
        if max(low, first) <= min(high, last)
    ]
    return normalize(both)


def expression_of(node: Any, known: Mapping[str, Expression]) -> Expression:
    """Returns the expression of a regular node; ``known``: those of the rules inside it."""
    match node:
        case Sequence(parts):
            return sequence(*(expression_of(part, known) for part in parts)) if parts else EMPTY_TEXT
        case Choice(parts):
            return union([expression_of(part, known) for part in parts])
        case Repeat(part, minimum, maximum):
            return repetition(expression_of(part, known), minimum, maximum)
        case Except(part, other, _):
            without = EMPTY_TEXT if other is None else expression_of(other, known)
            return Intersection((expression_of(part, known), Complement(without)))
        case Symbol(name, _):
            return known[name]
        case Text(value, _):
            return Literal(value.encode()) if value else EMPTY_TEXT
    assert isinstance(node, Characters), node
    return char_class(node.ranges, json=False)
