"""Automata of rules over terminals, still without ignored text.

``*`` is a loop, ``|`` a branch. Counts are written out while that is short; a longer count becomes a rule of its own
with a counter. A terminal that may be empty becomes its nonempty texts, optional.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from constrain.language.grammar import EPSILON, Action, Condition, Edge, Rule, Terminal
from constrain.language.merging import moved_rules
from constrain.language.special import special_token
from constrain.lark.embedded import schema_grammar
from constrain.lark.gaps import gaps
from constrain.lark.library import check_inner, check_names, errors_in
from constrain.lark.parameters import Specializing, check_parameters
from constrain.lark.reading.places import error_at, place
from constrain.lark.reading.syntax import (
    Alias,
    Both,
    Choice,
    Complement,
    Embedded,
    Literal,
    Nested,
    Node,
    Range,
    Reference,
    Repeat,
    Sequence,
    Special,
    Substring,
    Symbol,
    Syntax,
)
from constrain.lark.terminals import named_expressions, non_empty_part, terminal_expression

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar
    from constrain.language.tree import Expression
    from constrain.lark.gaps import Gap
    from constrain.lark.library import Library

MAX_WRITTEN_OUT = 64
"""Leaves of the copies up to which a count is written out; above it, the grammar gets a counter, which takes memory in
every state."""


@dataclass
class Language:
    """The terminals and rules made so far; the start is the first rule.

    ``ignored``: ignored text, in zones; ``zones``: the zone of each rule, ``None`` where nothing is ignored, as in JSON
    Schemas. ``whole``: terminals of JSON Schemas. ``warnings``: warnings of JSON Schemas. ``no_forcing``: whether a
    grammar text has this option.
    """

    terminals: list[Terminal] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    ignored: list[list[Gap]] = field(default_factory=list)
    zones: list[int | None] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)
    warnings: dict[str, None] = field(default_factory=dict)
    no_forcing: bool = False


def language(syntax: Syntax, start: str, library: Library) -> Language:
    """Returns the rules that the start needs, with those of grammars inside. Raises GrammarError, PatternError."""
    if start not in syntax.rules:
        raise error_at(syntax.text, syntax.at, f"there is no rule {start} to begin with")
    if syntax.rules[start].parametric:
        message = f"the rule to begin with has no value; begin with a rule such as begin: {start}::0"
        raise error_at(syntax.text, syntax.rules[start].at, message)
    building = _Building(library)
    _Emitter(syntax, building).rule(start)
    while building.waiting:
        emitter, index, name = building.waiting.pop()
        emitter.emit(index, name)
    building.language.rules = [rule for rule in building.reserved if rule is not None]
    return building.language


@dataclass
class _Building:
    """The parts that all grammar texts of one language share.

    ``named``: symbols of grammars with names; ``gaps``: ignored text by ignored terminals.
    """

    library: Library
    language: Language = field(default_factory=Language)
    reserved: list[Rule | None] = field(default_factory=list)
    waiting: list[tuple[_Emitter, int, str]] = field(default_factory=list)
    named: dict[str, int] = field(default_factory=dict)
    gaps: dict[tuple[object, ...], list[Gap]] = field(default_factory=dict)

    def reserve(self, zone: int | None) -> int:
        """Reserves the number of a rule."""
        self.reserved.append(None)
        self.language.zones.append(zone)
        return len(self.reserved) - 1

    def zone(self, between: list[Gap]) -> int | None:
        """Returns the zone of some ignored text."""
        if not between:
            return None
        if between not in self.language.ignored:
            self.language.ignored.append(between)
        return self.language.ignored.index(between)

    def add(self, grammar: Grammar, where: str) -> int:
        """Adds the grammar of a JSON Schema; returns the symbol of its first rule."""
        terminals, rules = len(self.language.terminals), len(self.reserved)
        self.language.terminals.extend(replace(each, name=f"{each.name} {where}") for each in grammar.terminals)
        self.language.whole |= set(range(terminals, len(self.language.terminals)))
        self.language.warnings |= {f"{warning} ({where})": None for warning in grammar.warnings}
        for rule in moved_rules(grammar, terminals, rules):
            self.reserve(None)
            self.reserved[-1] = rule
        return ~rules


class _Emitter:
    """Rules and terminals of one grammar text by their nodes. ``origin``: the name of the grammar, if it has one."""

    def __init__(self, syntax: Syntax, building: _Building, origin: str = "") -> None:
        self.syntax = syntax
        self.text = syntax.text
        self.building = building
        self.reserved = building.reserved
        self.origin = origin
        with errors_in(origin):
            check_names(syntax, building.library)
            check_parameters(syntax)
            self.named = named_expressions(syntax)
            self.zone = building.zone(gaps(syntax, self.named, building.gaps))
        building.language.no_forcing |= syntax.options.no_forcing
        self.bodies = Specializing(syntax)
        self.rules: dict[str, int] = {}
        self.leaves: dict[str, tuple[int | None, bool]] = {}
        self.embedded: dict[int, int] = {}

    def rule(self, name: str) -> int:
        """Returns the symbol of a rule."""
        if name not in self.rules:
            self.rules[name] = self.reserve()
            self.building.waiting.append((self, self.rules[name], name))
        return ~self.rules[name]

    def reserve(self) -> int:
        """Reserves the number of a rule."""
        return self.building.reserve(self.zone)

    def emit(self, index: int, name: str) -> None:
        """Makes a requested rule, and requests the rules that it needs."""
        with errors_in(self.origin):
            automaton = RuleAutomaton(self, name)
            automaton.add(self.bodies.body(name), 0, 1)
            self.reserved[index] = Rule(name, tuple(automaton.edges), (1,))

    def place(self, at: int) -> str:
        """Returns a place in words, for names of terminals."""
        return place(self.text, at) + (f" of @{self.origin}" if self.origin else "")

    def leaf(self, node: Symbol | Literal | Range | Substring) -> tuple[int | None, bool]:
        """Returns the symbol of a terminal, if it has nonempty texts; and whether it has the empty text."""
        match node:
            case Symbol(name, _):
                key, at = name, self.syntax.terminals[name].at
            case Literal(written, at):
                key = written
            case Range(first, last):
                key, at = f"{first.written}..{last.written}", first.at
            case Substring(given, at):
                key = f"%regex{given}"
        if key not in self.leaves:
            expression, nullable = non_empty_part(terminal_expression(self.syntax, self.named, node))
            name = "%regex" if isinstance(node, Substring) else key
            self.leaves[key] = None if expression is None else self._terminal(name, at, expression), nullable
        return self.leaves[key]

    def special(self, node: Special) -> int:
        """Returns the symbol of a special token."""
        if node.name not in self.leaves:
            self.leaves[node.name] = self._terminal(node.name, node.at, special_token(node.name)), False
        symbol, _ = self.leaves[node.name]
        assert symbol is not None
        return symbol

    def _terminal(self, name: str, at: int, expression: Expression) -> int:
        self.building.language.terminals.append(Terminal(f"{name} ({self.place(at)})", expression))
        return len(self.building.language.terminals) - 1

    def embed(self, node: Embedded | Nested | Reference) -> int:
        """Returns the symbol of the first rule of a JSON Schema or of another grammar."""
        if node.at not in self.embedded:
            self.embedded[node.at] = self._embed(node)
        return self.embedded[node.at]

    def _embed(self, node: Embedded | Nested | Reference) -> int:
        match node:
            case Embedded():
                return self.building.add(schema_grammar(self.text, node), f"in %json ({self.place(node.at)})")
            case Nested(syntax, at):
                check_inner(syntax, at)
                return _Emitter(syntax, self.building, self.origin).rule("start")
        if node.name not in self.building.named:
            self.building.named[node.name] = self._named(node.name)
        return self.building.named[node.name]

    def _named(self, name: str) -> int:
        found = self.building.library.grammar(name)
        if isinstance(found, Syntax):
            return _Emitter(found, self.building, name).rule("start")
        return self.building.add(found, f"in @{name}")


class Symbols(Protocol):
    """The symbols of a grammar under construction, by the parts of its text; and its rules."""

    text: str
    reserved: list[Rule | None]

    def rule(self, name: str) -> int:
        """Returns the symbol of a rule."""

    def leaf(self, node: Symbol | Literal | Range | Substring) -> tuple[int | None, bool]:
        """Returns the symbol of a terminal, if it has nonempty texts; and whether it has the empty text."""

    def special(self, node: Special) -> int:
        """Returns the symbol of a special token."""

    def embed(self, node: Embedded | Nested | Reference) -> int:
        """Returns the symbol of the first rule of a JSON Schema or of another grammar."""

    def reserve(self) -> int:
        """Reserves the number of a rule."""


class RuleAutomaton:
    """The automaton of one rule under construction; state 0 is the start, state 1 the end."""

    def __init__(self, emitter: Symbols, name: str) -> None:
        self.emitter = emitter
        self.name = name
        self.edges: list[Edge] = []
        self.states = 2

    def _state(self) -> int:
        self.states += 1
        return self.states - 1

    def add(self, node: Node, source: int, target: int) -> None:
        """Adds edges from state ``source`` to state ``target`` that read the texts of a node of the Lark rule."""
        match node:
            case Symbol(name, _) if not node.is_terminal:
                self.edges.append(Edge(source, self.emitter.rule(name), target))
            case Symbol() | Literal() | Range() | Substring():
                symbol, nullable = self.emitter.leaf(node)
                if symbol is not None:
                    self.edges.append(Edge(source, symbol, target))
                if nullable:
                    self.edges.append(Edge(source, EPSILON, target))
            case Special():
                self.edges.append(Edge(source, self.emitter.special(node), target))
            case Embedded() | Nested() | Reference():
                self.edges.append(Edge(source, self.emitter.embed(node), target))
            case Both(_, at) | Complement(_, at):
                message = "& and ~ belong into terminals: give this part a name in capitals, and use the name here"
                raise error_at(self.emitter.text, at, message)
            case Alias(part, _):
                self.add(part, source, target)
            case Choice(parts):
                for part in parts:
                    self.add(part, source, target)
            case Sequence(parts):
                self._add_sequence(list(parts), source, target)
            case Repeat(part, minimum, maximum):
                self._add_repeat(part, minimum, maximum, source, target)

    def _add_sequence(self, parts: list[Node], source: int, target: int) -> None:
        for part in parts[:-1]:
            middle = self._state()
            self.add(part, source, middle)
            source = middle
        if parts:
            self.add(parts[-1], source, target)
        else:
            self.edges.append(Edge(source, EPSILON, target))

    def _add_repeat(self, part: Node, minimum: int, maximum: int | None, source: int, target: int) -> None:
        copies = minimum if maximum is None else maximum
        if copies > 1 and copies * _leaves(part) > MAX_WRITTEN_OUT:
            self.edges.append(Edge(source, self._counted(part, minimum, maximum), target))
        elif maximum is not None:
            self._add_copies(part, minimum, maximum, source, target)
        elif minimum <= 1:
            self._add_loop(part, minimum, source, target)
        else:
            self._add_sequence([*[part] * (minimum - 1), Repeat(part, 1, None)], source, target)

    def _add_loop(self, part: Node, minimum: int, source: int, target: int) -> None:
        """Adds a loop: ``*`` if the minimum is 0, ``+`` if it is 1; Lark has no others."""
        begin = self._state()
        end = self._state() if minimum else begin
        self.edges.append(Edge(source, EPSILON, begin))
        self.add(part, begin, end)
        if minimum:
            self.edges.append(Edge(end, EPSILON, begin))
        self.edges.append(Edge(end, EPSILON, target))

    def _add_copies(self, part: Node, minimum: int, maximum: int, source: int, target: int) -> None:
        for copy in range(maximum):
            if copy >= minimum:
                self.edges.append(Edge(source, EPSILON, target))
            middle = self._state() if copy < maximum - 1 else target
            self.add(part, source, middle)
            source = middle
        if maximum == 0:
            self.edges.append(Edge(source, EPSILON, target))

    def _counted(self, part: Node, minimum: int, maximum: int | None) -> int:
        """Returns the symbol of a rule that counts how often it has read a node (as far as a count matters)."""
        index = self.emitter.reserve()
        automaton = RuleAutomaton(self.emitter, f"{self.name}{{{minimum},{'' if maximum is None else maximum}}}")
        again = () if maximum is None else (Condition(0, 0, maximum - 1),)
        enough = (Condition(0, minimum, None),) if minimum else ()
        begin = automaton._state()
        automaton.edges += [
            Edge(0, EPSILON, begin, again, ((Action.INCREMENT, 0),)),
            Edge(0, EPSILON, 1, enough),
        ]
        automaton.add(part, begin, 0)
        self.emitter.reserved[index] = Rule(
            automaton.name, tuple(automaton.edges), (1,), (minimum if maximum is None else maximum,)
        )
        return ~index


def _leaves(node: Node) -> int:
    """Returns the approximate number of edges of a node."""
    match node:
        case Sequence(parts) | Choice(parts):
            return 1 + sum(map(_leaves, parts))
        case Repeat(part, _, maximum):
            return 1 + _leaves(part) * min(MAX_WRITTEN_OUT, maximum or 1)
        case Alias(part, _):
            return _leaves(part)
    return 1
