"""Questions about the language of an expression: is a text in it, is it empty, do two overlap, how many texts has it.

Expressions here describe the content of JSON strings, and are decided on decoded code points: Brzozowski
derivatives over interned nodes, one representative for each class of code points that no part of the expression
tells apart (Brzozowski 1964; Owens, Reppy and Turon 2009). Only schemas with key patterns, or with several
conditions on one string, ever come here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from threading import RLock

from constrain._errors import LimitError
from constrain.regex import tree
from constrain.regex.tree import ANY_JSON_CHAR, Expression, Ranges

MAX_LANGUAGE_STATES = 5_000
"""States explored to answer one question: real patterns stay below 100, counted ones add their counts."""

MAX_CACHED_LANGUAGES = 256
"""Languages whose derivatives are remembered; the oldest go first."""

PUMPED = "a0~A-"
"""Characters tried first to show that a language is infinite."""

MAX_PUMPED = 30
"""How often each of them is repeated before a full exploration decides."""

MANY = 1_000_000
"""Numbers of texts from here on are not told apart: no answer of a model has as many different keys."""

Node = int
NOTHING, EMPTY_TEXT = 0, 1
UNIVERSE: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))

_lock = RLock()
_languages: dict[int, tuple[Expression, Language]] = {}


def matches(expression: Expression, text: str) -> bool:
    """Whether the (decoded) text is in the language."""
    with _lock:
        language = _language(expression)
        node = language.root
        for char in text:
            node = language.derivative(node, ord(char))
            if node == NOTHING:
                return False
        return language.nullable[node]


def is_empty(expression: Expression) -> bool:
    """Whether the language has no text at all. Raises LimitError if that takes more than MAX_LANGUAGE_STATES."""
    if _surely_nonempty(expression):
        return False
    with _lock:
        return not _language(expression).has_text()


@lru_cache(maxsize=1024)
def are_disjoint(a: Expression, b: Expression) -> bool:
    """Whether no text is in both languages."""
    return is_empty(tree.Intersection((a, b)))


def count_texts(expression: Expression) -> int | None:
    """How many texts the language has; ``None`` if at least MANY."""
    if _least_count(expression) >= MANY:
        return None
    with _lock:
        language = _language(expression)
        total = None if language.pumps() else language.count()
    return None if total is None or total >= MANY else total


def _least_count(expression: Expression) -> int:
    """A lower bound of the number of texts, quickly found: ``MANY`` or more for most patterns."""
    match expression:
        case tree.Literal():
            return 1
        case tree.LiteralSet(texts):
            return len(texts)
        case tree.CharClass(ranges) | tree.ByteClass(ranges):
            return sum(last - first + 1 for first, last in _encodable(ranges))
        case tree.Concatenation(parts):  # different beginnings before one and the same end are different texts
            counts = [_least_count(part) for part in parts]
            return 0 if 0 in counts else max(counts, default=1)
        case tree.Alternation(parts):
            return max(map(_least_count, parts), default=0)
        case tree.Repetition(part, minimum, maximum):
            count = _least_count(part)
            if maximum == 0 or count == 0:
                return int(minimum == 0)
            if maximum is None:
                return MANY if count > 1 or _lengths(part) not in (None, (0, 0)) else 1
            return int(min(float(count) ** min(maximum, 20), MANY)) if isinstance(part, tree.CharClass) else count
    return 0


def _language(expression: Expression) -> Language:
    found = _languages.get(id(expression))
    if found is None:
        if len(_languages) >= MAX_CACHED_LANGUAGES:
            del _languages[next(iter(_languages))]
        found = _languages[id(expression)] = (expression, Language(expression))
    return found[1]


def _surely_nonempty(expression: Expression) -> bool:
    """A quick proof for the expressions that most patterns and formats are; never wrong when it says yes."""
    match expression:
        case tree.Literal():
            return True
        case tree.LiteralSet(texts):
            return bool(texts)
        case tree.CharClass(ranges) | tree.ByteClass(ranges):
            return any(first < 0xD800 or last > 0xDFFF for first, last in ranges)
        case tree.Concatenation(parts):
            return all(map(_surely_nonempty, parts))
        case tree.Alternation(parts):
            return any(map(_surely_nonempty, parts))
        case tree.Repetition(part, minimum):
            return minimum == 0 or _surely_nonempty(part)
        case tree.Window(part, unit, minimum, maximum) if unit is ANY_JSON_CHAR:
            lengths = _lengths(part)
            if lengths is None or not _surely_nonempty(part):
                return False
            least, greatest = lengths
            return (maximum is None or least <= maximum) and (greatest is None or minimum <= greatest)
    return False


def _lengths(expression: Expression) -> tuple[int, int | None] | None:
    """The least and the greatest length in code points if every length between them occurs; otherwise ``None``."""
    match expression:
        case tree.Literal(text):
            length = len(_decode(text))
            return length, length
        case tree.CharClass():
            return 1, 1
        case tree.Concatenation(parts):
            least, greatest = 0, 0
            for part in parts:
                lengths = _lengths(part)
                if lengths is None:
                    return None
                least += lengths[0]
                greatest = None if greatest is None or lengths[1] is None else greatest + lengths[1]
            return least, greatest
        case tree.Repetition(part, minimum, maximum):
            lengths = _lengths(part)
            if lengths is None or lengths[0] > 1 or (lengths[0] == 0 and lengths[1] == 0):
                return None
            longest = None if maximum is None or lengths[1] is None else maximum * lengths[1]
            return minimum * lengths[0], longest
    return None


def _decode(spelled: bytes) -> str:
    """The code points that a piece of JSON string content stands for."""
    text = spelled.decode()
    if "\\" not in text:
        return text
    decoded: str = json.loads(f'"{text}"')
    return decoded


class Language:
    """Interned nodes and their derivatives; ``root`` is the expression.

    Node keys: ``("set", ranges)``, ``("join", first, rest)``, ``("or", nodes)``, ``("and", nodes)``,
    ``("not", node)``, ``("repeat", node, minimum, maximum)``.
    """

    def __init__(self, expression: Expression) -> None:
        self.keys: list[tuple[object, ...]] = [("nothing",), ("empty",)]
        self.nullable: list[bool] = [False, True]
        self._ids: dict[tuple[object, ...], Node] = {}
        self._derivatives: dict[tuple[Node, int], Node] = {}
        self._sets: dict[Ranges, None] = {}
        self._any = self._repeat(self._set(UNIVERSE), 0, None)
        self.root = self._translate(expression)

    # Making nodes, with the simplifications that keep the number of derivatives finite.

    def _node(self, key: tuple[object, ...], nullable: bool) -> Node:
        node = self._ids.get(key)
        if node is None:
            if len(self.keys) > 20 * MAX_LANGUAGE_STATES:
                raise LimitError(f"deciding a pattern takes more than MAX_LANGUAGE_STATES = {MAX_LANGUAGE_STATES}")
            node = self._ids[key] = len(self.keys)
            self.keys.append(key)
            self.nullable.append(nullable)
        return node

    def _set(self, ranges: Ranges) -> Node:
        if not ranges:
            return NOTHING
        self._sets.setdefault(ranges)
        return self._node(("set", ranges), False)

    def _join(self, first: Node, rest: Node) -> Node:
        if first == NOTHING or rest == NOTHING:
            return NOTHING
        if first == EMPTY_TEXT:
            return rest
        if rest == EMPTY_TEXT:
            return first
        key = self.keys[first]
        if key[0] == "join":
            _, head, tail = key
            assert isinstance(head, int) and isinstance(tail, int)
            return self._join(head, self._join(tail, rest))
        return self._node(("join", first, rest), self.nullable[first] and self.nullable[rest])

    def _or(self, nodes: Iterable[Node]) -> Node:
        flat = self._flat("or", nodes)
        flat.discard(NOTHING)
        if self._any in flat:
            return self._any
        if len(flat) < 2:
            return flat.pop() if flat else NOTHING
        return self._node(("or", tuple(sorted(flat))), any(self.nullable[node] for node in flat))

    def _and(self, nodes: Iterable[Node]) -> Node:
        flat = self._flat("and", nodes)
        flat.discard(self._any)
        if NOTHING in flat:
            return NOTHING
        if len(flat) < 2:
            return flat.pop() if flat else self._any
        return self._node(("and", tuple(sorted(flat))), all(self.nullable[node] for node in flat))

    def _flat(self, kind: str, nodes: Iterable[Node]) -> set[Node]:
        flat: set[Node] = set()
        for node in nodes:
            key = self.keys[node]
            if key[0] == kind:
                assert isinstance(key[1], tuple)
                flat.update(key[1])
            else:
                flat.add(node)
        return flat

    def _not(self, node: Node) -> Node:
        if node == NOTHING:
            return self._any
        if node == self._any:
            return NOTHING
        key = self.keys[node]
        if key[0] == "not":
            assert isinstance(key[1], int)
            return key[1]
        return self._node(("not", node), not self.nullable[node])

    def _repeat(self, node: Node, minimum: int, maximum: int | None) -> Node:
        if maximum == 0 or node == EMPTY_TEXT:
            return EMPTY_TEXT
        if node == NOTHING:
            return EMPTY_TEXT if minimum == 0 else NOTHING
        if self.nullable[node]:
            minimum = 0
        if minimum == maximum == 1:
            return node
        return self._node(("repeat", node, minimum, maximum), minimum == 0)

    def _translate(self, expression: Expression) -> Node:
        match expression:
            case tree.Literal(text):
                node = EMPTY_TEXT
                for char in reversed(_decode(text)):
                    node = self._join(self._set(((ord(char), ord(char)),)), node)
                return node
            case tree.CharClass(ranges) | tree.ByteClass(ranges):
                return self._set(_encodable(ranges))
            case tree.Concatenation(parts):
                node = EMPTY_TEXT
                for part in reversed(parts):
                    node = self._join(self._translate(part), node)
                return node
            case tree.Alternation(parts):
                return self._or([self._translate(part) for part in parts])
            case tree.Intersection(parts):
                return self._and([self._translate(part) for part in parts])
            case tree.Complement(part):
                return self._not(self._translate(part))
            case tree.Repetition(part, minimum, maximum):
                return self._repeat(self._translate(part), minimum, maximum)
            case tree.LiteralSet(texts):
                return self._or([self._translate(tree.Literal(text)) for text in texts])
            case tree.Window(part, unit, minimum, maximum):
                return self._and([self._translate(part), self._repeat(self._translate(unit), minimum, maximum)])
            case tree.Multiple():
                raise AssertionError("a number inside the content of a string")

    # Stepping.

    def derivative(self, node: Node, char: int) -> Node:
        """What may follow after ``char``."""
        if node < 2:
            return NOTHING
        found = self._derivatives.get((node, char))
        if found is None:
            found = self._derivatives[node, char] = self._derive(node, char)
        return found

    def _derive(self, node: Node, char: int) -> Node:
        derivative = self.derivative
        match self.keys[node]:
            case ("set", tuple(ranges)):
                return EMPTY_TEXT if any(first <= char <= last for first, last in ranges) else NOTHING
            case ("join", int(first), int(rest)):
                step = self._join(derivative(first, char), rest)
                return self._or((step, derivative(rest, char))) if self.nullable[first] else step
            case ("or", tuple(nodes)):
                return self._or([derivative(inner, char) for inner in nodes])
            case ("and", tuple(nodes)):
                return self._and([derivative(inner, char) for inner in nodes])
            case ("not", int(inner)):
                return self._not(derivative(inner, char))
            case ("repeat", int(inner), int(minimum), maximum):
                assert maximum is None or isinstance(maximum, int)
                rest = self._repeat(inner, max(minimum - 1, 0), None if maximum is None else maximum - 1)
                return self._join(derivative(inner, char), rest)
        raise AssertionError("an unknown node")

    # Exploring.

    def _classes(self) -> list[tuple[int, int]]:
        """For each class of code points that no set tells apart: a representative and the size of the class."""
        starts: dict[int, int] = {first: 0 for first, _ in UNIVERSE}
        changes: dict[int, int] = {}
        for bit, ranges in enumerate(self._sets):
            for first, last in ranges:
                changes[first] = changes.get(first, 0) ^ (1 << bit)
                changes[last + 1] = changes.get(last + 1, 0) ^ (1 << bit)
        boundaries = sorted({*starts, *changes, 0xD800, 0x110000})
        signature = 0
        classes: dict[int, tuple[int, int]] = {}
        for start, end in zip(boundaries, boundaries[1:], strict=False):
            signature ^= changes.get(start, 0)
            if 0xD800 <= start < 0xE000:
                continue
            representative, size = classes.get(signature, (start, 0))
            classes[signature] = (representative, size + end - start)
        return list(classes.values())

    def _explore(self, done: Callable[[Node], bool]) -> dict[Node, list[tuple[Node, int]]]:
        """All states from the root with their steps (target, how many code points lead there), until ``done``."""
        classes = self._classes()
        states: dict[Node, list[tuple[Node, int]]] = {self.root: []}
        queue = [self.root]
        for node in queue:
            if done(node):
                break
            steps = states[node]
            for representative, size in classes:
                target = self.derivative(node, representative)
                if target == NOTHING:
                    continue
                steps.append((target, size))
                if target not in states:
                    if len(states) >= MAX_LANGUAGE_STATES:
                        raise LimitError(
                            f"deciding a pattern takes more than MAX_LANGUAGE_STATES = {MAX_LANGUAGE_STATES}"
                        )
                    states[target] = []
                    queue.append(target)
        return states

    def has_text(self) -> bool:
        """Whether any text leads to a match."""
        return any(self.nullable[node] for node in self._explore(lambda node: self.nullable[node]))

    def pumps(self) -> bool:
        """A quick proof that the language is infinite: one character, repeated for ever, matches again and again."""
        for char in PUMPED:
            node, seen = self.root, dict.fromkeys((NOTHING,), 0)
            path = []
            while node not in seen and len(path) < MAX_PUMPED:
                seen[node] = len(path)
                path.append(node)
                node = self.derivative(node, ord(char))
            if node != NOTHING and node in seen and any(self.nullable[inner] for inner in path[seen[node] :]):
                return True
        return False

    def count(self) -> int | None:
        """The number of texts; ``None`` if without end: some cycle lies on a way to a match."""
        states = self._explore(lambda node: False)
        before: dict[Node, list[Node]] = {node: [] for node in states}
        for node, steps in states.items():
            for target, _ in steps:
                before[target].append(node)
        useful = {node for node in states if self.nullable[node]}
        stack = list(useful)
        while stack:
            for node in before[stack.pop()]:
                if node not in useful:
                    useful.add(node)
                    stack.append(node)
        pending = {node: sum(target in useful for target, _ in states[node]) for node in useful}
        ready = [node for node, number in pending.items() if number == 0]
        totals: dict[Node, int] = {}
        while ready:
            node = ready.pop()
            inner = sum(size * totals[target] for target, size in states[node] if target in useful)
            totals[node] = self.nullable[node] + inner
            for source in before[node]:
                if source in useful:
                    pending[source] -= 1
                    if pending[source] == 0:
                        ready.append(source)
        if len(totals) < len(useful):
            return None
        return totals.get(self.root, 0)


def _encodable(ranges: Ranges) -> Ranges:
    """The ranges without surrogates, which no text holds."""
    return tuple(
        (max(first, low), min(last, high))
        for first, last in ranges
        for low, high in UNIVERSE
        if max(first, low) <= min(last, high)
    )
