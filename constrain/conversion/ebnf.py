"""EBNF texts of ISO/IEC 14977 as grammars to convert.

The first rule is the start. Strings have no escapes in this syntax. Beyond the standard, strings may be empty, and
names may have underscores and letters of any script.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrain.arguments import lone_surrogate
from constrain.conversion.parts import Comment, Except, Original, OriginalRule, Text
from constrain.lark.reading.failures import Words, first_place, parse
from constrain.lark.reading.parser import load_parser
from constrain.lark.reading.places import error_at
from constrain.lark.reading.syntax import Choice, Repeat, Sequence, Symbol

if TYPE_CHECKING:
    from lark import Lark

MAX_EBNF_NESTING = 50
"""Levels of parentheses, brackets and braces inside one another in an EBNF grammar. Beyond: GrammarError."""

MAX_EBNF_COUNT = 2**31 - 1
"""A count in front of ``*`` in an EBNF grammar; the limit is that of Lark's counts. Beyond: GrammarError."""

GRAMMAR = Path(__file__).with_name("ebnf.lark")

_OUTSIDE = re.compile(
    r"'[^'\n]*' | \"[^\"\n]*\" | \?[^?]*\? | (?P<comment>\(\*) | \(/ | /\) | (?P<bar>[|/!])", re.VERBOSE
)
_COMMENT_MARK = re.compile(r"\(\*|\*\)")
_WORDS = Words(
    {
        "NAME": "a name",
        "EQUAL": "=",
        "COMMA": "a comma",
        "STAR": "*",
        "STRING": "a string",
        "NUMBER": "a number",
        "_END": "a semicolon",
        "_BAR": "|",
        "_RPAR": ")",
        "_RSQB": "]",
        "_RBRACE": "}",
    },
    {
        "'": "the string that begins here has no closing ' on its line",
        '"': 'the string that begins here has no closing " on its line',
        "?": "the special sequence that begins here has no closing ?; for an optional part write [ part ]",
        "+": "unexpected '+'; for one part or more write part, { part }",
        ":": "unexpected ':'; a rule of ISO 14977 is written name = parts ;",
        "<": "unexpected '<'; a name of ISO 14977 stands without < and >",
        "#": "unexpected '#'; a comment of ISO 14977 is written (* comment *)",
    },
    remedies={"*": "for any number of parts write { part }", "=": "each rule ends with a semicolon"},
)


@cache
def parser() -> Lark:
    """Returns the parser for EBNF."""
    from constrain.conversion import tables

    return load_parser(GRAMMAR, tables)


def read_ebnf(text: str) -> Original:
    """Returns the grammar of an EBNF text. Raises GrammarError with line, column and an excerpt."""
    if surrogate := lone_surrogate(text):
        at, half = surrogate
        raise error_at(text, at, f"{half} is no character")
    plain, comments, bars = _without_comments(text)
    trees: list[Any] = parse(parser(), plain, text=text, words=_WORDS).children
    reader = _Reader(text)
    rules: dict[str, OriginalRule] = {}
    for head, body in (tree.children for tree in trees):
        name = _name(head)
        if name in rules:
            message = f"the rule {name} is defined more than once; write one rule with all alternatives"
            raise error_at(text, head.start_pos, message)
        rules[name] = OriginalRule(reader.part(body, 0), head.start_pos)
    reader.check_defined(rules)
    return Original("EBNF of ISO 14977", text, rules, next(iter(rules)), tuple(comments), tuple(bars))


def _without_comments(text: str) -> tuple[str, list[Comment], list[int]]:
    """Returns the text with blanks in place of comments, the comments, and the places of marks between alternatives."""
    parts: list[str] = []
    comments: list[Comment] = []
    bars: list[int] = []
    done = 0
    while found := _OUTSIDE.search(text, done):
        start, end = found.span()
        parts.append(text[done:start])
        if found["comment"]:
            end = _comment_end(text, start)
            comments.append(Comment(_lines(text[start + 2 : end - 2]), start))
            parts.append(re.sub(r"[^\n]", " ", text[start:end]))
        else:
            parts.append(found[0])
            bars += [start] if found["bar"] else []
        done = end
    return "".join(parts) + text[done:], comments, bars


def _comment_end(text: str, start: int) -> int:
    depth, at = 1, start + 2
    while depth:
        mark = _COMMENT_MARK.search(text, at)
        if mark is None:
            raise error_at(text, start, "the comment that begins here has no closing *)")
        depth += 1 if mark[0] == "(*" else -1
        at = mark.end()
    return at


def _lines(comment: str) -> tuple[str, ...]:
    return tuple(line.strip().removeprefix("* ") for line in comment.strip().split("\n"))


def _name(token: Any) -> str:
    return " ".join(str(token).split())


class _Reader:
    """One text, and the names met in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._symbols: list[Symbol] = []

    def part(self, tree: Any, depth: int) -> Any:
        if depth > 4 * MAX_EBNF_NESTING:  # each pair of brackets takes at most so many nodes
            message = f"this is nested more than {MAX_EBNF_NESTING} deep (MAX_EBNF_NESTING); give a part a name"
            raise error_at(self.text, first_place(tree), message)
        children = tree.children
        match tree.data:
            case "choice" | "sequence":
                parts = tuple(self.part(child, depth + 1) for child in children)
                if len(parts) == 1:
                    return parts[0]
                return Choice(parts) if tree.data == "choice" else Sequence(parts) if parts else Text("", 0)
            case "option":
                return Repeat(self.part(children[0], depth + 1), 0, 1)
            case "repeat":
                return Repeat(self.part(children[0], depth + 1), 0, None)
            case "counted":
                count = self._count(children[0])
                return Repeat(self.part(children[1], depth + 1), count, count)
            case "except":
                other = self.part(children[2], depth + 1) if len(children) > 2 else None
                return Except(self.part(children[0], depth + 1), other, children[1].start_pos)
            case "string":
                return Text(str(children[0])[1:-1], children[0].start_pos)
            case "special":
                self._refuse_special(children[0])
        assert tree.data == "name", tree.data
        symbol = Symbol(_name(children[0]), children[0].start_pos)
        self._symbols.append(symbol)
        return symbol

    def _count(self, token: Any) -> int:
        if (count := int(token[:20])) > MAX_EBNF_COUNT:
            raise error_at(self.text, token.start_pos, f"a count is at most {MAX_EBNF_COUNT} (MAX_EBNF_COUNT)")
        return count

    def _refuse_special(self, token: Any) -> None:
        inside = " ".join(token[1:-1].split())
        message = (
            f"the special sequence ? {inside} ? is for people to read, so it cannot be converted; "
            "write its texts as strings, or convert with a string in its place and put a pattern there in the result"
        )
        raise error_at(self.text, token.start_pos, message)

    def check_defined(self, rules: dict[str, OriginalRule]) -> None:
        """Raises GrammarError for a name without a rule."""
        for symbol in self._symbols:
            if symbol.name in rules:
                continue
            advice = ""
            if " " in symbol.name:
                advice = f"; if these are several parts, put commas between them: {', '.join(symbol.name.split())}"
            raise error_at(self.text, symbol.at, f"the rule {symbol.name} is not defined{advice}")
