"""Languages of string contents as automata of derivatives, built as far as a question needs them.

Brzozowski derivatives over interned nodes, on decoded code points, with one representative for each class of code
points that no part of the expression tells apart (Brzozowski 1964; Owens, Reppy and Turon 2009).
"""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from typing import TYPE_CHECKING

from constrain._errors import LimitError
from constrain.regex import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from constrain.regex.tree import Expression, Ranges

MAX_LANGUAGE_STATES = 5_000
"""States explored to answer one question: real patterns stay below 100, counted ones add their counts."""

MAX_COMPILATION_STATES = 10_000
"""States explored for all questions of one compilation, which bounds its time to a second or two."""

MAX_LENGTH_STEPS = 20_000
"""Lengths tried before their pattern must have shown its period."""

PUMPED = "a0~A-"
"""Characters tried first to show that a language is infinite."""

MAX_PUMPED = 30
"""How often each of them is repeated before a full exploration decides."""

Node = int
NOTHING, EMPTY_TEXT = 0, 1
UNIVERSE: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))


class _Work(threading.local):
    """States that the compilation under way in this thread may still explore."""

    left = MAX_COMPILATION_STATES


_work = _Work()


def begin_compilation() -> None:
    """Allows this thread MAX_COMPILATION_STATES states from here on."""
    _work.left = MAX_COMPILATION_STATES


def _spend() -> None:
    _work.left -= 1
    if _work.left < 0:
        raise LimitError(
            f"deciding all patterns takes more than MAX_COMPILATION_STATES = {MAX_COMPILATION_STATES} states"
        )


def decode(spelled: bytes) -> str:
    """The code points that a piece of JSON string content stands for."""
    text = spelled.decode()
    if "\\" not in text:
        return text
    decoded: str = json.loads(f'"{text}"')
    return decoded


class TooManyStatesError(LimitError):
    """One question takes more states than it may."""

    def __init__(self) -> None:
        super().__init__(f"deciding a pattern takes more than MAX_LANGUAGE_STATES = {MAX_LANGUAGE_STATES} states")


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
        self._nonempty: bool | None = None
        self._successors: dict[Node, frozenset[Node]] = {}

    def __len__(self) -> int:
        return len(self.keys) + len(self._derivatives)

    # Making nodes, with the simplifications that keep the number of derivatives finite.

    def _node(self, key: tuple[object, ...], *, nullable: bool) -> Node:
        node = self._ids.get(key)
        if node is None:
            if len(self.keys) > 20 * MAX_LANGUAGE_STATES:
                raise TooManyStatesError
            node = self._ids[key] = len(self.keys)
            self.keys.append(key)
            self.nullable.append(nullable)
        return node

    def _set(self, ranges: Ranges) -> Node:
        if not ranges:
            return NOTHING
        self._sets.setdefault(ranges)
        return self._node(("set", ranges), nullable=False)

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
            assert isinstance(head, int)
            assert isinstance(tail, int)
            return self._join(head, self._join(tail, rest))
        return self._node(("join", first, rest), nullable=self.nullable[first] and self.nullable[rest])

    def _or(self, nodes: Iterable[Node]) -> Node:
        flat = self._flat("or", nodes)
        flat.discard(NOTHING)
        if self._any in flat:
            return self._any
        if len(flat) < 2:
            return flat.pop() if flat else NOTHING
        return self._node(("or", tuple(sorted(flat))), nullable=any(self.nullable[node] for node in flat))

    def _and(self, nodes: Iterable[Node]) -> Node:
        flat = self._flat("and", nodes)
        flat.discard(self._any)
        if NOTHING in flat:
            return NOTHING
        if len(flat) < 2:
            return flat.pop() if flat else self._any
        return self._node(("and", tuple(sorted(flat))), nullable=all(self.nullable[node] for node in flat))

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
        return self._node(("not", node), nullable=not self.nullable[node])

    def _repeat(self, node: Node, minimum: int, maximum: int | None) -> Node:
        if maximum == 0 or node == EMPTY_TEXT:
            return EMPTY_TEXT
        if node == NOTHING:
            return EMPTY_TEXT if minimum == 0 else NOTHING
        if self.nullable[node]:
            minimum = 0
        if minimum == maximum == 1:
            return node
        return self._node(("repeat", node, minimum, maximum), nullable=minimum == 0)

    def _translate(self, expression: Expression) -> Node:
        match expression:
            case tree.Literal(text):
                node = EMPTY_TEXT
                for char in reversed(decode(text)):
                    node = self._join(self._set(((ord(char), ord(char)),)), node)
                return node
            case tree.CharClass(ranges) | tree.ByteClass(ranges):
                return self._set(encodable(ranges))
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
        for start, end in pairwise(boundaries):
            signature ^= changes.get(start, 0)
            if 0xD800 <= start < 0xE000:
                continue
            representative, size = classes.get(signature, (start, 0))
            classes[signature] = (representative, size + end - start)
        return list(classes.values())

    def _explore(
        self, done: Callable[[Node], bool] | None, limit: int = MAX_LANGUAGE_STATES
    ) -> dict[Node, list[tuple[Node, int]]]:
        """All states from the root with their steps (target, how many code points lead there), until ``done``."""
        classes = self._classes()
        states: dict[Node, list[tuple[Node, int]]] = {self.root: []}
        queue = [self.root]
        for node in queue:
            if done is not None and done(node):
                break
            steps = states[node]
            for representative, size in classes:
                target = self.derivative(node, representative)
                if target == NOTHING:
                    continue
                steps.append((target, size))
                if target not in states:
                    if len(states) >= limit:
                        raise TooManyStatesError
                    _spend()
                    states[target] = []
                    queue.append(target)
        return states

    def has(self, minimum: int, maximum: int | None, limit: int) -> bool:
        """Whether a text of ``minimum`` to ``maximum`` code points matches; looks at up to ``limit`` states."""
        return self._has_text(limit) if minimum == 0 and maximum is None else self._has_length(minimum, maximum, limit)

    def _has_text(self, limit: int) -> bool:
        """Whether any text leads to a match."""
        if self._nonempty is None:
            states = self._explore(lambda node: self.nullable[node], limit)
            self._nonempty = any(self.nullable[node] for node in states)
        return self._nonempty

    def _has_length(self, minimum: int, maximum: int | None, limit: int) -> bool:
        """Whether a text of ``minimum`` to ``maximum`` code points matches.

        Looks at the sets of states that the texts of length 0, 1, 2 ... lead to; this sequence is periodic in the
        end, so that no large length is ever walked to.
        """
        classes = self._classes()
        seen: dict[frozenset[Node], int] = {}
        reached: list[bool] = []  # for each length: does a text of it match?
        current = frozenset((self.root,))
        while current and current not in seen:
            length = len(reached)
            if maximum is not None and length > maximum:
                return False
            if length > MAX_LENGTH_STEPS:
                raise LimitError(
                    f"deciding the lengths of a pattern takes more than MAX_LENGTH_STEPS = {MAX_LENGTH_STEPS}"
                )
            matching = any(self.nullable[node] for node in current)
            if matching and length >= minimum:
                return True
            seen[current] = length
            reached.append(matching)
            current = frozenset(target for node in current for target in self._targets(node, classes, limit))
        if not current:
            return False
        start, period = seen[current], len(reached) - seen[current]
        first = max(minimum, start)
        last = first + period - 1 if maximum is None else min(maximum, first + period - 1)
        return any(reached[start + (length - start) % period] for length in range(first, last + 1))

    def _targets(self, node: Node, classes: list[tuple[int, int]], limit: int) -> frozenset[Node]:
        found = self._successors.get(node)
        if found is None:
            if len(self._successors) >= limit:
                raise TooManyStatesError
            _spend()
            derivatives = {self.derivative(node, representative) for representative, _ in classes}
            found = self._successors[node] = frozenset(derivatives - {NOTHING})
        return found

    def pumps(self) -> bool:
        """A quick proof that the language is infinite: one character, repeated for ever, matches again and again."""
        for char in PUMPED:
            node, seen = self.root, dict.fromkeys((NOTHING,), 0)
            path: list[Node] = []
            while node not in seen and len(path) < MAX_PUMPED:
                seen[node] = len(path)
                path.append(node)
                node = self.derivative(node, ord(char))
            if node != NOTHING and node in seen and any(self.nullable[inner] for inner in path[seen[node] :]):
                return True
        return False

    def count(self) -> int | None:
        """The number of texts; ``None`` if without end: some cycle lies on a way to a match."""
        states = self._explore(None)
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


def encodable(ranges: Ranges) -> Ranges:
    """The ranges without surrogates, which no text holds."""
    return tuple(
        (max(first, low), min(last, high))
        for first, last in ranges
        for low, high in UNIVERSE
        if max(first, low) <= min(last, high)
    )
