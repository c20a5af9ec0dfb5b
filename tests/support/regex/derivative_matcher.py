"""A slow, independent matcher for regular expression trees: Brzozowski derivatives over interned nodes.

The reference with which the engine, and all that compiles to expressions, is compared: it shares nothing with them but
the definition of the trees. The oracles read lexemes by it, too (``oracles.expressions``). A node is interned when it
is made, and nullability is worked out at once; derivatives are memoized. Repetition and ``Window`` count with plain
numbers, ``Multiple`` keeps a remainder.

>>> from constrain.language.tree import Literal, Repetition
>>> matches(Repetition(Literal(b"ab"), 2, 3), b"abab")
True
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any

from constrain.language import tree

Node = int
"""Index into a store; 0 is nothing, 1 the empty text."""

_NOTHING, _EMPTY = 0, 1
_MAX_NODES = 400_000  # a store is replaced beyond this, so that long test runs stay small
_ALL_BYTES = frozenset(range(256))
_FEW = 1_000
"""Characters of a class up to which only the bytes that they have are told apart, not all bytes."""
_POINT = ord(".")
_MINUS = ord("-")


class _Store:
    """Interned nodes ``(kind, ...)`` with what is known of each: is it nullable, its derivatives so far."""

    def __init__(self) -> None:
        self.keys: list[tuple[Any, ...]] = []
        self.nullable: list[bool] = []
        self._ids: dict[tuple[Any, ...], Node] = {}
        self._derivatives: dict[tuple[Node, int], Node] = {}
        self._sets: list[tuple[bytes, ...]] = []
        self._bytes: dict[Node, frozenset[int]] = {}
        self._shortest: dict[Node, int | None] = {}
        self.translated: dict[int, tuple[tree.Expression, Node]] = {}
        self._node(("nothing",), False)
        self._node(("empty",), True)

    def _node(self, key: tuple[Any, ...], nullable: bool) -> Node:
        node = self._ids.get(key)
        if node is None:
            node = self._ids[key] = len(self.keys)
            self.keys.append(key)
            self.nullable.append(nullable)
        return node

    # Constructors, each with the simplifications that keep the number of derivatives finite.

    def literal(self, text: bytes, offset: int = 0) -> Node:
        return _EMPTY if offset == len(text) else self._node(("literal", text, offset), False)

    def concatenation(self, parts: tuple[Node, ...]) -> Node:
        flat: list[Node] = []
        for part in parts:
            if part == _NOTHING:
                return _NOTHING
            if self.keys[part][0] == "concatenation":
                flat.extend(self.keys[part][1])
            elif part != _EMPTY:
                flat.append(part)
        if len(flat) < 2:
            return flat[0] if flat else _EMPTY
        return self._node(("concatenation", tuple(flat)), all(self.nullable[part] for part in flat))

    def alternation(self, parts: Iterable[Node]) -> Node:
        members: set[Node] = set()
        for part in parts:
            if self.keys[part][0] == "alternation":
                members.update(self.keys[part][1])
            elif part != _NOTHING:
                members.add(part)
        if len(members) < 2:
            return members.pop() if members else _NOTHING
        return self._node(("alternation", tuple(sorted(members))), any(self.nullable[part] for part in members))

    def intersection(self, parts: Iterable[Node]) -> Node:
        members = set(parts)
        if _NOTHING in members:
            return _NOTHING
        if len(members) == 1:
            return members.pop()
        return self._node(("intersection", tuple(sorted(members))), all(self.nullable[part] for part in members))

    def complement(self, part: Node) -> Node:
        if self.keys[part][0] == "complement":
            return int(self.keys[part][1])
        return self._node(("complement", part), not self.nullable[part])

    def repetition(self, part: Node, minimum: int, maximum: int | None) -> Node:
        if maximum is not None and maximum < minimum:
            return _NOTHING
        if maximum == 0 or part == _EMPTY:
            return _EMPTY
        if part == _NOTHING:
            return _EMPTY if minimum == 0 else _NOTHING
        if minimum == maximum == 1:
            return part
        if self.nullable[part]:
            minimum = 0
        return self._node(("repetition", part, minimum, maximum), minimum == 0)

    def literals(self, texts: int, first: int, end: int, depth: int) -> Node:
        """The texts ``first`` to ``end`` of a sorted set, which share ``depth`` bytes already read."""
        if first == end:
            return _NOTHING
        return self._node(("literals", texts, first, end, depth), len(self._sets[texts][first]) == depth)

    def characters(self, ranges: tree.Ranges, prefix: bytes = b"") -> Node:
        """Code points whose UTF-8 encoding begins with ``prefix``."""
        first, last, complete = _code_points(prefix)
        if first > last or not any(low <= last and high >= first for low, high in ranges):
            return _NOTHING
        return _EMPTY if complete else self._node(("characters", ranges, prefix), False)

    def multiple(self, divisor: int, scale: int, phase: str, remainder: int, fraction: int) -> Node:
        key = ("multiple", divisor, scale, phase, remainder, fraction)
        return self._node(key, phase in ("integer", "fraction") and remainder == 0)

    def window(
        self, part: Node, unit: Node, current: Node, count: int, minimum: int, maximum: int | None, ended: bool
    ) -> Node:
        if part == _NOTHING or (maximum is not None and count > maximum):
            return _NOTHING
        if maximum is None:
            count = min(count, minimum)  # there are finitely many derivatives
        if self.keys[part][0] == "empty" and not ended and current != unit:
            return _NOTHING
        nullable = self.nullable[part] and (ended or current == unit) and count >= minimum
        return self._node(("window", part, unit, current, count, minimum, maximum, ended), nullable)

    # Questions about a whole language.

    def bytes_of(self, node: Node) -> frozenset[int]:
        """Bytes that a node and its derivatives tell from others, and one that stands for all those they do not."""
        if node not in self._bytes:
            chosen = self._told_apart(node)
            self._bytes[node] = frozenset(chosen | {min(_ALL_BYTES - chosen, default=0)})
        return self._bytes[node]

    def _told_apart(self, node: Node) -> set[int]:
        match self.keys[node]:
            case ("literal", text, offset):
                return set(text[offset:])
            case ("byte", ranges):
                members = {byte for low, high in ranges for byte in range(low, high + 1)}
                return members if len(members) <= len(_ALL_BYTES) // 2 else _ALL_BYTES - members
            case ("characters", ranges, _):
                points = [point for low, high in ranges for point in range(low, min(high, low + _FEW) + 1)]
                return set("".join(map(chr, points)).encode()) if len(points) < _FEW else set(_ALL_BYTES)
            case ("concatenation" | "alternation" | "intersection", parts):
                return set().union(*map(self._told_apart, parts))
            case ("complement", part) | ("repetition", part, _, _):
                return self._told_apart(part)
            case ("literals", texts, first, end, depth):
                return {byte for text in self._sets[texts][first:end] for byte in text[depth:]}
            case ("multiple", *_):
                return set(b"-.0123456789")
            case ("window", part, unit, current, *_):
                return self._told_apart(part) | self._told_apart(unit) | self._told_apart(current)
        return set()

    def shortest(self, node: Node) -> int | None:
        """The length of a shortest text, by breadth-first search through all derivatives; None if there is none."""
        if node not in self._shortest:
            seen, frontier, length = {node}, [node], 0
            alphabet = self.bytes_of(node)
            self._shortest[node] = None
            while frontier:
                if any(self.nullable[each] for each in frontier):
                    self._shortest[node] = length
                    break
                following = {self.derivative(each, byte) for each in frontier for byte in alphabet}
                frontier = list(following - seen)
                seen |= following
                length += 1
        return self._shortest[node]

    def is_finite(self, node: Node) -> bool:
        """Whether there are finitely many texts: no derivative on a live path leads back to itself."""
        on_path: set[Node] = set()
        done: set[Node] = set()

        def has_cycle(current: Node) -> bool:
            if current in done or self.shortest(current) is None:
                return False
            if current in on_path:
                return True
            on_path.add(current)
            found = any(has_cycle(self.derivative(current, byte)) for byte in self.bytes_of(node))
            on_path.discard(current)
            done.add(current)
            return found

        return not has_cycle(node)

    # Trees to nodes.

    def translate(self, expression: tree.Expression) -> Node:
        known = self.translated.get(id(expression))
        if known is None:
            known = self.translated[id(expression)] = (expression, self._translate(expression))
        return known[1]

    def _translate(self, expression: tree.Expression) -> Node:
        match expression:
            case tree.Literal(text):
                return self.literal(text)
            case tree.ByteClass(ranges):
                return self._node(("byte", ranges), False) if ranges else _NOTHING
            case tree.CharClass(ranges, json):
                return self._json_characters(ranges) if json else self.characters(_without(ranges, 0xD800, 0xDFFF))
            case tree.Concatenation(parts):
                return self.concatenation(tuple(map(self.translate, parts)))
            case tree.Alternation(parts):
                return self.alternation(list(map(self.translate, parts)))
            case tree.Intersection(parts):
                return self.intersection(list(map(self.translate, parts)))
            case tree.Complement(part):
                return self.complement(self.translate(part))
            case tree.Repetition(part, minimum, maximum):
                return self.repetition(self.translate(part), minimum, maximum)
            case tree.LiteralSet(texts):
                return self._literal_set(texts)
            case tree.Multiple(divisor, scale):
                return self.multiple(divisor, scale, "start", 0, 0)
            case tree.Window(part, unit, minimum, maximum):
                one = self.translate(unit)
                return self.window(self.translate(part), one, one, 0, minimum, maximum, False)
        raise TypeError(f"not a regular expression tree: {expression!r}")

    def _literal_set(self, texts: tuple[bytes, ...]) -> Node:
        self._sets.append(tuple(sorted(set(texts))))
        return self.literals(len(self._sets) - 1, 0, len(self._sets[-1]), 0)

    def _json_characters(self, ranges: tree.Ranges) -> Node:
        spelled = tuple(
            text for point, text in _JSON_SPELLINGS.items() if any(low <= point <= high for low, high in ranges)
        )
        plain = _without(ranges, 0xD800, 0xDFFF)
        for point in _JSON_SPELLINGS:
            plain = _without(plain, point, point)
        return self.alternation([self.characters(plain), self._literal_set(spelled)])

    # Derivatives.

    def derivative(self, node: Node, byte: int) -> Node:
        key = (node, byte)
        result = self._derivatives.get(key)
        if result is None:
            result = self._derivatives[key] = self._derive(node, byte)
        return result

    def _derive(self, node: Node, byte: int) -> Node:
        match self.keys[node]:
            case ("literal", text, offset):
                return self.literal(text, offset + 1) if text[offset] == byte else _NOTHING
            case ("byte", ranges):
                return _EMPTY if any(low <= byte <= high for low, high in ranges) else _NOTHING
            case ("characters", ranges, prefix):
                return self.characters(ranges, prefix + bytes((byte,)))
            case ("concatenation", parts):
                results = []
                for index, part in enumerate(parts):
                    results.append(self.concatenation((self.derivative(part, byte), *parts[index + 1 :])))
                    if not self.nullable[part]:
                        break
                return self.alternation(results)
            case ("alternation", parts):
                return self.alternation([self.derivative(part, byte) for part in parts])
            case ("intersection", parts):
                return self.intersection([self.derivative(part, byte) for part in parts])
            case ("complement", part):
                return self.complement(self.derivative(part, byte))
            case ("repetition", part, minimum, maximum):
                rest = self.repetition(part, max(minimum - 1, 0), None if maximum is None else maximum - 1)
                return self.concatenation((self.derivative(part, byte), rest))
            case ("literals", texts, first, end, depth):
                return self._derive_literals(texts, first, end, depth, byte)
            case ("multiple", divisor, scale, phase, remainder, fraction):
                return self._derive_multiple(divisor, scale, phase, remainder, fraction, byte)
            case ("window", part, unit, current, count, minimum, maximum, ended):
                return self._derive_window(part, unit, current, count, minimum, maximum, ended, byte)
        return _NOTHING

    def _derive_literals(self, texts: int, first: int, end: int, depth: int, byte: int) -> Node:
        members = self._sets[texts]
        if len(members[first]) == depth:
            first += 1
        start = bisect_left(members, byte, first, end, key=lambda text: text[depth])
        stop = bisect_right(members, byte, first, end, key=lambda text: text[depth])
        return self.literals(texts, start, stop, depth + 1)

    def _derive_multiple(self, divisor: int, scale: int, phase: str, remainder: int, fraction: int, byte: int) -> Node:
        # The remainder is that of (value so far) * 10**scale modulo the divisor; digits beyond the scale must be 0.
        if byte == _MINUS and phase == "start":
            return self.multiple(divisor, scale, "signed", 0, 0)
        if byte == _POINT and phase == "integer":
            return self.multiple(divisor, scale, "point", remainder, 0)
        digit = byte - ord("0")
        if not 0 <= digit <= 9:
            return _NOTHING
        if phase in ("start", "signed", "integer"):
            remainder = (remainder * 10 + digit * 10**scale) % divisor
            return self.multiple(divisor, scale, "integer", remainder, 0)
        if fraction == scale:
            return _NOTHING if digit else self.multiple(divisor, scale, "fraction", remainder, fraction)
        remainder = (remainder + digit * 10 ** (scale - fraction - 1)) % divisor
        return self.multiple(divisor, scale, "fraction", remainder, fraction + 1)

    def _derive_window(
        self,
        part: Node,
        unit: Node,
        current: Node,
        count: int,
        minimum: int,
        maximum: int | None,
        ended: bool,
        byte: int,
    ) -> Node:
        part = self.derivative(part, byte)
        if ended:
            return self.window(part, unit, unit, count, minimum, maximum, True)
        inside = self.derivative(current, byte)
        if inside == _NOTHING:
            if current != unit:
                return _NOTHING
            return self.window(part, unit, unit, count, minimum, maximum, True)
        if self.nullable[inside]:  # the unit is prefix-free: it is complete
            return self.window(part, unit, unit, count + 1, minimum, maximum, False)
        return self.window(part, unit, inside, count, minimum, maximum, False)

    def __len__(self) -> int:
        return len(self.keys) + len(self._derivatives)


_JSON_SPELLINGS = {point: b"\\u%04x" % point for point in range(0x20)} | {
    ord('"'): b'\\"',
    ord("\\"): b"\\\\",
    0x08: b"\\b",
    0x09: b"\\t",
    0x0A: b"\\n",
    0x0C: b"\\f",
    0x0D: b"\\r",
}


def _without(ranges: tree.Ranges, first: int, last: int) -> tree.Ranges:
    """``ranges`` less one interval."""
    result = []
    for low, high in ranges:
        result += [(low, min(high, first - 1)), (max(low, last + 1), high)]
    return tuple((low, high) for low, high in result if low <= high)


def _code_points(prefix: bytes) -> tuple[int, int, bool]:
    """First and last code point whose encoding begins with ``prefix`` (last < first: none), and: is it complete."""
    if not prefix:
        return 0, tree.MAX_CODE_POINT, False
    lead, follow = prefix[0], prefix[1:]
    if lead < 0x80:
        length, least, bits = 1, 0, lead
    elif 0xC0 <= lead < 0xE0:
        length, least, bits = 2, 0x80, lead & 0x1F
    elif 0xE0 <= lead < 0xF0:
        length, least, bits = 3, 0x800, lead & 0x0F
    elif 0xF0 <= lead < 0xF8:
        length, least, bits = 4, 0x10000, lead & 0x07
    else:
        return 1, 0, False
    for byte in follow:
        if byte & 0xC0 != 0x80:
            return 1, 0, False
        bits = bits << 6 | byte & 0x3F
    missing = 6 * (length - len(prefix))
    first, last = bits << missing, (bits + 1 << missing) - 1
    return max(first, least), min(last, tree.MAX_CODE_POINT), missing == 0


_stores = [_Store()]


def matches(expression: tree.Expression, text: bytes) -> bool:
    """Does the tree match the whole of ``text``?"""
    if len(_stores[0]) > _MAX_NODES:
        _stores[0] = _Store()
    store = _stores[0]
    node = store.translate(expression)
    for byte in text:
        node = store.derivative(node, byte)
        if node == _NOTHING:
            return False
    return store.nullable[node]
