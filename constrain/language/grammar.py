"""Grammars: the common result of all front ends, and the kernel's only view of a language.

A grammar is a list of rules (nonterminals), each a small nondeterministic automaton whose edges read a terminal or
another rule. A textbook production ``a: B c D`` is a chain of three edges; ``*`` and ``|`` are loops and branches.
The automaton form keeps a list of any length at one item in the parser, and gives memory a place to live: one
activation of a rule owns slots (counters, sets of texts or values already read) that its own edges test and update.

Texts are compared in two ways: by spelling (``TEXT_SET``, ``REMEMBER`` and ``excluding``: keys of an object) or by
value (``VALUE_SET`` and ``distinct``: items that differ). With ``strings_by_value``, both ways treat all spellings of
one JSON string as equal. An edge with ``distinct`` reads a value that no edge with this slot has read before in this
activation, and adds it. Its symbol is one of two kinds. A terminal reads a scalar: spellings of one JSON number (with
an exponent: of up to 32 digits before and after the point) are one value, all other texts differ. A rule reads one
*group*, from a terminal that opens it to one that closes it. The lexemes between are its members, by the ``role`` of
each terminal: scalars, other groups, and in labelled groups a label before each. Ordered groups are equal if their
members are, one by one; labelled groups are equal if each label has an equal member (labels must not repeat); terminals
without a role make no difference. All terminals that one lexeme matches at one place must have the same role. The front
end must ensure that values never run out: wherever a distinct value must be read, one must be left.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.language.tree import NOTHING, listed, rebuilt
from constrain.notebooks import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.language.tree import Entry, Expression

EPSILON = None
"""The symbol of an edge that reads nothing."""


class Role(IntEnum):
    """The role of a lexeme in its group, for groups that must be distinct."""

    NONE = 0
    SCALAR = 1
    LABEL = 2  # of the member that follows
    OPEN_ORDERED = 3
    OPEN_LABELLED = 4
    CLOSE = 5


class Kind(IntEnum):
    """The kind of a lexeme, for limits on tokens: each kind has a limit of its own.

    An answer that runs out of tokens cuts ``TEXT`` after a word, and ``REASONING`` and ``PROSE`` anywhere.
    """

    OTHER = 0  # no limit
    STRING = 1  # a string with a pattern, a format or parts
    NUMBER = 2
    REASONING = 3
    TEXT = 4  # a string of any characters
    PROSE = 5  # free text


WORD_TOKENS = 8
"""Tokens beyond its limit that a ``TEXT`` may take to finish a word."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """A kind of lexeme: a name, and the regular expression of its texts, none of which is empty.

    Matches that contain the bytes 0xFE or 0xFF, which no UTF-8 text contains, are ignored: these bytes mark special
    tokens. The terminal of a special token is the ``Literal`` of ``Vocabulary.marked_bytes``.

    Attributes:
        name: name for error messages and explanations.
        expression: expression of the texts; it must not match the empty text.
        pointer: origin for error messages, such as a JSON Pointer into the schema; ``""`` if unknown.
        role: part that the lexeme plays in a value that must be distinct from others.
        label: with ``Role.LABEL``, the label that all texts stand for; if empty, each text is its own label.
        kind: limit on tokens that applies to the lexeme, in a matcher with such a limit.
        lazy: whether the first match ends the lexeme, whatever other terminals could go on there. Among lexemes that
            are read at the same place, lazy ones come first.
        bare: expression of the lexeme's own text, if ignored text may stand before it in the lexeme; for captures.
        max_tokens: the most tokens of the lexeme, of those that begin in it; ``None`` for no limit. Masks allow only
            tokens after which the lexeme can be completed within them. Not for a terminal that is ignored, or whose
            texts an edge remembers or excludes.
        temperature: temperature at which the lexeme's tokens are to be sampled (``Matcher.temperature``); ``None`` for
            the caller's own.
        place: line and column of ``max_tokens`` in the grammar's text, for error messages; ``None`` if unknown.
    """

    name: str
    expression: Expression
    pointer: str = ""
    role: Role = Role.SCALAR
    label: bytes = b""
    kind: Kind = Kind.OTHER
    lazy: bool = False
    bare: Expression | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    place: tuple[int, int] | None = None

    __repr__ = one_line

    def of(self, named: str, pointer: str) -> Terminal:
        """Returns the terminal inside another grammar; faster than ``replace``, and lists of tools have thousands.

        ``named``: the end of its name; ``pointer``: the beginning of its pointer.
        """
        return Terminal(
            self.name + named,
            self.expression,
            pointer + self.pointer,
            self.role,
            self.label,
            self.kind,
            self.lazy,
            self.bare,
            self.max_tokens,
            self.temperature,
            self.place,
        )


class Action(IntEnum):
    """The effect of an edge on a slot of its rule's memory."""

    INCREMENT = 0  # counter: one more, up to the slot's cap, where it stays
    REMEMBER = 1  # text set: add the lexeme this edge reads


class Condition(NamedTuple):
    """A condition of an edge: ``minimum <= counter <= maximum`` (``None``: no upper bound)."""

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
class Capture:
    """Names under which captures have the text of a rule, or of its parts.

    Attributes:
        name: name of the rule's text, without ``ending``; ``""`` for none.
        ending_name: name of the text of ``ending``; ``""`` for none.
        body: expression of the text before ``ending``; ``None`` without an ending.
        ending: expression of the end of the rule's text, which is as short as possible; ``None`` without an ending.
        pattern: pattern and dialect whose named groups are captures of the rule's text; ``None`` for no pattern.
    """

    name: str = ""
    ending_name: str = ""
    body: Expression | None = None
    ending: Expression | None = None
    pattern: tuple[str, str] | None = None

    __repr__ = one_line


@dataclass(frozen=True, slots=True)
class Rule:
    """A nonterminal: an automaton whose edges read terminals and other rules.

    Attributes:
        name: name for error messages and ``Grammar.dump``.
        edges: edges between states. States are small integers, and state 0 is the start.
        accepting: states at which the rule may end.
        slots: memory of one use of the rule, one number per slot: ``TEXT_SET``, ``VALUE_SET``, or the cap of a counter.
            A counter starts at 0 and stays at its cap once it gets there; choose the least cap that no condition can
            tell from a larger number.
        capture: names for the rule's text in captures; ``None`` for none.
        bare: expression of the rule's own text, if ignored text may stand before it in its text; for captures.
        max_tokens: the most tokens of the rule's text, ignored text in front of it included; ``None`` for no limit.
            Masks allow only tokens after which the rule can be completed within them, and no token that crosses its
            borders. A rule inside has no lower limit. Lexemes end at the borders of the rule, so the longest match
            must lose no text there.
        place: line and column of ``max_tokens`` in the grammar's text, for error messages; ``None`` if unknown.
    """

    name: str
    edges: tuple[Edge, ...]
    accepting: tuple[int, ...]
    slots: tuple[int, ...] = ()
    capture: Capture | None = None
    bare: Expression | None = None
    max_tokens: int | None = None
    place: tuple[int, int] | None = None

    __repr__ = one_line


@dataclass(frozen=True, slots=True, repr=False)
class Grammar:
    """A context-free grammar over regular terminals, with memory for counters and sets: the input of the compiler.

    ``compile`` and ``generate`` take one instead of a schema. Write a ``Lark`` grammar if you can; ``GrammarBuilder``
    makes a ``Grammar`` from code. It is immutable, and equal grammars are compiled once.

    Attributes:
        terminals: the lexemes. An edge names a terminal by its index.
        rules: the nonterminals; ``rules[0]`` is the start. An edge names a rule by ``~index``.
        ignored: indices of terminals that may stand before, between and after all others.
        self_delimiting: a promise that no terminal can continue with a byte that may follow it. Without the promise,
            the kernel proves that the longest match leads to no dead end, and raises ``GrammarError`` otherwise.
        numbers_by_double: whether distinct values are equal if their numbers read as the same IEEE double; otherwise
            their decimals are compared.
        strings_by_value: whether texts and values that begin with a JSON string are compared by the string that it
            spells. Then a terminal must read all spellings of a string or none.
        warnings: notes on the JSON Schemas inside, for people; they do not change the language.
        proved: whether the front end has let the kernel prove that the longest match leads to no dead end.
        split: names of terminals that are read byte by byte, because their longest match could lead into a dead end.
        no_forcing: whether the model writes forced text itself, in tokens of its choice.
    """

    terminals: tuple[Terminal, ...]
    rules: tuple[Rule, ...]
    ignored: tuple[int, ...] = ()
    self_delimiting: bool = False
    numbers_by_double: bool = True
    strings_by_value: bool = False
    warnings: tuple[str, ...] = ()
    proved: bool = False
    split: tuple[str, ...] = ()
    no_forcing: bool = False

    def __repr__(self) -> str:
        """Returns the start and the sizes; ``dump`` lists everything."""
        return f"Grammar(start={self.rules[0].name!r}, rules={len(self.rules)}, terminals={len(self.terminals)})"

    def __copy__(self) -> Grammar:
        """Returns the grammar itself, which is immutable."""
        return self

    def __deepcopy__(self, _: object) -> Grammar:
        """Returns the grammar itself, which is immutable."""
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles expressions as a list of nodes: trees may be deeper than Python's stack."""
        entries, roots = listed(terminal.expression for terminal in self.terminals)
        bare = [replace(terminal, expression=NOTHING) for terminal in self.terminals]
        rest = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "terminals"}
        return _unpickled, (bare, entries, roots, rest)

    def dump(self) -> str:
        """Returns a listing for people, with one line for each edge of a rule and for each terminal."""
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
    """Builds a ``Grammar`` in code: terminals, and rules that may refer to rules which are defined later.

    Terminals and rules are referred to by symbols, the integers that ``terminal`` and ``rule`` return. Expressions of
    terminals are made from ``constrain.language.tree``.

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
        self._terminal_ids: dict[tuple[object, ...], int] = {}
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
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> int:
        """Adds a terminal, unless an equal one exists, and returns its symbol; for the arguments see ``Terminal``."""
        key = (name, expression, role, label, kind, max_tokens, temperature)
        symbol = self._terminal_ids.get(key)
        if symbol is None:
            symbol = self._terminal_ids[key] = len(self._terminals)
            made = Terminal(
                name, expression, pointer, role, label, kind, max_tokens=max_tokens, temperature=temperature
            )
            self._terminals.append(made)
        return symbol

    def rule(self, name: str) -> int:
        """Adds a rule without a definition and returns its symbol; the first rule is the start of the grammar."""
        self._names.append(name)
        return ~(len(self._names) - 1)

    def ignore(self, terminal: int) -> None:
        """Allows a terminal, given by its symbol, before, between and after all other lexemes."""
        self._ignored.append(terminal)

    def define(self, rule: int, alternatives: Sequence[Sequence[int]]) -> None:
        """Defines a rule by its alternatives: each is a sequence of symbols, an empty sequence for the empty text."""
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
        """Defines a rule by its automaton: edges, accepting states and memory, as in ``Rule``."""
        self._rules[~rule] = Rule(self._names[~rule], tuple(edges), tuple(accepting), tuple(slots))

    def build(self, *, self_delimiting: bool = False) -> Grammar:
        """Returns the grammar; for ``self_delimiting`` see ``Grammar``. ``KeyError`` if a rule is not defined."""
        rules = tuple(self._rules[index] for index in range(len(self._names)))
        return Grammar(tuple(self._terminals), rules, tuple(self._ignored), self_delimiting)
