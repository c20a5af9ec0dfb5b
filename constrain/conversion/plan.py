"""A plan of the Lark grammar: which rules become terminals, and which texts are read character by character.

GBNF and EBNF have no lexemes: a text matches if the rules can divide it in any way. Lark reads lexemes by the longest
match. So regular rules become terminals only as long as lexing loses no text (``core.lexing_conflict``). Where it would
lose one, a terminal becomes a rule again, and a string in a rule becomes a sequence of characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.conversion.automata import MAX_EXCEPTION_STATES, character_states
from constrain.conversion.names import START, lark_names
from constrain.conversion.parts import Characters, Except, Text, leaves
from constrain.conversion.patterns import character_literal, joined_patterns, plain_sequence, repeated_pattern
from constrain.conversion.regularity import (
    character_sets,
    characters_of,
    expression_of,
    nullable_rules,
    regular_rules,
    without_empty,
)
from constrain.conversion.spelling import quoted
from constrain.engine import core
from constrain.errors import LimitError
from constrain.language.grammar import Grammar
from constrain.lark.library import Library
from constrain.lark.named import NamedGrammars
from constrain.lark.reading.places import error_at
from constrain.lark.reading.syntax import (
    Both,
    Choice,
    Complement,
    Definition,
    Import,
    Literal,
    Repeat,
    Sequence,
    Symbol,
    Syntax,
)
from constrain.lark.rules import language

if TYPE_CHECKING:
    from collections.abc import Collection

    from constrain.conversion.parts import Original
    from constrain.language.tree import Expression

DECIDED_TERMINALS = 4_000
"""Terminals of all grammars together whose lexing is decided for one conversion. After these, all texts are read by
characters; a grammar of 40 terminals may lose one a hundred times."""


class Plan:
    """The decisions about one grammar.

    Attributes:
        original: the grammar.
        names: the name of each rule in Lark's form, in small letters.
        terminals: the rules that are terminals.
        single: strings and patterns of rules that are read character by character, as Lark spells them.
        parts: further rules and terminals by name, each with the rule it belongs to: exceptions in rules, and rules
            that are no terminals but stand in one.
    """

    def __init__(self, original: Original) -> None:
        self.original = original
        self.names = lark_names(original)
        regular = regular_rules(original)
        self.terminals = set(regular) - {original.start}
        self.single: set[str] = set()
        self.parts: dict[str, tuple[str, Definition]] = {}
        self._inside: dict[str, None] = {}
        self._regular = set(regular)
        self._nullable = nullable_rules(original)
        self._sets = character_sets(original, regular)
        self._in_order = regular
        self._is_all_single = False
        self._is_by_states = False
        self._decided = 0
        self._splittable: set[str] = set()

    @property
    def demoted(self) -> list[str]:
        """Returns the regular rules that are no terminals, because a longest match would lose texts."""
        return [name for name in self.original.rules if name in self._regular - self.terminals - {self.original.start}]

    def name_of(self, rule: str) -> str:
        """Returns the name of a rule or terminal in the Lark grammar."""
        name = self.names[rule]
        return name.upper() if rule in self.terminals else name

    def definitions(self) -> dict[str, Definition]:
        """Returns the body of each rule of the grammar, by its name there; ``parts`` is made anew."""
        self.parts = {}
        self._inside = {}
        made = {name: Definition(self._body(name), rule.at) for name, rule in self.original.rules.items()}
        while more := [
            name for name in self._inside if name not in self.terminals and self.names[name].upper() not in self.parts
        ]:
            for name in more:
                body = self._in_terminal(self.original.rules[name].body)
                self.parts[self.names[name].upper()] = name, Definition(body, self.original.rules[name].at)
        return made

    def _body(self, rule: str) -> Any:
        body = self.original.rules[rule].body
        return self._in_terminal(body) if rule in self.terminals else self._in_rule(body, rule)

    def syntax(self) -> Syntax:
        """Returns the whole grammar as the reader of Lark returns it; places are those of the original text."""
        made = self.definitions()
        rules = {self.name_of(name): each for name, each in made.items() if name not in self.terminals}
        terminals: dict[str, Definition | Import] = {
            self.name_of(name): each for name, each in made.items() if name in self.terminals
        }
        for name, (_, each) in self.parts.items():
            (terminals if name.isupper() else rules)[name] = each
        start = self.name_of(self.original.start)
        if start != START:
            rules[START] = Definition(Symbol(start, 0), 0)
        return Syntax(self.original.text, rules, terminals, ())

    # From the original's nodes to Lark's

    def _in_rule(self, node: Any, rule: str) -> Any:
        match node:
            case Text(value, at):
                return self._string(value, at)
            case Repeat() if (joined := self._joined(node)) is not None:
                return joined
            case Except():
                return self._exception_in_rule(node, rule)
            case Sequence(parts):
                return plain_sequence([self._in_rule(part, rule) for part in parts])
            case Choice(parts):
                return Choice(tuple(self._in_rule(part, rule) for part in parts))
            case Repeat(part, minimum, maximum):
                return Repeat(self._in_rule(part, rule), minimum, maximum)
        return self._leaf(node)

    def _in_terminal(self, node: Any) -> Any:
        match node:
            case Text(value, at):
                return Literal(quoted(value), at)
            case Repeat() if (joined := repeated_pattern(node)) is not None:
                return joined
            case Except(part, other, at):
                if (plain := without_empty(node, self._nullable)) is not None:
                    return self._in_terminal(plain)
                without = Literal('""', at) if other is None else self._in_terminal(other)
                return Both((self._in_terminal(part), Complement(without, at)), at)
            case Sequence(parts):
                return plain_sequence([self._in_terminal(part) for part in joined_patterns(parts)])
            case Choice(parts):
                return Choice(tuple(self._in_terminal(part) for part in parts))
            case Repeat(part, minimum, maximum):
                return Repeat(self._in_terminal(part), minimum, maximum)
            case Symbol(name, at):
                self._inside[name] = None
                return Symbol(self.names[name].upper(), at)
        return self._leaf(node)

    def _leaf(self, node: Any) -> Any:
        match node:
            case Characters():
                return character_literal(node)
            case Symbol(name, at):
                return Symbol(self.name_of(name), at)
        return node

    def _string(self, value: str, at: int) -> Any:
        written = quoted(value)
        if len(value) > 1:
            self._splittable.add(written)
            if written in self.single or self._is_all_single:
                return Sequence(tuple(Literal(quoted(char), at) for char in value))
        return Literal(written, at)

    def _joined(self, node: Repeat) -> Literal | None:
        """Returns repeated characters of a rule as one pattern, unless they are read one by one."""
        found = repeated_pattern(node)
        if found is not None:
            self._splittable.add(found.written)
            if found.written in self.single or self._is_all_single:
                return None
        return found

    def _exception_in_rule(self, node: Except, rule: str) -> Any:
        """Returns characters, or a symbol: ``&`` and ``~`` are allowed in terminals only."""
        if (plain := without_empty(node, self._nullable)) is not None:
            return self._in_rule(plain, rule)
        if (ranges := characters_of(node, self._sets)) is not None:
            return character_literal(Characters(ranges, node.at))
        name = self._new_part(rule)
        if self._is_by_states:
            return self._states_in_rules(node, rule, name)
        self.parts[name.upper()] = rule, Definition(self._in_terminal(node), node.at)
        return Symbol(name.upper(), node.at)

    def _new_part(self, rule: str) -> str:
        """Returns a name for a part of a rule, in small letters."""
        number = 1
        while (name := f"{self.names[rule]}_part_{number}") in self.names.values() or (
            self.parts.keys() & {name, name.upper()}
        ):
            number += 1
        return name

    def _states_in_rules(self, node: Except, rule: str, name: str) -> Symbol:
        """Makes a rule for each state of an exception, and returns the symbol of the first."""
        known: dict[str, Expression] = {}
        for each in self._in_order:
            known[each] = expression_of(self.original.rules[each].body, known)
        states = character_states(expression_of(node, known))
        if states is None:
            message = (
                "the longest match of this exception would lose texts, and it has more than "
                f"{MAX_EXCEPTION_STATES} states (MAX_EXCEPTION_STATES); write its texts without an exception"
            )
            raise error_at(self.original.text, node.at, message)
        names = {state: f"{name}_{state}" if state else name for state in states}
        for state, (is_end, ways) in states.items():
            alternatives: list[Any] = [
                Sequence((character_literal(Characters(ranges, node.at)), Symbol(names[target], node.at)))
                for target, ranges in ways.items()
            ]
            body = Choice((*alternatives, *([Literal('""', node.at)] if is_end else [])))
            self.parts[names[state]] = rule, Definition(body, node.at)
        return Symbol(name, node.at)

    # Lexing

    def settle(self) -> None:
        """Changes the plan until lexing loses no text. Raises GrammarError for an exception with too many states."""
        decided = 0
        while (conflicting := self._conflicting()) is not None:
            decided += self._decided
            if decided > DECIDED_TERMINALS:
                self._split_all()
                return
            self._split(conflicting)

    def _conflicting(self) -> Collection[str] | None:
        """Returns the terminals of a conflict by name; None if there is none, and all if deciding takes too long."""
        made = language(self.syntax(), START, Library(NamedGrammars()))
        names = [terminal.name.rpartition(" (")[0] for terminal in made.terminals]
        self._decided = len(names)
        try:
            conflict = core.lexing_conflict(Grammar(tuple(made.terminals), tuple(made.rules)), lossless=True)
        except LimitError:
            return None if self._is_all_single else names
        return None if conflict is None else [names[index] for index in conflict[2]]

    def _split(self, conflicting: Collection[str]) -> None:
        start = self.original.start
        if start in self._regular and start not in self.terminals and not self.single and not self.demoted:
            self.terminals.add(start)  # a grammar of one terminal loses nothing
            return
        if self.parts.keys() & set(conflicting):
            self._is_by_states = True
            return
        rules = {self.name_of(name): name for name in self.terminals}
        found = [rules[each] for each in conflicting if each in rules]
        texts = self._splittable.intersection(conflicting) - self.single
        if composed := [name for name in found if self._is_composed(name)]:
            found, texts = self._with_users(composed), set()  # their parts may still be terminals
        self.terminals.difference_update(found)
        self.single |= texts
        if not found and not texts:
            self._split_all()

    def _is_composed(self, rule: str) -> bool:
        """Returns whether a rule uses other rules."""
        return bool(self._used(rule))

    def _used(self, rule: str) -> set[str]:
        return {leaf.name for leaf in leaves(self.original.rules[rule].body) if isinstance(leaf, Symbol)}

    def _with_users(self, rules: list[str]) -> list[str]:
        """Returns terminals and those that use them, directly or through others."""
        found = set(rules)
        for name in self._in_order:
            if found & self._used(name):
                found.add(name)
        return list(found)

    def _split_all(self) -> None:
        """Leaves no terminals but those of single characters."""
        self.terminals.clear()
        self._is_all_single = self._is_by_states = True
