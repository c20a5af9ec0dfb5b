"""Grammars: the one meeting point of all front ends, and all that the kernel knows of a language.

A grammar is a list of rules (nonterminals), each a small nondeterministic automaton whose edges read a terminal or
another rule. A textbook production ``a: B c D`` is a chain of three edges; ``*`` and ``|`` are loops and branches.
The automaton form keeps a list of any length at one item in the parser, and gives memory a place to live: one
activation of a rule owns slots (counters, sets of texts or values already read) that its own edges test and update.

Texts can be compared as they are (``TEXT_SET``, ``REMEMBER`` and ``excluding``: keys of an object) or by what they
stand for (``VALUE_SET`` and ``distinct``: items that differ). An edge with ``distinct`` reads a value that no edge with
that slot has read before in this activation, and adds it. Its symbol is a terminal, whose texts are scalars: spellings
of one JSON number (with an exponent: of up to 32 digits before and after the point) are one value, all other texts
differ (with ``strings_by_value``, in both comparisons: spellings of one JSON string do not). Or it is a rule that reads
one *group*, from a terminal that opens it to one that closes it. What stands between are its members, by the ``role``
of each terminal: scalars, other groups, and in labelled groups a label before each.
Ordered groups are equal if their members are, one by one; labelled ones if each label has an equal member (labels must
not be repeated); terminals with no role make no difference. All terminals that one lexeme matches at one place must
have the same role. The grammar must see to it that values do not run out: wherever a distinct value must be read, one
must be left.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.language.tree import NOTHING, listed, rebuilt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.language.tree import Entry, Expression

EPSILON = None
"""The symbol of an edge that reads nothing."""


class Role(IntEnum):
    """What a lexeme is to the group that it is read in, where groups must be distinct."""

    NONE = 0
    SCALAR = 1
    LABEL = 2  # of the member that follows
    OPEN_ORDERED = 3
    OPEN_LABELLED = 4
    CLOSE = 5


class Kind(IntEnum):
    """What a lexeme is, where the tokens of one lexeme are limited: each kind has a limit of its own."""

    OTHER = 0  # no limit
    STRING = 1
    NUMBER = 2
    REASONING = 3


@dataclass(frozen=True, slots=True)
class Terminal:
    """A lexeme: ``expression`` must not match the empty text.

    Of its matches, those count that have no byte 0xFE or 0xFF, which are in no UTF-8 text. They mark special tokens:
    the terminal that is one is the ``Literal`` of what ``Vocabulary.marked_bytes`` says.

    ``pointer`` says where it comes from (a JSON Pointer into the schema, a place in a Lark grammar), for messages.
    ``label``: for ``Role.LABEL``, which label all its texts are; if empty, each text is its own.
    ``kind``: which limit its lexemes have, in a matcher that limits their tokens.
    """

    name: str
    expression: Expression
    pointer: str = ""
    role: Role = Role.SCALAR
    label: bytes = b""
    kind: Kind = Kind.OTHER


class Action(IntEnum):
    """What an edge does to a slot of its rule's memory."""

    INCREMENT = 0  # counter: one more, up to the slot's cap, where it stays
    REMEMBER = 1  # text set: add the lexeme this edge reads


class Condition(NamedTuple):
    """The edge may be taken only while ``minimum <= counter <= maximum`` (``None``: no upper bound)."""

    slot: int
    minimum: int
    maximum: int | None


class Edge(NamedTuple):
    """One edge of a rule's automaton.

    ``symbol``: index of a terminal (0 and up), ``~index`` of a rule (below 0), or ``EPSILON``.
    ``conditions`` all must hold before ``actions`` are carried out.
    ``excluding``: a text-set slot whose texts the terminal of this edge must not match, or -1.
    ``distinct``: a value-set slot whose values this edge must not read and to which it adds the value read, or -1.
    """

    source: int
    symbol: int | None
    target: int
    conditions: tuple[Condition, ...] = ()
    actions: tuple[tuple[Action, int], ...] = ()
    excluding: int = -1
    distinct: int = -1


COUNTER_UNBOUNDED = 0
TEXT_SET = -1
VALUE_SET = -2


@dataclass(frozen=True, slots=True)
class Rule:
    """A nonterminal. States are small integers; state 0 is where it starts, ``accepting`` where it may end.

    ``slots``: the memory of one activation, one number per slot: ``TEXT_SET`` or ``VALUE_SET``, otherwise a counter,
    which counts from 0 and stays at that number once it gets there (choose the least number that no condition can
    tell from a larger one).
    """

    name: str
    edges: tuple[Edge, ...]
    accepting: tuple[int, ...]
    slots: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Grammar:
    """Rules over terminals; ``rules[0]`` is the start.

    ``ignored`` lists terminals that may stand before, between and after all others.
    ``self_delimiting`` is a front end's word that every lexeme ends where its own expression says so: no terminal
    can go on with a byte that may follow it. Otherwise the kernel proves that the lexing rule (read on while some
    usable terminal can) strands nothing, or refuses the grammar.
    ``numbers_by_double``: values that must be distinct are the same if their numbers read as the same IEEE double.
    ``strings_by_value``: lexemes that begin with a JSON string are compared by what it spells, wherever texts or values
    are compared; a terminal that reads one spelling of a string reads all of them.
    ``warnings`` says what a reader of the JSON Schemas in it should know; it makes no difference to the language.
    """

    terminals: tuple[Terminal, ...]
    rules: tuple[Rule, ...]
    ignored: tuple[int, ...] = ()
    self_delimiting: bool = False
    numbers_by_double: bool = True
    strings_by_value: bool = False
    warnings: tuple[str, ...] = ()

    def __copy__(self) -> Grammar:
        """The grammar itself, which is immutable."""
        return self

    def __deepcopy__(self, _: object) -> Grammar:
        """As ``copy.copy``."""
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Expressions are pickled as a list of nodes: trees may be deeper than Python's stack."""
        entries, roots = listed(terminal.expression for terminal in self.terminals)
        bare = [replace(terminal, expression=NOTHING) for terminal in self.terminals]
        rest = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "terminals"}
        return _unpickled, (bare, entries, roots, rest)

    def dump(self) -> str:
        """The grammar as text, one line an edge, for people."""
        lines = []
        for index, rule in enumerate(self.rules):
            lines.append(f"rule {index} {rule.name}: accepting {', '.join(map(str, rule.accepting))}")
            if rule.slots:
                names = {TEXT_SET: "texts", VALUE_SET: "values"}
                slots = (names.get(slot, f"counter to {slot}") for slot in rule.slots)
                lines.append(f"  memory: {', '.join(slots)}")
            lines.extend(f"  {self._describe(edge)}" for edge in rule.edges)
        for index, terminal in enumerate(self.terminals):
            mark = " (ignored)" if index in self.ignored else ""
            lines.append(f"terminal {index} {terminal.name}{mark}: {terminal.expression}")
        return "\n".join(lines)

    def _describe(self, edge: Edge) -> str:
        if edge.symbol is EPSILON:
            symbol = "nothing"
        elif edge.symbol >= 0:
            symbol = self.terminals[edge.symbol].name
        else:
            symbol = f"<{self.rules[~edge.symbol].name}>"
        notes = [f"#{c.slot} in [{c.minimum}, {'∞' if c.maximum is None else c.maximum}]" for c in edge.conditions]
        notes += [f"{action.name.lower()} #{slot}" for action, slot in edge.actions]
        if edge.excluding >= 0:
            notes.append(f"not in #{edge.excluding}")
        if edge.distinct >= 0:
            notes.append(f"distinct in #{edge.distinct}")
        suffix = f"   when/then {'; '.join(notes)}" if notes else ""
        return f"{edge.source} -> {edge.target}: {symbol}{suffix}"


def _unpickled(bare: list[Terminal], entries: list[Entry], roots: list[int], rest: dict[str, Any]) -> Grammar:
    nodes = rebuilt(entries)
    terminals = (replace(terminal, expression=nodes[root]) for terminal, root in zip(bare, roots, strict=True))
    return Grammar(tuple(terminals), **rest)


class GrammarBuilder:
    """Collects terminals and rules; rules may be named before they are defined.

    >>> from constrain.language.tree import Literal
    >>> builder = GrammarBuilder()
    >>> a = builder.terminal("A", Literal(b"a"))
    >>> start = builder.rule("start")
    >>> builder.define(start, [[a], [a, start]])
    >>> len(builder.build().rules)
    1
    """

    def __init__(self) -> None:
        self._terminals: list[Terminal] = []
        self._terminal_ids: dict[tuple[str, Expression, Role, bytes, Kind], int] = {}
        self._names: list[str] = []
        self._rules: dict[int, Rule] = {}
        self._ignored: list[int] = []

    def terminal(
        self,
        name: str,
        expression: Expression,
        pointer: str = "",
        role: Role = Role.SCALAR,
        label: bytes = b"",
        kind: Kind = Kind.OTHER,
    ) -> int:
        """Adds a terminal and returns its symbol; an equal one is added once."""
        key = (name, expression, role, label, kind)
        symbol = self._terminal_ids.get(key)
        if symbol is None:
            symbol = self._terminal_ids[key] = len(self._terminals)
            self._terminals.append(Terminal(name, expression, pointer, role, label, kind))
        return symbol

    def rule(self, name: str) -> int:
        """Reserves a rule and returns its symbol; the first one is the start."""
        self._names.append(name)
        return ~(len(self._names) - 1)

    def ignore(self, terminal: int) -> None:
        """Lets a terminal stand anywhere between lexemes."""
        self._ignored.append(terminal)

    def define(self, rule: int, alternatives: Sequence[Sequence[int]]) -> None:
        """Defines a rule by its alternatives, each a sequence of symbols (an empty one for the empty text)."""
        edges: list[Edge] = []
        end, states = 1, 2
        for symbols in alternatives:
            source = 0
            for position, symbol in enumerate(symbols):
                if position == len(symbols) - 1:
                    target = end
                else:
                    target, states = states, states + 1
                edges.append(Edge(source, symbol, target))
                source = target
            if not symbols:
                edges.append(Edge(0, EPSILON, end))
        self.define_automaton(rule, edges, (end,))

    def define_automaton(
        self, rule: int, edges: Sequence[Edge], accepting: Sequence[int], slots: Sequence[int] = ()
    ) -> None:
        """Defines a rule by its automaton."""
        self._rules[~rule] = Rule(self._names[~rule], tuple(edges), tuple(accepting), tuple(slots))

    def build(self, *, self_delimiting: bool = False) -> Grammar:
        """The finished grammar; every reserved rule must have been defined."""
        rules = tuple(self._rules[index] for index in range(len(self._names)))
        return Grammar(tuple(self._terminals), rules, tuple(self._ignored), self_delimiting)
