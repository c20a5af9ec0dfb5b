"""Regular expressions by Brzozowski derivatives (Brzozowski 1964), as plainly as they can be written.

The oracle's own reading of ``constrain.language.tree``; it shares nothing with the kernel but the data classes. An
expression is a nested tuple in a normal form, just normal enough that a tree has finitely many derivatives.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from constrain.language import tree

Node = tuple  # ("kind", ...)

NOTHING: Node = ("class", frozenset())
EMPTY: Node = ("empty",)
ALL_BYTES = frozenset(range(256))


def alternation(parts) -> Node:
    flat = set()
    for part in parts:
        flat |= part[1] if part[0] == "or" else {part}
    flat.discard(NOTHING)
    if not flat:
        return NOTHING
    return next(iter(flat)) if len(flat) == 1 else ("or", frozenset(flat))


def intersection(parts) -> Node:
    flat = set()
    for part in parts:
        flat |= part[1] if part[0] == "and" else {part}
    if NOTHING in flat:
        return NOTHING
    return next(iter(flat)) if len(flat) == 1 else ("and", frozenset(flat))


def concatenation(first: Node, rest: Node) -> Node:
    if NOTHING in (first, rest):
        return NOTHING
    if first == EMPTY:
        return rest
    if rest == EMPTY:
        return first
    if first[0] == "then":
        return ("then", first[1], concatenation(first[2], rest))
    return ("then", first, rest)


def complement(part: Node) -> Node:
    return part[1] if part[0] == "not" else ("not", part)


def repetition(part: Node, minimum: int, maximum: int | None) -> Node:
    if maximum == 0:
        return EMPTY
    return ("times", part, minimum, maximum)


def literal(text: bytes) -> Node:
    node = EMPTY
    for byte in reversed(text):
        node = concatenation(("class", frozenset([byte])), node)
    return node


ESCAPES = {0x22: '\\"', 0x5C: "\\\\", 0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0C: "\\f", 0x0D: "\\r"}


def spelled(code_point: int, json: bool) -> bytes:
    if json and code_point in ESCAPES:
        return ESCAPES[code_point].encode()
    if json and code_point < 0x20:
        return f"\\u{code_point:04x}".encode()
    return chr(code_point).encode()


@cache
def from_tree(expression: tree.Expression) -> Node:
    match expression:
        case tree.Literal(text):
            return literal(text)
        case tree.ByteClass(ranges):
            return ("class", frozenset(byte for low, high in ranges for byte in range(low, high + 1)))
        case tree.CharClass(ranges, json):
            points = [point for low, high in ranges for point in range(low, high + 1) if not 0xD800 <= point < 0xE000]
            assert len(points) < 1000, "the oracle spells classes out"
            return alternation(literal(spelled(point, json)) for point in points)
        case tree.Concatenation(parts):
            node = EMPTY
            for part in reversed(parts):
                node = concatenation(from_tree(part), node)
            return node
        case tree.Alternation(parts):
            return alternation(map(from_tree, parts))
        case tree.Intersection(parts):
            return intersection(map(from_tree, parts))
        case tree.Complement(part):
            return complement(from_tree(part))
        case tree.Repetition(part, minimum, maximum):
            return repetition(from_tree(part), minimum, maximum)
        case tree.LiteralSet(texts):
            return alternation(map(literal, texts))
        case tree.Multiple(divisor, scale):
            return ("multiple", divisor, scale, "start", Fraction(0), 0)
        case tree.Window(part, unit, minimum, maximum):
            units = from_tree(unit)
            cannot_begin = ("class", frozenset(byte for byte in ALL_BYTES if is_empty(derivative(units, byte))))
            anything = repetition(("class", ALL_BYTES), 0, None)
            tail = alternation([EMPTY, concatenation(cannot_begin, anything)])
            counted = concatenation(repetition(units, minimum, maximum), tail)
            return intersection([from_tree(part), counted])
    raise TypeError(expression)


@cache
def nullable(node: Node) -> bool:
    match node:
        case ("empty",):
            return True
        case ("class", _):
            return False
        case ("or", parts):
            return any(map(nullable, parts))
        case ("and", parts):
            return all(map(nullable, parts))
        case ("not", part):
            return not nullable(part)
        case ("then", first, rest):
            return nullable(first) and nullable(rest)
        case ("times", part, minimum, _):
            return minimum == 0 or nullable(part)
        case ("multiple", _, _, place, remainder, _):
            return place in ("integer", "fraction") and remainder == 0
    raise TypeError(node)


@cache
def derivative(node: Node, byte: int) -> Node:
    """What may follow ``byte`` in the texts of ``node`` that begin with it."""
    match node:
        case ("empty",):
            return NOTHING
        case ("class", members):
            return EMPTY if byte in members else NOTHING
        case ("or", parts):
            return alternation([derivative(part, byte) for part in parts])
        case ("and", parts):
            return intersection([derivative(part, byte) for part in parts])
        case ("not", part):
            return complement(derivative(part, byte))
        case ("then", first, rest):
            into = concatenation(derivative(first, byte), rest)
            return alternation([into, derivative(rest, byte)]) if nullable(first) else into
        case ("times", part, minimum, maximum):
            left = repetition(part, max(minimum - 1, 0), None if maximum is None else maximum - 1)
            return concatenation(derivative(part, byte), left)
        case ("multiple", *_):
            return derivative_of_multiple(node, byte)
    raise TypeError(node)


def derivative_of_multiple(node: Node, byte: int) -> Node:
    """A decimal number read so far is kept as its value modulo the divisor, and its number of decimals."""
    _, divisor, scale, place, remainder, decimals = node
    modulus = Fraction(divisor, 10**scale)
    if byte == ord("-"):
        return ("multiple", divisor, scale, "sign", remainder, 0) if place == "start" else NOTHING
    if byte == ord("."):
        return ("multiple", divisor, scale, "point", remainder, 0) if place == "integer" else NOTHING
    if not ord("0") <= byte <= ord("9"):
        return NOTHING
    digit = byte - ord("0")
    if place in ("start", "sign", "integer"):
        return ("multiple", divisor, scale, "integer", (10 * remainder + digit) % modulus, 0)
    if decimals >= scale:  # multiples have no digits but zeros there
        return ("multiple", divisor, scale, "fraction", remainder, scale) if digit == 0 else NOTHING
    remainder = (remainder + Fraction(digit, 10 ** (decimals + 1))) % modulus
    return ("multiple", divisor, scale, "fraction", remainder, decimals + 1)


@cache
def bytes_of(node: Node) -> frozenset[int]:
    """Bytes that an expression tells from others, and one that stands for all those it does not."""
    match node:
        case ("class", members):
            chosen = set(members if len(members) <= 128 else ALL_BYTES - members)
        case ("or" | "and", parts):
            chosen = set().union(*map(bytes_of, parts))
        case ("not", part):
            chosen = set(bytes_of(part))
        case ("then", first, rest):
            chosen = bytes_of(first) | bytes_of(rest)
        case ("times", part, _, _):
            chosen = set(bytes_of(part))
        case ("multiple", *_):
            chosen = set(b"-.0123456789")
        case _:
            chosen = set()
    return frozenset(chosen | {min(ALL_BYTES - chosen, default=0)})


_shortest: dict[Node, int | None] = {}


def shortest(node: Node) -> int | None:
    """The length of a shortest text, by breadth-first search through all derivatives; None if there is none."""
    if node not in _shortest:
        seen, frontier, length = {node}, [node], 0
        alphabet = bytes_of(node)
        _shortest[node] = None
        while frontier:
            if any(map(nullable, frontier)):
                _shortest[node] = length
                break
            following = {derivative(current, byte) for current in frontier for byte in alphabet}
            frontier = list(following - seen)
            seen |= following
            length += 1
    return _shortest[node]


def is_empty(node: Node) -> bool:
    return shortest(node) is None


def is_finite(node: Node) -> bool:
    """Whether there are finitely many texts: no derivative on a live path leads back to itself."""
    on_path: set[Node] = set()
    done: set[Node] = set()

    def has_cycle(current: Node) -> bool:
        if current in done or is_empty(current):
            return False
        if current in on_path:
            return True
        on_path.add(current)
        found = any(has_cycle(derivative(current, byte)) for byte in bytes_of(node))
        on_path.discard(current)
        done.add(current)
        return found

    return not has_cycle(node)


def matches(node: Node, text: bytes) -> bool:
    for byte in text:
        node = derivative(node, byte)
    return nullable(node)
