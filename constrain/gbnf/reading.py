r"""Reading of a GBNF text into rules, with the place of each part.

XGrammar's EBNF is read, too, as far as its texts mean nothing else in GBNF: names with ``_``, and more escapes. Its
lookaheads, macros, names with a point, and ``\x`` with other than two digits are not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrain.arguments import lone_surrogate
from constrain.language.tree import (
    EMPTY_TEXT,
    MAX_CODE_POINT,
    Alternation,
    CharClass,
    Concatenation,
    Expression,
    Repetition,
)
from constrain.lark.reading.failures import Words, first_place, parse
from constrain.lark.reading.parser import load_parser
from constrain.lark.reading.places import error_at
from constrain.lark.reading.syntax import Special, Symbol
from constrain.regex.classes import complement, normalize
from constrain.work import MAX_COUNTER, MAX_NESTING

if TYPE_CHECKING:
    from lark import Lark, Tree

    from constrain.gbnf.dialects import Dialect

GRAMMAR = Path(__file__).with_name("gbnf.lark")

_CHARACTER = {
    dialect: re.compile(rf"\\(?:x({digits})|u(.{{4}})|U(.{{8}})|(.))|([^\\])", re.DOTALL)
    for dialect, digits in (("gbnf", ".."), ("xgrammar", "[0-9a-fA-F]+"))
}
_PIECE = re.compile(
    r'"(?:\\.|[^"\\])*(?:"|\\?\Z)|\[(?:\\.|[^\]\\])*(?:\]|\\?\Z)|#[^\n]*'
    r"|(?P<macro>(?:Token)?TagDispatch|(?:Exclude)?Token)(?=\s*\()|(?P<name>[a-zA-Z0-9_.-]+)",
    re.DOTALL,
)
_DOT = "\ue000"
"""Stands for a dot in a name of XGrammar's EBNF: elsewhere, a dot is any character."""
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]"}
_ESCAPED |= {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v", "0": "\0"} | {mark: mark for mark in "'?/"}
_ESCAPED_IN_CLASSES = _ESCAPED | {mark: mark for mark in "^$.*+(){}|-"}
_OPERATORS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_UNCLOSED = {
    '"': 'the string that begins here has no closing "',
    "[": "the class that begins here has no closing ]",
    "=": "unexpected '='; a lookahead of XGrammar, (= parts), is not supported: leave it out",
}
_EXPECTED = {
    "HEAD": "a rule with ::=",
    "__ANON_0": "::=",
    "RPAR": ")",
    "RBRACE": "}",
    "NUMBER": "a number",
    "LITERAL": "a string",
    "CHARACTERS": "a class",
    "NAME": "a name",
}
_OTHER_IDS = re.compile(r"!?<\[(?![0-9]+\]>)")
_WORDS = Words(_EXPECTED, _UNCLOSED)
_RULE = "rule "
"""Stands before names of rules as symbols: then none looks like the name of a terminal."""


@dataclass(frozen=True, slots=True)
class Characters(CharClass):
    """One character out of ``ranges`` of code points; ``at`` is 0 for a point."""

    at: int = 0


@cache
def parser() -> Lark:
    """Returns the parser for GBNF."""
    return load_parser(GRAMMAR)


def read(text: str, dialect: Dialect = "gbnf") -> dict[str, tuple[Expression, int]]:
    """Returns the rules of a GBNF text, each with the place of its name. Raises GrammarError with the place.

    Symbols in a body name rules.
    """
    if surrogate := lone_surrogate(text):
        at, half = surrogate
        raise error_at(text, at, f"{half} is no character")
    reader = _Reader(text, dialect)
    rules: dict[str, tuple[Expression, int]] = {}
    trees: list[Any] = reader.tree().children
    for head, body in (tree.children for tree in trees):
        if symbol_of(head) in rules:
            name = rule_of(symbol_of(head))
            raise error_at(text, head.start_pos, f"the rule {name} is defined more than once")
        rules[symbol_of(head)] = reader.node(body, 0), head.start_pos
    if symbol_of("root") not in rules:
        raise error_at(text, 0, "there is no rule root to begin with")
    for symbol in reader.symbols:
        if symbol.name not in rules:
            raise error_at(text, symbol.at, f"the rule {rule_of(symbol.name)} is not defined")
    return rules


def symbol_of(name: str) -> str:
    """Returns the name of a rule as a symbol has it."""
    return f"{_RULE}{name.replace(_DOT, '.')}"


def rule_of(symbol: str) -> str:
    """Returns the name of a rule, from its name as a symbol."""
    return symbol.removeprefix(_RULE)


class _Reader:
    """One text, and the symbols met in it."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self._dialect: Dialect = dialect
        self.symbols: list[Symbol] = []

    def tree(self) -> Tree[Any]:
        parsed = self.text if self._dialect == "gbnf" else _PIECE.sub(self._without_dots, self.text)
        tree: Tree[Any] = parse(parser(), parsed, text=self.text, words=_WORDS)
        return tree

    def _without_dots(self, piece: re.Match[str]) -> str:
        """Returns a piece of XGrammar's EBNF as the parser reads it. Raises GrammarError for a macro."""
        if piece["macro"]:
            message = f"{piece['macro']}, a macro of XGrammar, is not supported: write rules, or a structural tag"
            raise error_at(self.text, piece.start(), message)
        is_name = piece["name"] and piece["name"].strip(".")
        return piece[0].replace(".", _DOT) if is_name else piece[0]

    def node(self, tree: Any, depth: int) -> Expression:
        if depth > 4 * MAX_NESTING:  # each pair of parentheses takes at most so many nodes
            raise error_at(self.text, first_place(tree), f"this is nested more than {MAX_NESTING} deep (MAX_NESTING)")
        children = tree.children
        match tree.data:
            case "choice" | "sequence":
                parts = tuple(self.node(child, depth + 1) for child in children)
                if len(parts) == 1:
                    return parts[0]
                return Alternation(parts) if tree.data == "choice" else Concatenation(parts) if parts else EMPTY_TEXT
            case "repeat":
                return Repetition(self.node(children[0], depth + 1), *_OPERATORS[str(children[1])])
            case "bounds":
                return self._bounds(self.node(children[0], depth + 1), *children[1:])
            case "at_most":
                return Repetition(self.node(children[0], depth + 1), 0, self._count(children[2]))
            case "any":
                return Characters(((0, MAX_CODE_POINT),))
            case "literal":
                return self._literal(children[0])
            case "characters":
                return self._characters(children[0])
            case "token":
                return self._token(children[0])
        assert tree.data == "symbol", tree.data
        symbol = Symbol(symbol_of(str(children[0])), children[0].start_pos)
        self.symbols.append(symbol)
        return symbol

    def _bounds(self, part: Expression, minimum: Any, comma: Any, maximum: Any) -> Repetition:
        least = self._count(minimum)
        if comma is None or maximum is None:
            return Repetition(part, least, least if comma is None else None)
        if (most := self._count(maximum)) < least:
            raise error_at(self.text, maximum.start_pos, f"counts go up: {most} is less than {least}; exchange them")
        return Repetition(part, least, most)

    def _count(self, token: Any) -> int:
        if (count := int(token[:20])) > MAX_COUNTER:
            raise error_at(self.text, token.start_pos, f"a count is at most {MAX_COUNTER} (MAX_COUNTER)")
        return count

    def _token(self, token: Any) -> Special:
        if _OTHER_IDS.match(token):
            message = "GBNF names one token by its id, such as <[5]> or !<[5]>; use Lark for lists and ranges of ids"
            raise error_at(self.text, token.start_pos, message)
        return Special(str(token), token.start_pos)

    def _literal(self, token: Any) -> Expression:
        characters = [Characters(((code, code),), at=token.start_pos) for code, _ in self._codes(token, 1)]
        return characters[0] if len(characters) == 1 else Concatenation(tuple(characters)) if characters else EMPTY_TEXT

    def _characters(self, token: Any) -> Characters:
        is_negated = token[1] == "^"
        codes = self._codes(token, 2 if is_negated else 1)
        found: list[tuple[int, int]] = []
        at = 0
        while at < len(codes):
            low = high = codes[at][0]
            if at + 2 < len(codes) and codes[at + 1] == (ord("-"), False):
                high = codes[at + 2][0]
                at += 2
            if high < low:
                raise error_at(self.text, token.start_pos, "a range goes from one character to a later one")
            found.append((low, high))
            at += 1
        ranges = complement(normalize(found)) if is_negated else normalize(found)
        if not ranges:
            raise error_at(self.text, token.start_pos, "no character is in this class")
        return Characters(ranges, at=token.start_pos)

    def _codes(self, token: Any, start: int) -> list[tuple[int, bool]]:
        """Returns the code points between the delimiters of a string or class, and whether each is escaped."""
        found: list[tuple[int, bool]] = []
        escaped = _ESCAPED_IN_CLASSES if token[0] == "[" else _ESCAPED
        for each in _CHARACTER[self._dialect].finditer(token, start, len(token) - 1):
            digits = each[1] or each[2] or each[3]
            if each[5]:
                found.append((ord(each[5]), False))
            elif digits and re.fullmatch("[0-9a-fA-F]+", digits) and int(digits, 16) <= MAX_CODE_POINT:
                found.append((int(digits, 16), True))
            elif each[4] in escaped:
                found.append((ord(escaped[each[4]]), True))
            else:
                raise error_at(self.text, token.start_pos + each.start(), f"{each[0]} is no escape of GBNF")
        return found
