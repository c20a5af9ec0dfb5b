r"""Named groups of patterns, ``(?P<year>\d{4})``: what each reads in a text that matches.

The pattern is read a second time, as an automaton over characters with marks where named groups begin and end. Its
ways are tried in the order in which ``re`` and ``regex`` try them (greedy, lazy, first alternative), each state at each
place once. So the groups are those of these libraries, except that a group in a repetition has all its texts, not the
last.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.errors import LimitError
from constrain.language.tree import EMPTY_TEXT, Alternation, Concatenation, Expression, Inner, Repetition
from constrain.regex import classes
from constrain.regex.parsing.groups import read_group
from constrain.regex.parsing.parser import Parser
from constrain.regex.unicode import properties as unicode
from constrain.remembering import remembered
from constrain.work import MAX_CAPTURE_WORK

if TYPE_CHECKING:
    from constrain.language.tree import Ranges
    from constrain.regex.parsing.scanner import Dialect

STATE_STEPS = 100
"""Steps for one state of the automaton that finds the named groups of a pattern, whose counts are written out."""


class Group(NamedTuple):
    """A named group in a text: its name, start and end, in characters."""

    name: str
    start: int
    end: int


def has_named_groups(pattern: str, dialect: Dialect) -> bool:
    """Returns whether a pattern, which can be read, has named groups and no lookaround, with which none are found."""
    return "(?" in pattern and bool(_parsed(pattern, dialect).names)


def named_groups(pattern: str, dialect: Dialect, text: str) -> list[Group]:
    r"""Returns the named groups of a pattern in a text that matches, in the order of their starts, outer ones first.

    Raises LimitError (MAX_CAPTURE_WORK).

    >>> named_groups(r"(?P<day>\d+)\.(?P<month>\d+)", "rust", "24.12")
    [Group(name='day', start=0, end=2), Group(name='month', start=3, end=5)]
    """
    marks = _search(_automaton(pattern, dialect), text)
    found: list[Group] = []
    begun: list[int] = []
    for name, place in marks:
        if name:
            begun.append(len(found))
            found.append(Group(name, place, place))
        else:
            number = begun.pop()
            found[number] = found[number]._replace(end=place)
    return found


# Trees ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Chars(Expression):
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class _Edge(Expression):
    kind: str  # start, end, line start, line end, last line, word, no word
    ranges: Ranges = ()


class _Lazy(Repetition):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Named(Inner):
    part: Expression
    name: str


class _Parsed(NamedTuple):
    tree: Expression
    names: frozenset[str]


class _Unsupported(Exception):  # noqa: N818
    """Lookaround, with which named groups are not found."""


class _TreeParser(Parser):
    """Reads a pattern as a tree of nodes, with all groups."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        super().__init__(text, dialect, json=False, anchored=True, all_rust=True)
        self.group_names: list[str] = []
        self.items: list[Any] = []

    def parse(self) -> Any:
        """Returns the tree."""
        scanner = self.scanner
        while scanner.position < len(scanner.text):
            if scanner.flags.verbose:
                scanner.skip_white_space()
                if scanner.position == len(scanner.text):
                    break
            self._read(scanner.text[scanner.position])
        return self._finish()

    def _add(self, atom: str | Ranges) -> None:
        self.quantifiable = True
        if isinstance(atom, str):
            folds = self.scanner.flags.ignore_case
            atom = unicode.fold_character(atom, self.scanner.folding) if folds else ((ord(atom), ord(atom)),)
        self.items.append(_Chars(atom))

    def _boundary(self, letter: str) -> None:
        if letter not in ("b", "B") or self.scanner.text.startswith("{", self.scanner.position):
            raise _Unsupported
        words = unicode.perl_class("w", self.scanner.folding)
        self.items.append(_Edge("word" if letter == "b" else "no word", words))

    def _anchor(self, char: str) -> None:
        scanner = self.scanner
        scanner.position += 1
        if scanner.flags.multi_line:
            ends = classes.complement(self._in_line())
            self.items.append(_Edge("line start" if char == "^" else "line end", ends))
        elif char == "$" and scanner.dialect == "python":
            self.items.append(_Edge("last line"))
        else:
            self._add_anchor(scanner.position - 1, at_start=char == "^")

    def _add_anchor(self, place: int, *, at_start: bool) -> None:  # noqa: ARG002
        self.items.append(_Edge("start" if at_start else "end"))

    def _quantify(self) -> None:
        scanner = self.scanner
        minimum, maximum = self._counts()
        if scanner.flags.verbose and scanner.dialect == "rust":
            scanner.skip_white_space()
        is_lazy = scanner.text.startswith("?", scanner.position)
        scanner.position += is_lazy
        kind = Repetition if is_lazy == scanner.flags.lazy else _Lazy
        self.items.append(kind(self.items.pop(), minimum, maximum))

    def _open(self) -> None:
        scanner, known = self.scanner, set(self.scanner.names)
        flags = scanner.flags
        if not read_group(scanner):
            return
        if scanner.look:
            raise _Unsupported
        self.group_names.append(next(iter(scanner.names - known), ""))
        self.stack.append((self.alternatives, self.items, flags))  # type: ignore[arg-type]
        self.alternatives, self.items = [], []

    def _close(self) -> None:
        self.scanner.position += 1
        group = self._finish()
        self.alternatives, self.items, self.scanner.flags = self.stack.pop()  # type: ignore[misc]
        name = self.group_names.pop()
        self.items.append(_Named(group, name) if name else group)

    def _end_sequence(self) -> None:
        """Does nothing: the pattern has been read before."""

    def _finish(self) -> Any:
        sequences = [Concatenation(tuple(items)) for items in (*self.alternatives, self.items)]
        return sequences[0] if len(sequences) == 1 else Alternation(tuple(sequences))


@remembered(64, 1 << 20, lambda pattern, _: 1_000 + 200 * len(pattern))
def _parsed(pattern: str, dialect: Dialect) -> _Parsed:
    parser = _TreeParser(pattern, dialect)
    try:
        tree = parser.parse()
    except _Unsupported:
        return _Parsed(EMPTY_TEXT, frozenset())
    return _Parsed(tree, frozenset(parser.scanner.names))


# Automata ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _State:
    """A state: characters, an edge of the text or a mark, and the states after it, the first one preferred.

    A mark is the name of a group that begins, or ``""`` for the end of one.
    """

    onward: list[int]
    chars: Ranges | None = None
    edge: _Edge | None = None
    mark: str | None = None


class _Automaton:
    """The states of a pattern, made from its end to its beginning; state 0 is the end."""

    def __init__(self, tree: Expression) -> None:
        self.states = [_State([])]
        self.start = self.add(tree, 0)

    def state(self, state: _State) -> int:
        if STATE_STEPS * len(self.states) == MAX_CAPTURE_WORK:
            raise LimitError("this pattern has too many states to find its named groups (MAX_CAPTURE_WORK)")
        self.states.append(state)
        return len(self.states) - 1

    def add(self, node: Expression, after: int) -> int:
        """Adds the states of a node in front of a state, and returns the first."""
        match node:
            case _Chars(ranges):
                return self.state(_State([after], chars=ranges))
            case _Edge():
                return self.state(_State([after], edge=node))
            case Concatenation(parts):
                for part in reversed(parts):
                    after = self.add(part, after)
                return after
            case Alternation(parts):
                return self.state(_State([self.add(part, after) for part in parts]))
            case _Named(part, name):
                end = self.state(_State([after], mark=""))
                return self.state(_State([self.add(part, end)], mark=name))
        assert isinstance(node, Repetition), node
        return self.repeat(node, after)

    def repeat(self, node: Repetition, after: int) -> int:
        """Adds the copies of a repeated node, optional ones last."""

        def preferred(inside: int) -> list[int]:
            return [after, inside] if isinstance(node, _Lazy) else [inside, after]

        first = after
        if node.maximum is None:
            first = self.state(_State([]))
            self.states[first].onward = preferred(self.add(node.part, first))
        else:
            for _ in range(node.maximum - node.minimum):
                first = self.state(_State(preferred(self.add(node.part, first))))
        for _ in range(node.minimum):
            first = self.add(node.part, first)
        return first


@remembered(16, 16 << 20, lambda pattern, _: 1_000 + 2_000 * len(pattern))
def _automaton(pattern: str, dialect: Dialect) -> _Automaton:
    return _Automaton(_parsed(pattern, dialect).tree)


class _Mark(NamedTuple):
    name: str
    place: int
    before: _Mark | None


def _search(automaton: _Automaton, text: str) -> list[tuple[str, int]]:
    """Returns the marks on the first way through the automaton that reads the text, each with its place."""
    waiting: list[tuple[int, int, _Mark | None]] = [(automaton.start, 0, None)]
    seen: set[tuple[int, int]] = set()
    while waiting:
        number, at, marks = waiting.pop()
        if (number, at) in seen:
            continue
        seen.add((number, at))
        if len(seen) > MAX_CAPTURE_WORK:
            raise LimitError("this text takes too many steps to find its named groups (MAX_CAPTURE_WORK)")
        if number == 0:
            if at == len(text):
                return _in_order(marks)
            continue
        state = automaton.states[number]
        if state.chars is not None:
            if at == len(text) or not _contains(state.chars, text[at]):
                continue
            at += 1
        elif state.edge is not None and not _holds(state.edge, text, at):
            continue
        elif state.mark is not None:
            marks = _Mark(state.mark, at, marks)
        waiting.extend((onward, at, marks) for onward in reversed(state.onward))
    raise AssertionError("the pattern matches the text")


def _in_order(mark: _Mark | None) -> list[tuple[str, int]]:
    found = []
    while mark is not None:
        found.append((mark.name, mark.place))
        mark = mark.before
    return found[::-1]


def _contains(ranges: Ranges, char: str) -> bool:
    point = ord(char)
    number = bisect_right(ranges, (point, 0x110000)) - 1
    return number >= 0 and ranges[number][0] <= point <= ranges[number][1]


def _holds(edge: _Edge, text: str, at: int) -> bool:
    """Returns whether an edge of the text, a line or a word is at a place."""
    match edge.kind:
        case "start":
            return at == 0
        case "end":
            return at == len(text)
        case "last line":
            return at == len(text) or (at == len(text) - 1 and text[at] == "\n")
        case "line start":
            return at == 0 or _contains(edge.ranges, text[at - 1])
        case "line end":
            return at == len(text) or _contains(edge.ranges, text[at])
    before = at > 0 and _contains(edge.ranges, text[at - 1])
    after = at < len(text) and _contains(edge.ranges, text[at])
    return (before != after) == (edge.kind == "word")
