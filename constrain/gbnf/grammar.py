"""From the rules of a GBNF text to a ``Grammar``.

GBNF has no lexemes: a text matches if the rules can divide it in any way. Terminals of one character each would do, but
are slow to read. So parts that are regular (rules that use only regular rules, and never themselves) become terminals,
and those are split again by which lexing would lose a text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.gbnf.reading import Characters, read, rule_of, symbol_of
from constrain.gbnf.spelling import first_leaf, written
from constrain.language.emptiness import productive_rules
from constrain.language.merging import Merging
from constrain.language.special import special_token
from constrain.language.tree import Alternation, Concatenation, Expression, Inner, Repetition, inside, with_parts
from constrain.lark.lexing.splitting import split_until_lossless
from constrain.lark.reading.places import error_at, place
from constrain.lark.reading.syntax import OtherGrammar, Special, Symbol, Text
from constrain.lark.rules import TextRule
from constrain.lark.terminals import depth
from constrain.regex.anchors import repetition, sequence, union
from constrain.regex.parsing.parser import char_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.gbnf.dialects import Dialect
    from constrain.language.grammar import Grammar

MAX_PART_DEPTH = 60
"""Levels of operators in a regular part of a GBNF grammar that becomes one terminal; a deeper rule stays a rule."""


def gbnf_grammar(text: str, dialect: Dialect) -> Grammar:
    """Returns the grammar of a GBNF text. Raises GrammarError with line, column and an excerpt, and LimitError."""
    rules = read(text, dialect)
    whole = _Emitter(text, rules, _regular_rules(rules)).grammar()
    if 0 not in productive_rules(whole.rules):
        message = "the language is empty: every way through root leads back to itself"
        raise error_at(text, rules[symbol_of("root")][1], message)
    return split_until_lossless(whole) or _Emitter(text, rules, None).grammar()


def _regular_rules(rules: dict[str, tuple[Expression, int]]) -> dict[str, Expression]:
    """Returns the expressions of the rules that are regular: they use only regular rules and no special tokens."""
    found: dict[str, Expression] = {}
    depths: dict[str, int] = {}
    uses = {name: [each.name for each in inside(body) if isinstance(each, Symbol)] for name, (body, _) in rules.items()}
    users: dict[str, set[str]] = {name: set() for name in rules}
    for name, used in uses.items():
        for other in used:
            users[other].add(name)
    waiting = [name for name, used in uses.items() if not used]
    while waiting:
        name = waiting.pop()
        body = rules[name][0]
        if name in found or not all(other in found for other in uses[name]):
            continue
        levels = depth(body, depths)
        if levels > MAX_PART_DEPTH or any(isinstance(each, Special) for each in inside(body)):
            continue
        depths[name], found[name] = levels, _expression(body, found)
        waiting.extend(users[name])
    return found


def _expression(node: Expression, regular: dict[str, Expression]) -> Expression:
    match node:
        case Concatenation(parts):
            return sequence(*(_expression(part, regular) for part in parts))
        case Alternation(parts):
            return union([_expression(part, regular) for part in parts])
        case Repetition(part, minimum, maximum):
            return repetition(_expression(part, regular), minimum, maximum)
        case Symbol(name, _):
            return regular[name]
    assert isinstance(node, Characters), node
    return char_class(node.ranges, json=False)


class _Emitter(Merging):
    """Rules and terminals by their nodes, and the queue of rules to make.

    ``regular``: rules that become terminals; None if all terminals are single characters.
    """

    def __init__(
        self, text: str, rules: dict[str, tuple[Expression, int]], regular: dict[str, Expression] | None
    ) -> None:
        super().__init__()
        self.text = text
        self._bodies = rules
        self._regular = regular
        self._numbers: dict[str, int] = {}
        self._waiting: list[str] = []
        self._parts: dict[str, tuple[Expression, str]] = {}

    def grammar(self) -> Grammar:
        """Returns the grammar. With single characters as terminals, lexing loses nothing."""
        self.rule(symbol_of("root"))
        while self._waiting:
            name = self._waiting.pop()
            body, _ = self._bodies[name]
            self.rules[self._numbers[name]] = TextRule(self, name).rule(self._with_terminals(body))
        if self._regular is not None:
            return self.merged()
        self.split |= {terminal.name: None for terminal in self.terminals}
        return replace(self.merged(), self_delimiting=True, proved=True)

    def rule(self, name: str) -> int:
        """Returns the symbol of a rule."""
        if name not in self._numbers:
            self._numbers[name] = self.reserve()
            self._waiting.append(name)
        return ~self._numbers[name]

    def leaf(self, node: Text) -> tuple[int | None, bool]:
        """Returns the symbol of a terminal, if it has nonempty texts; and whether it has the empty text."""
        assert isinstance(node, Symbol)
        expression, name = self._parts[node.name]
        return self.texts(expression, expression, name)

    def special(self, node: Special) -> int:
        """Returns the symbol of a special token."""
        name = f"{node.name} ({place(self.text, node.at)})"
        return self.terminal(node.name, special_token(node.name), name)

    def stopped_by(self, _part: Expression, _follower: Expression) -> None:
        """Returns nothing: rules of GBNF have no options."""

    def embed(self, node: OtherGrammar) -> int:
        """Never called: GBNF embeds nothing."""
        raise AssertionError(node)

    def _with_terminals(self, node: Expression) -> Expression:
        """Returns a node with a terminal for each of its largest regular parts, or for each character."""
        if self._is_terminal(node):
            return self._terminal(node)
        match node:
            case Concatenation(parts) if parts:
                return Concatenation(tuple(self._joined(parts)))
            case Alternation(parts):
                plain = [part for part in parts if self._is_terminal(part)]
                others = [self._with_terminals(part) for part in parts if not self._is_terminal(part)]
                return Alternation((self._terminal(Alternation(tuple(plain))), *others) if plain else tuple(others))
        return with_parts(node, self._with_terminals)

    def _joined(self, parts: tuple[Expression, ...]) -> Iterator[Expression]:
        """Yields the parts of a sequence; neighbours that are regular become one terminal."""
        run: list[Expression] = []
        for part in parts:
            if self._is_terminal(part) and self._regular is not None:
                run.append(part)
                continue
            if run:
                yield self._terminal(Concatenation(tuple(run)))
                run = []
            yield self._with_terminals(part)
        if run:
            yield self._terminal(Concatenation(tuple(run)))

    def _is_terminal(self, node: Expression) -> bool:
        if self._regular is None:
            return isinstance(node, Characters)
        known = self._regular
        return all(
            isinstance(each, Characters | Inner) or (isinstance(each, Symbol) and each.name in known)
            for each in inside(node)
        )

    def _terminal(self, node: Expression) -> Symbol:
        """Returns a symbol that ``leaf`` reads; its terminal has the name of a rule, or the part as it is written."""
        while isinstance(node, Concatenation | Alternation) and len(node.parts) == 1:
            node = node.parts[0]
        key = f"T{len(self._parts)}"
        if isinstance(node, Symbol):
            name, at = rule_of(node.name), self._bodies[node.name][1]
        else:
            name, at = written(self.text, node), first_leaf(node)
        self._parts[key] = _expression(node, self._regular or {}), f"{name} ({place(self.text, at)})"
        return Symbol(key, at)
