"""Automata of rules over terminals, still without ignored text.

``*`` is a loop, ``|`` a branch. Counts are written out while that is short; a longer count becomes a rule of its own
with a counter. A terminal that may be empty becomes its nonempty texts, optional.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from constrain.language.emptiness import followers
from constrain.language.grammar import EPSILON, Action, Capture, Condition, Edge, Rule, Terminal
from constrain.language.merging import moved_rules
from constrain.language.special import special_token
from constrain.lark.embedded import schema_grammar
from constrain.lark.lexemes import Lexeme, Lexemes, equal, is_lexeme
from constrain.lark.reading.places import error_at, place
from constrain.lark.reading.syntax import (
    NO_OPTIONS,
    Alias,
    Both,
    Choice,
    Complement,
    Embedded,
    Literal,
    Node,
    Range,
    Repeat,
    Sequence,
    Special,
    Substring,
    Symbol,
    Syntax,
)
from constrain.lark.terminals import check_defined, named_expressions, non_empty_part, symbols, terminal_expression
from constrain.lark.token_options import with_token_options

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar
    from constrain.language.tree import Expression
    from constrain.lark.reading.syntax import Definition, Options

MAX_WRITTEN_OUT = 64
"""Leaves of the copies up to which a count is written out; above it, the grammar gets a counter, which takes memory in
every state."""


@dataclass
class Language:
    """The terminals and rules made so far; the start is the first rule.

    ``solid``: rules of JSON Schemas, in which nothing is ignored. ``whole``: their terminals. ``warnings``: their
    warnings.
    """

    terminals: list[Terminal] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    solid: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    warnings: dict[str, None] = field(default_factory=dict)


def language(syntax: Syntax, start: str) -> tuple[Language, dict[str, Expression]]:
    """Returns the rules that the start needs, and all named terminals. Raises GrammarError, PatternError."""
    if start not in syntax.rules:
        raise error_at(syntax.text, 0, f"there is no rule {start} to begin with")
    for definition in (*syntax.rules.values(), *syntax.ignored):
        options = definition.options
        for part in (definition.body, options.suffix, options.stop):
            for symbol in symbols(part) if part is not None else ():
                check_defined(syntax, symbol)
    emitter = _Emitter(syntax, named_expressions(syntax))
    emitter.rule(start)
    emitter.emit()
    emitter.check_stops()
    return emitter.language, emitter.named


class _Emitter:
    """Rules and terminals by their nodes, and the queue of rules to make."""

    def __init__(self, syntax: Syntax, named: dict[str, Expression]) -> None:
        self.syntax = syntax
        self.text = syntax.text
        self.named = named
        self.lexemes = Lexemes(syntax, named)
        self.language = Language()
        self.rules: dict[str, int] = {}
        self.leaves: dict[str, tuple[int | None, bool]] = {}
        self.stopped: dict[str, int] = {}
        self.reserved: list[Rule | None] = []
        self.waiting: list[tuple[int, str]] = []

    def rule(self, name: str) -> int:
        """Returns the symbol of a rule."""
        if name not in self.rules:
            self.rules[name] = self.reserve()
            self.waiting.append((self.rules[name], name))
        return ~self.rules[name]

    def reserve(self) -> int:
        """Reserves the number of a rule."""
        self.reserved.append(None)
        return len(self.reserved) - 1

    def emit(self) -> None:
        """Makes all requested rules, and the rules that they need."""
        while self.waiting:
            index, name = self.waiting.pop()
            definition = self.syntax.rules[name]
            if isinstance(definition.body, Embedded) and definition.options.temperature is not None:
                self.reserved[index] = self.warm_json(name, definition.body, definition.options)
                continue
            if is_lexeme(definition):
                self.reserved[index] = self.lexeme_rule(name, definition, self.lexemes.of(definition))
                continue
            automaton = RuleAutomaton(self, name)
            automaton.add(definition.body, 0, 1)
            capture = None if definition.options.capture is None else Capture(definition.options.capture.value)
            self.reserved[index] = Rule(name, tuple(automaton.edges), (1,), capture=capture)
        self.language.rules = [rule for rule in self.reserved if rule is not None]

    def warm_json(self, name: str, body: Embedded, options: Options) -> Rule:
        """Returns a rule that reads a JSON value with a temperature."""
        capture = None if options.capture is None else Capture(options.capture.value)
        return Rule(name, (Edge(0, self.embed(body, options), 1),), (1,), capture=capture)

    def lexeme_rule(self, name: str, definition: Definition, lexeme: Lexeme) -> Rule:
        """Returns a rule that reads one lexeme, which has the name of the rule."""
        expression, nullable = non_empty_part(lexeme.expression)
        edges = [Edge(0, EPSILON, 1)] if nullable else []
        if expression is not None:
            edges.append(Edge(0, len(self.language.terminals), 1))
            written = f"{name} ({place(self.syntax.text, definition.at)})"
            terminal = Terminal(written, expression, lazy=lexeme.lazy)
            self.language.terminals.append(with_token_options(terminal, self.text, definition.options))
        return Rule(name, tuple(edges), (1,), capture=lexeme.capture)

    def stopped_by(self, part: Node, follower: Node) -> int | None:
        """Returns the symbol of a rule with ``stop`` and its stop after it; ``None`` if the parts are not these two."""
        if not isinstance(part, Symbol) or not isinstance(follower, Symbol | Literal | Range | Substring):
            return None
        definition = self.syntax.rules.get(part.name)
        if definition is None or definition.options.stop is None:
            return None
        if isinstance(follower, Symbol) and not follower.is_terminal:
            return None
        if not self.lexemes.is_stop(definition, follower):
            return None
        if part.name not in self.stopped:
            self.stopped[part.name] = self.reserve()
            rule = self.lexeme_rule(part.name, definition, self.lexemes.with_stop(definition))
            self.reserved[self.stopped[part.name]] = rule
        return ~self.stopped[part.name]

    def check_stops(self) -> None:
        """Raises GrammarError for a rule with ``stop`` that something else than its stop may follow."""
        for name, index in self.rules.items():
            definition = self.syntax.rules[name]
            if not self.lexemes.has_stop(definition):
                continue
            stop = self.lexemes.stop(definition)
            for symbol in followers(self.language.rules, index):
                terminal = self.language.terminals[symbol]
                if not equal(terminal.expression, stop):
                    self.lexemes.refuse_stop(definition, f"{terminal.name} may follow {name}, which is not its stop")

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
            symbol = None
            if expression is not None:
                symbol = len(self.language.terminals)
                name = "%regex" if isinstance(node, Substring) else key
                self.language.terminals.append(Terminal(f"{name} ({place(self.syntax.text, at)})", expression))
            self.leaves[key] = symbol, nullable
        return self.leaves[key]

    def special(self, node: Special) -> int:
        """Returns the symbol of a special token."""
        if node.name not in self.leaves:
            self.leaves[node.name] = len(self.language.terminals), False
            where = place(self.syntax.text, node.at)
            self.language.terminals.append(Terminal(f"{node.name} ({where})", special_token(node.name)))
        symbol, _ = self.leaves[node.name]
        assert symbol is not None
        return symbol

    def embed(self, node: Embedded, options: Options = NO_OPTIONS) -> int:
        """Returns the symbol of the first rule of a JSON Schema, whose lexemes have the options."""
        grammar: Grammar = schema_grammar(self.syntax.text, node)
        terminals, rules = len(self.language.terminals), len(self.reserved)
        where = f"in %json ({place(self.syntax.text, node.at)})"
        self.language.terminals.extend(
            with_token_options(replace(each, name=f"{each.name} {where}"), self.text, options)
            for each in grammar.terminals
        )
        self.language.whole |= set(range(terminals, len(self.language.terminals)))
        self.language.warnings |= {f"{warning} ({where})": None for warning in grammar.warnings}
        for rule in moved_rules(grammar, terminals, rules):
            self.language.solid.add(self.reserve())
            self.reserved[-1] = rule
        return ~rules


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

    def embed(self, node: Embedded) -> int:
        """Returns the symbol of the first rule of a JSON Schema."""

    def reserve(self) -> int:
        """Reserves the number of a rule."""

    def stopped_by(self, part: Node, follower: Node) -> int | None:
        """Returns the symbol of a rule with ``stop`` and its stop after it; ``None`` if the parts are not these two."""


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
            case Embedded():
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
        while parts:
            joined = self.emitter.stopped_by(parts[0], parts[1]) if len(parts) > 1 else None
            read, parts = parts[0], parts[1 if joined is None else 2 :]
            onward = self._state() if parts else target
            if joined is None:
                self.add(read, source, onward)
            else:
                self.edges.append(Edge(source, joined, onward))
            source = onward
        if source != target:
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
