"""Automata of rules over terminals, still without ignored text.

``*`` is a loop, ``|`` a branch. Counts are written out while that is short; a longer count becomes a rule of its own
with a counter. A terminal that may be empty becomes its nonempty texts, optional.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from constrain.errors import LimitError
from constrain.language.emptiness import followers, non_empty_part
from constrain.language.grammar import EPSILON, Action, Capture, Condition, Edge, Rule, Terminal
from constrain.language.merging import Merging, edges_of
from constrain.language.rule_automaton import END, START, RuleAutomaton
from constrain.language.special import special_token
from constrain.language.tree import Concatenation, Expression, Repetition, parts_of
from constrain.lark.embedded import schema_grammar
from constrain.lark.lexemes import Lexeme, Lexemes, equal, is_lexeme
from constrain.lark.lexing.gaps import gaps
from constrain.lark.library import check_inner, check_names, errors_in
from constrain.lark.parameters import Specializing, check_parameters
from constrain.lark.reading.places import error_at, place, placed
from constrain.lark.reading.rule_options import part_of_several
from constrain.lark.reading.syntax import (
    NO_OPTIONS,
    Alias,
    Both,
    Embedded,
    Nested,
    Not,
    Options,
    OtherGrammar,
    Quoted,
    Range,
    Special,
    Substring,
    Symbol,
    Syntax,
    Text,
    place_of,
)
from constrain.lark.terminals import named_expressions, terminal_expression
from constrain.lark.token_options import with_limit, with_token_options
from constrain.work import MAX_LEAST_COUNT

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar
    from constrain.lark.lexing.gaps import Gap
    from constrain.lark.library import Library
    from constrain.lark.reading.syntax import Definition

MAX_WRITTEN_OUT = 64
"""Leaves of the copies up to which a count is written out; above it, the grammar gets a counter, which takes memory in
every state."""


class Language(Merging):
    """The terminals and rules made so far; the start is the first rule.

    ``ignored``: ignored text, in zones; ``zones``: the zone of each rule, ``None`` where nothing is ignored, as in JSON
    Schemas. ``whole``: terminals of JSON Schemas.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ignored: list[list[Gap]] = []
        self.zones: list[int | None] = []
        self.whole: set[int] = set()


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
    for emitter in building.emitters:
        emitter.check_stops()
    return building.language


@dataclass
class _Building:
    """The parts that all grammar texts of one language share.

    ``named``: symbols of grammars with names, by name and temperature; ``gaps``: ignored text by ignored terminals.
    """

    library: Library
    language: Language = field(default_factory=Language)
    emitters: list[_Emitter] = field(default_factory=list)
    waiting: list[tuple[_Emitter, int, str]] = field(default_factory=list)
    named: dict[tuple[str, float | None], int] = field(default_factory=dict)
    gaps: dict[tuple[object, ...], list[Gap]] = field(default_factory=dict)

    def reserve(self, zone: int | None) -> int:
        """Reserves the number of a rule."""
        self.language.zones.append(zone)
        return self.language.reserve()

    def zone(self, between: list[Gap]) -> int | None:
        """Returns the zone of some ignored text."""
        if not between:
            return None
        if between not in self.language.ignored:
            self.language.ignored.append(between)
        return self.language.ignored.index(between)

    def add(self, grammar: Grammar, where: str, text: str, options: Options) -> int:
        """Adds the grammar of a JSON Schema, whose terminals get options of ``text``; returns its symbol."""
        first = len(self.language.terminals)
        self.language.terminals.extend(
            with_token_options(replace(each, name=f"{each.name} {where}"), text, options) for each in grammar.terminals
        )
        added = range(first, len(self.language.terminals))
        self.language.whole.update(added)
        self.language.zones += [None] * len(grammar.rules)
        return self.language.add_rules(grammar, added, "", f" ({where})")


class _Emitter:
    """Rules and terminals of one grammar text by their nodes.

    ``origin``: the name of the grammar, if it has one. ``options``: options of all its terminals; their own come first.
    """

    def __init__(self, syntax: Syntax, building: _Building, origin: str = "", options: Options = NO_OPTIONS) -> None:
        self.syntax = syntax
        self.text = syntax.text
        self.building = building
        self.rules = building.language.rules
        self.origin = origin
        self.options = options
        with errors_in(origin):
            check_names(syntax, building.library)
            check_parameters(syntax)
            self.named = named_expressions(syntax)
            self.zone = building.zone(gaps(syntax, self.named, building.gaps))
        building.language.no_forcing |= syntax.settings.no_forcing
        self.lexemes = Lexemes(syntax, self.named)
        self.bodies = Specializing(syntax)
        self.numbers: dict[str, int] = {}
        self.leaves: dict[str, tuple[int | None, bool]] = {}
        self.embedded: dict[int, int] = {}
        self.stopped: dict[str, int] = {}
        building.emitters.append(self)

    def rule(self, name: str) -> int:
        """Returns the symbol of a rule."""
        if name not in self.numbers:
            self.numbers[name] = self.reserve()
            self.building.waiting.append((self, self.numbers[name], name))
        return ~self.numbers[name]

    def reserve(self) -> int:
        """Reserves the number of a rule."""
        return self.building.reserve(self.zone)

    def emit(self, index: int, name: str) -> None:
        """Makes a requested rule, and requests the rules that it needs."""
        with errors_in(self.origin):
            definition, body = self.bodies.definition(name), self.bodies.body(name)
            options = definition.options
            capture = None if options.capture is None else Capture(options.capture.value)
            if isinstance(body, OtherGrammar) and options.temperature is not None:
                edges = (Edge(0, self._embed(body, Options(temperature=options.temperature)), 1),)
                rule = Rule(name, edges, (1,), capture=capture)
            elif is_lexeme(definition) and part_of_several(body) is None:
                definition = replace(definition, body=body)
                self.rules[index] = self.lexeme_rule(name, definition, self.lexemes.of(definition))
                return
            else:
                rule = replace(TextRule(self, name).rule(body), capture=capture)
            self.rules[index] = with_limit(rule, self.text, options)

    def lexeme_rule(self, name: str, definition: Definition, lexeme: Lexeme) -> Rule:
        """Returns a rule that reads one lexeme, which has the name of the rule."""
        expression, nullable = non_empty_part(lexeme.expression)
        symbol = None
        if expression is not None:
            symbol = self._terminal(name, definition.at, expression, definition.options, lazy=lexeme.lazy)
        edges = edges_of(START, (symbol, nullable), END)[::-1]
        return Rule(name, tuple(edges), (END,), capture=lexeme.capture)

    def stopped_by(self, part: Expression, follower: Expression) -> int | None:
        """Returns the symbol of a rule with ``stop`` and its stop after it; ``None`` if the parts are not these two."""
        if not isinstance(part, Symbol) or not isinstance(follower, Text):
            return None
        definition = None if part.is_terminal else self.bodies.definition(part.name)
        if definition is None or definition.options.stop is None:
            return None
        if isinstance(follower, Symbol) and not follower.is_terminal:
            return None
        if not self.lexemes.is_stop(definition, follower):
            return None
        if part.name not in self.stopped:
            self.stopped[part.name] = self.reserve()
            definition = replace(definition, body=self.bodies.body(part.name))
            rule = self.lexeme_rule(part.name, definition, self.lexemes.with_stop(definition))
            self.rules[self.stopped[part.name]] = rule
        return ~self.stopped[part.name]

    def check_stops(self) -> None:
        """Raises GrammarError for a rule with ``stop`` that something else than its stop may follow."""
        for name, index in self.numbers.items():
            definition = self.bodies.definition(name)
            if not self.lexemes.has_stop(definition):
                continue
            stop = self.lexemes.stop(definition)
            for symbol in followers(self.building.language.rules, index):
                terminal = self.building.language.terminals[symbol]
                if not equal(terminal.expression, stop):
                    with errors_in(self.origin):
                        why = f"{terminal.name} may follow {name}, which is not its stop"
                        self.lexemes.refuse_stop(definition, why)

    def place(self, at: int) -> str:
        """Returns a place in words, for names of terminals."""
        return place(self.text, at) + (f" of @{self.origin}" if self.origin else "")

    def leaf(self, node: Text) -> tuple[int | None, bool]:
        """Returns the symbol of a terminal, if it has nonempty texts; and whether it has the empty text."""
        match node:
            case Symbol(name, _):
                key, at = name, self.syntax.terminals[name].at
            case Quoted(written, at):
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

    def _terminal(
        self, name: str, at: int, expression: Expression, options: Options = NO_OPTIONS, *, lazy: bool = False
    ) -> int:
        terminal = Terminal(f"{name} ({self.place(at)})", expression, lazy=lazy)
        for each in (options, self.options):
            terminal = with_token_options(terminal, self.text, each)
        self.building.language.terminals.append(terminal)
        return len(self.building.language.terminals) - 1

    def embed(self, node: OtherGrammar) -> int:
        """Returns the symbol of the first rule of a JSON Schema or of another grammar."""
        if node.at not in self.embedded:
            self.embedded[node.at] = self._embed(node, NO_OPTIONS)
        return self.embedded[node.at]

    def _embed(self, node: OtherGrammar, options: Options) -> int:
        """Returns the symbol of the first rule of a language whose terminals have options."""
        if options.temperature is None:
            options = self.options
        match node:
            case Embedded():
                where = f"in %json ({self.place(node.at)})"
                return self.building.add(schema_grammar(self.text, node), where, self.text, options)
            case Nested(syntax, at):
                check_inner(syntax, at)
                return _Emitter(syntax, self.building, self.origin, options).rule("start")
        key = node.name, None if options.temperature is None else options.temperature.value
        if key not in self.building.named:
            self.building.named[key] = self._named(node.name, options)
        return self.building.named[key]

    def _named(self, name: str, options: Options) -> int:
        found = self.building.library.grammar(name)
        if isinstance(found, Syntax):
            return _Emitter(found, self.building, name, options).rule("start")
        return self.building.add(found, f"in @{name}", self.text, options)


class Symbols(Protocol):
    """The symbols of a grammar under construction, by the parts of its text; and its rules."""

    text: str
    rules: list[Rule]

    def rule(self, name: str) -> int:
        """Returns the symbol of a rule."""

    def leaf(self, node: Text) -> tuple[int | None, bool]:
        """Returns the symbol of a terminal, if it has nonempty texts; and whether it has the empty text."""

    def special(self, node: Special) -> int:
        """Returns the symbol of a special token."""

    def embed(self, node: OtherGrammar) -> int:
        """Returns the symbol of the first rule of a JSON Schema or of another grammar."""

    def reserve(self) -> int:
        """Reserves the number of a rule."""

    def stopped_by(self, part: Expression, follower: Expression) -> int | None:
        """Returns the symbol of a rule with ``stop`` and its stop after it; ``None`` if the parts are not these two."""


class TextRule(RuleAutomaton):
    """The automaton of a rule of a grammar text."""

    __slots__ = ("emitter", "name")

    def __init__(self, emitter: Symbols, name: str) -> None:
        super().__init__()
        self.emitter = emitter
        self.name = name

    def rule(self, body: Expression) -> Rule:
        """Returns the rule with the texts of a body."""
        self.add(body, START, END)
        return Rule(self.name, tuple(self.edges), (END,))

    def add(self, node: Expression, source: int, target: int) -> None:
        """Adds edges from state ``source`` to state ``target`` that read the texts of a node."""
        match node:
            case Symbol(name, is_terminal=False):
                self.edges.append(Edge(source, self.emitter.rule(name), target))
            case Symbol() | Quoted() | Range() | Substring():
                self.edges += edges_of(source, self.emitter.leaf(node), target)
            case Special():
                self.edges.append(Edge(source, self.emitter.special(node), target))
            case _ if isinstance(node, OtherGrammar):
                self.edges.append(Edge(source, self.emitter.embed(node), target))
            case Both(at=at) | Not(at=at):
                message = "& and ~ belong into terminals: give this part a name in capitals, and use the name here"
                raise error_at(self.emitter.text, at, message)
            case Concatenation(parts):
                self._add_sequence(list(parts), source, target)
            case Repetition():
                self._add_repeat(node, source, target)
            case _:
                for part in parts_of(node):
                    self.add(part, source, target)

    def _add_sequence(self, parts: list[Expression], source: int, target: int) -> None:
        while parts:
            joined = self.emitter.stopped_by(parts[0], parts[1]) if len(parts) > 1 else None
            read, parts = parts[0], parts[1 if joined is None else 2 :]
            onward = self.state() if parts else target
            if joined is None:
                self.add(read, source, onward)
            else:
                self.edges.append(Edge(source, joined, onward))
            source = onward
        if source != target:
            self.edges.append(Edge(source, EPSILON, target))

    def _add_repeat(self, node: Repetition, source: int, target: int) -> None:
        part, minimum, maximum = node.part, node.minimum, node.maximum
        copies = minimum if maximum is None else maximum
        if copies > 1 and copies * _leaves(part) > MAX_WRITTEN_OUT:
            self.edges.append(Edge(source, self._counted(part, minimum, maximum), target))
        elif maximum is not None:
            self._add_copies(part, minimum, maximum, source, target)
        elif minimum <= 1:
            self._add_loop(part, minimum, source, target)
        else:
            self._add_sequence([*[part] * (minimum - 1), Repetition(part, 1, None)], source, target)

    def _add_loop(self, part: Expression, minimum: int, source: int, target: int) -> None:
        """Adds a loop: ``*`` if the minimum is 0, ``+`` if it is 1; Lark has no others."""
        begin = self.state()
        end = self.state() if minimum else begin
        self.edges.append(Edge(source, EPSILON, begin))
        self.add(part, begin, end)
        if minimum:
            self.edges.append(Edge(end, EPSILON, begin))
        self.edges.append(Edge(end, EPSILON, target))

    def _add_copies(self, part: Expression, minimum: int, maximum: int, source: int, target: int) -> None:
        for copy in range(maximum):
            if copy >= minimum:
                self.edges.append(Edge(source, EPSILON, target))
            middle = self.state() if copy < maximum - 1 else target
            self.add(part, source, middle)
            source = middle
        if maximum == 0:
            self.edges.append(Edge(source, EPSILON, target))

    def _counted(self, part: Expression, minimum: int, maximum: int | None) -> int:
        """Returns the symbol of a rule that counts how often it has read a node (as far as a count matters)."""
        if minimum > MAX_LEAST_COUNT:
            message = (
                f"a part of a rule is required {minimum:,} times; write at most {MAX_LEAST_COUNT:,} (MAX_LEAST_COUNT), "
                "or make the part a terminal"
            )
            raise placed(LimitError, self.emitter.text, place_of(part), message)
        index = self.emitter.reserve()
        automaton = TextRule(self.emitter, f"{self.name}{{{minimum},{'' if maximum is None else maximum}}}")
        again = () if maximum is None else (Condition(0, 0, maximum - 1),)
        enough = (Condition(0, minimum, None),) if minimum else ()
        begin = automaton.state()
        automaton.edges += [
            Edge(START, EPSILON, begin, again, ((Action.INCREMENT, 0),)),
            Edge(START, EPSILON, END, enough),
        ]
        automaton.add(part, begin, START)
        slots = (minimum if maximum is None else maximum,)
        self.emitter.rules[index] = Rule(automaton.name, tuple(automaton.edges), (END,), slots)
        return ~index


def _leaves(node: Expression) -> int:
    """Returns the approximate number of edges of a node."""
    within = sum(map(_leaves, parts_of(node)))
    if isinstance(node, Repetition):
        within *= min(MAX_WRITTEN_OUT, node.maximum or 1)
    return within if isinstance(node, Alias) else 1 + within
