r"""Lexemes inside JSON strings, where a backslash could continue one lexeme or begin the next.

``line: /.+/ "\n"`` ends a line at a byte that cannot continue the line. In a JSON string, the line ends at ``\n``, and
its backslash can continue the line: ``\"`` is a character of a line, too. The byte after the backslash decides. So this
module turns such a terminal into a rule that reads its characters one by one, each as a lexeme with its escape. Both
readings then go on in parallel until the byte decides.

The rule means the same as the terminal if no terminal that may stand next to it or behind it begins with one of its
characters: then the longest match reads as many of these characters as there are, and so does the rule. (For a terminal
that repeats a character class, a neighbour without escapes may begin with these characters, since both are then read as
one lexeme, as before; but no terminal behind the neighbour may begin with an escape that could continue the
repetition.) All other terminals stay unchanged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from constrain import kernel
from constrain.engine.special import terminal_error
from constrain.errors import GrammarError
from constrain.language.grammar import EPSILON, Action, Edge, Grammar, Rule, Terminal
from constrain.language.special import terminal_special, token_set
from constrain.language.tree import (
    ANY_BYTES,
    Alternation,
    CharClass,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Ranges,
    Repetition,
)
from constrain.regex import classes
from constrain.regex.anchors import sequence
from constrain.regex.spelling import in_json, in_json_text
from constrain.work import asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from constrain.language.special import TokenSet

_ESCAPED: Ranges = ((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C))
"""Code points that a JSON string spells with an escape."""

_MAX_STATES = 500
"""States of the rule that replaces one terminal: 500; beyond it, the terminal stays unchanged."""

_MAX_PAIRS = 500_000
"""Pairs of terminals that are compared: 500,000; beyond it, all terminals stay unchanged."""


def spell_in_json(grammar: Grammar) -> Grammar:
    """Returns the grammar of the same texts inside a JSON string. Raises GrammarError for tokens by id."""
    for each in grammar.terminals:
        written = terminal_special(each)
        if written is not None and not _has_plain_text(token_set(written)):
            message = (
                "this model writes the text as a JSON string, in which tokens by id may need an escape; write texts"
            )
            raise terminal_error(GrammarError, each, message)
    terminals = [
        replace(terminal, expression=in_json(terminal.expression), label=in_json_text(terminal.label))
        for terminal in grammar.terminals
    ]
    rules = list(grammar.rules)
    replaced: dict[int, int] = {}
    for terminal in _find_replaced(grammar):
        replaced[terminal] = ~len(rules)
        rules.append(_Characters(grammar.terminals[terminal], terminals, terminal).rule())
    if replaced:
        rules[: len(grammar.rules)] = [_with_rules(rule, replaced) for rule in grammar.rules]
    return replace(grammar, terminals=tuple(terminals), rules=tuple(rules), self_delimiting=False, proved=False)


def _has_plain_text(tokens: TokenSet) -> bool:
    """Returns whether these tokens are known to have no text, or one without escapes: the one token of a name."""
    return tokens.name is not None and not tokens.is_negated and "\\" not in tokens.name


def _with_rules(rule: Rule, replaced: dict[int, int]) -> Rule:
    edges = (edge._replace(symbol=replaced.get(_symbol(edge), edge.symbol)) for edge in rule.edges)
    return replace(rule, edges=tuple(edges))


def _symbol(edge: Edge) -> int:
    """Returns the terminal that an edge reads, or -1."""
    return -1 if edge.symbol is EPSILON else max(edge.symbol, -1)


def _find_replaced(grammar: Grammar) -> list[int]:
    """Returns the terminals that become rules."""
    expressions = [terminal.expression for terminal in grammar.terminals]
    ignored = set(grammar.ignored)
    candidates = {
        index: characters
        for index, expression in enumerate(expressions)
        if index not in ignored and (characters := _characters(expression)) is not None
        if classes.intersection(characters, _ESCAPED)
    }
    for rule in grammar.rules:
        for edge in rule.edges:
            if (
                edge.excluding >= 0
                or edge.distinct >= 0
                or any(action is Action.REMEMBER for action, _ in edge.actions)
            ):
                candidates.pop(_symbol(edge), None)  # conditions and actions of this edge need the text as a whole
    neighbours = _neighbours(grammar) if candidates else None
    if neighbours is None:
        return []

    def keeps_meaning(index: int, characters: Ranges) -> bool:
        beside, behind = (neighbours.beside[index] | ignored) - {index}, neighbours.behind[index] | ignored
        if index in behind:
            return False
        if _is_run(expressions[index]):
            plain = {other for other in beside - ignored if not _has_escapes(expressions[other])}
            beside -= plain
            escapes = classes.intersection(characters, _ESCAPED)
            followers = {follower for other in plain for follower in neighbours.behind[other] | ignored}
            if any(_begins_with(expressions[other], escapes) for other in followers):
                return False
        return not any(_begins_with(expressions[other], characters) for other in beside | behind)

    return [
        index
        for index, characters in candidates.items()
        if any(_begins_with(expressions[other], _ESCAPED) for other in neighbours.behind[index] | ignored)
        and keeps_meaning(index, characters)
    ]


def _is_run(expression: Expression) -> bool:
    """Returns whether the expression repeats a character class: then characters without escapes form one lexeme."""
    match expression:
        case Repetition(CharClass(), 1, None):
            return True
    return False


def _has_escapes(expression: Expression) -> bool:
    return not asked(kernel.is_empty, Intersection((expression, sequence(ANY_BYTES, CharClass(_ESCAPED), ANY_BYTES))))


def _begins_with(expression: Expression, characters: Ranges) -> bool:
    return not asked(kernel.is_empty, Intersection((expression, sequence(CharClass(characters), ANY_BYTES))))


# Characters of an expression.


def _characters(expression: Expression) -> Ranges | None:
    """Returns all characters of an expression that can be split into characters; ``None`` if it cannot."""
    ranges: list[tuple[int, int]] = []
    n_states = 0
    work: list[tuple[Expression, int]] = [(expression, 1)]
    while work:
        node, copies = work.pop()
        n_states += copies
        match node:
            case Concatenation(parts) | Alternation(parts):
                work += [(part, copies) for part in parts]
            case Repetition(part, minimum, maximum):
                work.append((part, copies * max(1, minimum if maximum is None else maximum)))
            case CharClass(found, json=False):
                ranges += found
            case Literal(text):
                work.append((LiteralSet((text,)), copies))
            case LiteralSet(texts):
                for text in texts:
                    if (points := _points(text)) is None:
                        return None
                    ranges += points
                    n_states += copies * len(points)
            case _:
                return None
        if n_states > _MAX_STATES:
            return None
    return classes.normalize(ranges)


def _points(text: bytes) -> list[tuple[int, int]] | None:
    """Returns the characters of a text as ranges; ``None`` if it is not UTF-8, such as a special token."""
    try:
        return [(ord(character), ord(character)) for character in text.decode()]
    except UnicodeDecodeError:
        return None


# Terminals that may be read next to another one, or behind it.


class _Neighbours(NamedTuple):
    beside: list[set[int]]
    behind: list[set[int]]


def _neighbours(grammar: Grammar) -> _Neighbours | None:
    """Returns the neighbours of every terminal, treating all callers of a rule alike; ``None`` above ``_MAX_PAIRS``."""
    places = _Places(grammar)
    count = len(grammar.terminals)
    found = _Neighbours([set() for _ in range(count)], [set() for _ in range(count)])
    overlaps: dict[tuple[int, int], bool] = {}

    def overlap(a: int, b: int) -> bool:
        key = min(a, b), max(a, b)
        if key not in overlaps:
            one, two = grammar.terminals[a].expression, grammar.terminals[b].expression
            overlaps[key] = a == b or not asked(kernel.is_empty, Intersection((one, two)))
        return overlaps[key]

    start, n_pairs = (0, 0), 0
    work, seen = [(start, start)], {(start, start)}
    for a, b in work:  # the loop appends to ``work``
        n_pairs += len(places.read_terminals(a)) * len(places.read_terminals(b))
        if n_pairs > _MAX_PAIRS:
            return None
        for one, after_one in places.read_terminals(a):
            for two, after_two in places.read_terminals(b):
                found.beside[one].add(two)
                found.beside[two].add(one)
                if overlap(one, two) and (pair := (after_one, after_two)) not in seen:
                    seen.add(pair)
                    work.append(pair)
    for place in {place for pair in seen for place in pair}:
        for terminal, after in places.read_terminals(place):
            found.behind[terminal] |= {other for other, _ in places.read_terminals(after)}
    return found


class _Places:
    """States of rules, as ``(rule, state)``, and the terminals that may be read from each."""

    def __init__(self, grammar: Grammar) -> None:
        self._edges: dict[tuple[int, int], list[Edge]] = {}
        self._accepting = {(index, state) for index, rule in enumerate(grammar.rules) for state in rule.accepting}
        self._callers: dict[int, list[tuple[int, int]]] = {}
        self._known: dict[tuple[int, int], list[tuple[int, tuple[int, int]]]] = {}
        for index, rule in enumerate(grammar.rules):
            for edge in rule.edges:
                self._edges.setdefault((index, edge.source), []).append(edge)
                if edge.symbol is not EPSILON and edge.symbol < 0:
                    self._callers.setdefault(~edge.symbol, []).append((index, edge.target))

    def read_terminals(self, place: tuple[int, int]) -> list[tuple[int, tuple[int, int]]]:
        """Returns the terminals that may be read from a place, each with the place behind it."""
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = list(self._read(place))
        return known

    def _read(self, place: tuple[int, int]) -> Iterator[tuple[int, tuple[int, int]]]:
        work, seen = [place], {place}

        def reach(other: tuple[int, int]) -> None:
            if other not in seen:
                seen.add(other)
                work.append(other)

        for here in work:  # the loop appends to ``work``
            for edge in self._edges.get(here, ()):
                behind = here[0], edge.target
                if edge.symbol is EPSILON:
                    reach(behind)
                elif edge.symbol >= 0:
                    yield edge.symbol, behind
                else:
                    reach((~edge.symbol, 0))
            if here in self._accepting:
                for caller in self._callers.get(here[0], ()):
                    reach(caller)


# The rule that replaces a terminal.


class _Characters:
    """Builds the rule. Its lexemes are appended to ``terminals``, except the first, which replaces the terminal."""

    def __init__(self, terminal: Terminal, terminals: list[Terminal], place: int) -> None:
        self._terminal = terminal
        self._terminals = terminals
        self._place: int | None = place
        self._symbols: dict[Expression, int] = {}
        self._edges: list[Edge] = []
        self._states = 1

    def rule(self) -> Rule:
        """Returns the rule that reads the characters of the terminal."""
        match self._terminal.expression:
            case Repetition(CharClass(ranges), 1, None):
                ends = self._run(ranges)
            case expression:
                ends = (self._after(0, expression),)
        return Rule(self._terminal.name, tuple(self._edges), ends)

    def _run(self, ranges: Ranges) -> tuple[int, ...]:
        """Adds a repeated character class (one lexeme per stretch without escapes); returns the states behind it."""
        plain, run, escape = classes.difference(ranges, _ESCAPED), self._state(), self._state()
        for source in (0, run, escape):
            self._edge(source, CharClass(classes.intersection(ranges, _ESCAPED)), escape)
        if plain:
            lexeme = Repetition(CharClass(plain), 1, None)
            for source in (0, escape):
                self._edge(source, lexeme, run)
        return run, escape

    def _state(self) -> int:
        self._states += 1
        return self._states - 1

    def _edge(self, source: int, expression: Expression, target: int) -> None:
        symbol = self._symbols.get(expression)
        if symbol is None:
            made = replace(self._terminal, expression=in_json(expression))
            if self._place is None:
                symbol = len(self._terminals)
                self._terminals.append(made)
            else:
                symbol, self._place = self._place, None
                self._terminals[symbol] = made
            self._symbols[expression] = symbol
        self._edges.append(Edge(source, symbol, target))

    def _after(self, source: int, expression: Expression) -> int:
        """Adds an expression; returns the state behind it."""
        match expression:
            case Concatenation(parts):
                for part in parts:
                    source = self._after(source, part)
                return source
            case Alternation(parts):
                return self._join_states(self._after(source, part) for part in parts)
            case LiteralSet(texts):
                return self._join_states(self._after(source, Literal(text)) for text in texts)
            case Literal(text):
                for character in text.decode():
                    source = self._through(source, CharClass(((ord(character), ord(character)),)))
                return source
            case Repetition(part, minimum, maximum):
                return self._repeat(source, part, minimum, maximum)
        return self._through(source, expression)

    def _through(self, source: int, character: Expression) -> int:
        target = self._state()
        self._edge(source, character, target)
        return target

    def _join_states(self, ends: Iterable[int]) -> int:
        target = self._state()
        self._edges += [Edge(end, EPSILON, target) for end in tuple(ends)]
        return target

    def _repeat(self, source: int, part: Expression, minimum: int, maximum: int | None) -> int:
        for _ in range(minimum):
            source = self._after(source, part)
        if maximum is None:
            loop = self._state()
            self._edges.append(Edge(source, EPSILON, loop))
            self._edges.append(Edge(self._after(loop, part), EPSILON, loop))
            return loop
        ends = [source]
        for _ in range(maximum - minimum):
            ends.append(self._after(ends[-1], part))
        return self._join_states(ends)
