"""``Captures``: the parts of a text that a grammar or a pattern gives names to.

``Derivation`` takes one of the ways in which ``Earley`` reads a text, from left to right: every part of a rule is as
long as possible, and of equally long ways the first one in the grammar counts.
"""

from __future__ import annotations

from bisect import bisect_right
from codecs import getincrementaldecoder
from heapq import merge
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from constrain import kernel
from constrain.engine.earley import Earley, Tables, allows
from constrain.errors import LimitError
from constrain.language.grammar import EPSILON
from constrain.language.special import BEGIN, END, without_special
from constrain.work import MAX_CAPTURE_WORK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from constrain.engine.earley import Lexemes
    from constrain.language.grammar import Capture, Edge, Grammar
    from constrain.language.tree import Expression
    from constrain.regex.parsing.scanner import Dialect

CAPTURES_LIMIT = f"{MAX_CAPTURE_WORK=}".partition("=")[0]
"""The name of this limit, for ``Completion.limits_met``."""

TOO_MUCH_WORK = f"this text takes too many steps to read again, for its captures ({CAPTURES_LIMIT})"
"""The message of the error beyond this limit."""

_SPECIAL_BEGIN, _SPECIAL_END = BEGIN[0], END[0]


class Captures(dict[str, "str | list[str]"]):
    """The parts of a text that a grammar gives names to: a dict from names to texts.

    A name that was read once has its text; a name that was read several times has a list of texts, in the order in
    which they begin. A name that was not read is missing.

    Attributes:
        spans: by name, where its texts are: pairs of a start and an end, as for slices of the text.
    """

    __slots__ = ("spans",)

    def __init__(
        self,
        texts: Mapping[str, str | list[str]] | None = None,
        spans: Mapping[str, list[tuple[int, int]]] | None = None,
    ) -> None:
        super().__init__(texts or {})
        self.spans: dict[str, list[tuple[int, int]]] = dict(spans or {})

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles and copies the spans, too."""
        return Captures, (dict(self), self.spans)


class Named(NamedTuple):
    """A part of a text: its name, its start and its end, in bytes or characters."""

    name: str
    start: int
    end: int


def captures_of(text: str, parts: Iterable[Named]) -> Captures:
    """Returns the captures for parts of a text, in characters, in the order in which they were read."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for part in parts:
        spans.setdefault(part.name, []).append((part.start, part.end))
    texts = {name: [text[start:end] for start, end in each] for name, each in spans.items()}
    return Captures({name: each[0] if len(each) == 1 else each for name, each in texts.items()}, spans)


def captures_object(captures: Captures | None) -> dict[str, Any]:
    """Returns the members of an answer as JSON: ``captures`` and ``capture_spans``; none if nothing was captured."""
    if not captures:
        return {}
    spans = {name: each[0] if len(each) == 1 else each for name, each in captures.spans.items()}
    return {"captures": dict(captures), "capture_spans": spans}


def has_captures(grammar: Grammar) -> bool:
    """Returns whether some rule of a grammar has a name for captures."""
    return any(rule.capture is not None for rule in grammar.rules)


def read_captures(grammar: Grammar, text: bytes, lexemes: Lexemes) -> Captures:
    """Returns the captures of a text, from its lexemes; ``text`` has special tokens as the kernel reads them.

    Raises LimitError (MAX_CAPTURE_WORK).
    """
    shown = without_special(text).decode("utf-8", "replace")
    characters = _characters_before(text)
    parts = _Parts(grammar, text, lexemes).parts()
    return captures_of(shown, (Named(name, characters[start], characters[end]) for name, start, end in parts))


class _Parts:
    """The named parts of a text. Their own texts begin behind ignored text in front of them."""

    def __init__(self, grammar: Grammar, text: bytes, lexemes: Lexemes) -> None:
        self._grammar = grammar
        self._text = text
        self._lexemes = lexemes
        self._borders = lexemes.offsets
        self._work = 0

    def parts(self) -> list[Named]:
        """Returns the named parts in the order of their starts, outer ones first."""
        captured: list[tuple[Capture, int, int]] = []
        starts: dict[int, int] = {}
        for symbol, first, last in Derivation(self._grammar, self._lexemes).readings():
            end = self._borders[last]
            if symbol >= 0:
                starts.setdefault(first, self._own_start(self._grammar.terminals[symbol].bare, first, end))
                continue
            rule = self._grammar.rules[~symbol]
            if rule.bare is not None:
                starts.setdefault(first, self._own_start(rule.bare, first, end))
            if rule.capture is not None:
                captured.append((rule.capture, first, end))
        found = [
            part
            for capture, first, end in captured
            for part in self._named(capture, min(starts.get(first, end), end), end)
        ]
        return sorted(found, key=lambda part: part.start)

    def _own_start(self, bare: Expression | None, first: int, end: int) -> int:
        """Returns where a lexeme's own text, which may be empty, begins: as early as its expression allows."""
        start = self._borders[first]
        if bare is None:
            return start
        return next((at for at in range(start, end + 1) if self._matches(bare, at, end)), start)

    def _matches(self, expression: Expression, start: int, end: int) -> bool:
        """Returns whether an expression matches a part of the text; each byte is a step."""
        self._work += end - start
        if self._work > MAX_CAPTURE_WORK:
            raise LimitError(TOO_MUCH_WORK)
        return kernel.matches(expression, self._text[start:end])

    def _named(self, capture: Capture, start: int, end: int) -> list[Named]:
        """Returns the parts of a rule's text that have names."""
        if capture.pattern is not None:
            return self._groups(*capture.pattern, start, end)
        border = end
        if capture.ending is not None and capture.body is not None:
            border = self._ending(capture.body, capture.ending, start, end)
        parts = [Named(capture.name, start, border), Named(capture.ending_name, border, end)]
        return [part for part in parts if part.name]

    def _groups(self, pattern: str, dialect: str, start: int, end: int) -> list[Named]:
        """Returns the named groups of a pattern in a rule's text."""
        from constrain.regex.named_groups import named_groups  # takes long to import

        text = self._text[start:end].decode()
        places = list(accumulate((len(char.encode()) for char in text), initial=start))
        groups = named_groups(pattern, cast("Dialect", dialect), text)
        return [Named(group.name, places[group.start], places[group.end]) for group in groups]

    def _ending(self, body: Expression, ending: Expression, start: int, end: int) -> int:
        """Returns where the ending of a text begins: as late as the expressions allow."""
        for at in range(end, start - 1, -1):
            if self._matches(ending, at, end) and self._matches(body, start, at):
                return at
        raise AssertionError("a body and its ending have the text")


class Reading(NamedTuple):
    """A rule, or a terminal, and the lexemes that it reads: from place ``start`` to place ``end``."""

    symbol: int
    start: int
    end: int


class _Node(NamedTuple):
    """A state of a rule that is being read, at a place between lexemes."""

    state: int
    counters: tuple[Any, ...]
    at: int


class Derivation:
    """The ways to read some lexemes by the rules of a grammar. Raises LimitError if there are too many."""

    def __init__(self, grammar: Grammar, lexemes: Lexemes) -> None:
        self._rules = grammar.rules
        self._lexemes = lexemes
        self._tables = Tables(grammar)
        self._reader = Earley(self._tables, lexemes, MAX_CAPTURE_WORK, TOO_MUCH_WORK)
        self._reader.read()
        self._found = self._reader.found
        self._ends: dict[tuple[int, int], list[int]] = {}  # by rule and start, ascending
        for symbol, start, end in self._found:
            self._ends.setdefault((~symbol, start), []).append(end)
        self._contained: dict[int, set[int]] = {}  # by rule

    def readings(self) -> Iterator[Reading]:
        """Yields the rules of one way to read all lexemes, from left to right, each before the parts that it reads."""
        whole = Reading(~0, 0, len(self._lexemes.offsets) - 1)
        assert whole in self._found, "the lexemes are those of a text that matches"
        waiting = [whole]
        while waiting:
            reading = waiting.pop()
            yield reading
            if reading.symbol < 0:
                waiting.extend(reversed(self._parts(reading)))

    # The way from left to right

    def _parts(self, whole: Reading) -> list[Reading]:
        """Returns what a rule reads, in order.

        A part as long as the rule, of a rule that may contain this one, was found before it: no way is a circle.
        """
        start = _Node(0, self._tables.fresh[~whole.symbol], whole.start)
        seen = {start}
        path: list[tuple[Reading | None, Iterator[tuple[Reading, _Node]]]] = [(None, self._onward(whole, start))]
        if self._may_end(whole, start):
            return []
        while path:
            step = next(path[-1][1], None)
            if step is None:
                path.pop()
                continue
            reading, node = step
            if node in seen:
                continue
            seen.add(node)
            path.append((reading, self._onward(whole, node)))
            if self._may_end(whole, node):
                return [each for each, _ in path if each is not None]
        raise AssertionError(whole)

    def _may_end(self, whole: Reading, node: _Node) -> bool:
        accepting = self._rules[~whole.symbol].accepting
        return node.at == whole.end and any(each.state in accepting for each in self._without_reading(whole, node))

    def _onward(self, whole: Reading, node: _Node) -> Iterator[tuple[Reading, _Node]]:
        """Returns what may be read next in a rule, the longest part first."""
        ways = [
            self._steps(whole, edge, each)
            for each in self._without_reading(whole, node)
            for _, edge in self._tables.edges[~whole.symbol].get(each.state, ())
            if edge.symbol is not EPSILON and allows(edge, each.counters)
        ]
        return merge(*ways, key=lambda step: -self._lexemes.offsets[step[0].end])

    def _steps(self, whole: Reading, edge: Edge, node: _Node) -> Iterator[tuple[Reading, _Node]]:
        """Yields the ways to take one edge, the longest first."""
        symbol, at = edge.symbol, node.at
        assert symbol is not None
        counters = self._reader.after(~whole.symbol, node.counters, edge)
        if symbol >= 0:
            for lexeme in self._lexemes.after[at]:
                if lexeme.end <= whole.end and symbol in lexeme.terminals:
                    yield Reading(symbol, at, lexeme.end), _Node(edge.target, counters, lexeme.end)
            return
        ends = self._ends.get((~symbol, at), [])
        for number in range(bisect_right(ends, whole.end) - 1, -1, -1):
            self._reader.spend()
            part = Reading(symbol, at, ends[number])
            is_shorter = part.start != whole.start or part.end != whole.end
            if is_shorter or self._found[part] < self._found[whole] or ~whole.symbol not in self._inside(~symbol):
                yield part, _Node(edge.target, counters, part.end)

    def _inside(self, rule: int) -> set[int]:
        """Returns the rules that a rule may contain."""
        if rule not in self._contained:
            found: set[int] = set()
            waiting = [rule]
            while waiting:
                edges = self._rules[waiting.pop()].edges
                new = {~edge.symbol for edge in edges if edge.symbol is not EPSILON and edge.symbol < 0} - found
                found |= new
                waiting += new
            self._contained[rule] = found
        return self._contained[rule]

    def _without_reading(self, whole: Reading, node: _Node) -> list[_Node]:
        """Returns the states of a rule that can be reached from one without reading anything, itself first."""
        rule = ~whole.symbol
        found: dict[_Node, None] = {}
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if each in found:
                continue
            found[each] = None
            waiting.extend(
                _Node(edge.target, self._reader.after(rule, each.counters, edge), each.at)
                for _, edge in reversed(self._tables.edges[rule].get(each.state, ()))
                if edge.symbol is EPSILON and allows(edge, each.counters)
            )
        return list(found)


def _characters_before(text: bytes) -> list[int]:
    """Returns the number of characters before each offset, without special tokens; half a character is one, too."""
    decoder = getincrementaldecoder("utf-8")("replace")
    found, count, special = [0], 0, False
    for at, byte in enumerate(text):
        if byte in (_SPECIAL_BEGIN, _SPECIAL_END):
            special = byte == _SPECIAL_BEGIN
        elif not special:
            count += len(decoder.decode(text[at : at + 1]))
        found.append(count + bool(decoder.getstate()[0]))
    return found
