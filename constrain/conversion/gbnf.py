"""GBNF texts as grammars to convert: rules as ``constrain.gbnf`` reads them, strings as they stand, and comments."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

from constrain.conversion.parts import Characters, Comment, Original, OriginalRule, Text
from constrain.gbnf.reading import read, rule_of
from constrain.lark.reading.places import error_at
from constrain.lark.reading.syntax import Choice, Repeat, Sequence, Special, Symbol

_MARKS = re.compile(
    r"""
    "(?:\\.|[^"\\])*"? | \[(?:\\.|[^\]\\])*\]? | !?<[^<>\s]+>  # strings, classes and special tokens
    | \#(?P<comment>[^\n]*) | (?P<bar>\|)
    """,
    re.VERBOSE | re.DOTALL,
)


def read_gbnf(text: str) -> Original:
    """Returns the grammar of a GBNF text. Raises GrammarError with line, column and an excerpt."""
    rules = {rule_of(name): OriginalRule(_part(text, body), at) for name, (body, at) in read(text).items()}
    marks = list(_MARKS.finditer(text))
    comments = [Comment((each["comment"].strip(),), each.start()) for each in marks if each["comment"] is not None]
    return Original("GBNF", text, rules, "root", tuple(comments), tuple(each.start() for each in marks if each["bar"]))


def _part(text: str, node: Any) -> Any:
    """Returns a node with its strings; as GBNF is read, a string is a sequence of characters of one place."""
    match node:
        case Sequence(parts):
            found = [each for _, group in groupby(parts, _string_of(text)) for each in _joined(text, list(group))]
            return found[0] if len(found) == 1 else Sequence(tuple(found)) if found else Text("", 0)
        case Choice(parts):
            return Choice(tuple(_part(text, part) for part in parts))
        case Repeat(part, minimum, maximum):
            return Repeat(_part(text, part), minimum, maximum)
        case Symbol(name, at):
            return Symbol(rule_of(name), at)
        case Special(name, at) if name.startswith("!"):
            return Special(_all_but(text, name, at), at)
        case Characters():
            return _joined(text, [node])[0] if _is_string(text, node) else node
    return node


def _all_but(text: str, token: str, at: int) -> str:
    """Returns all tokens but one as Lark writes them. Raises GrammarError for a token by its name."""
    if not token.startswith("!<["):
        message = f"Lark cannot say {token}, all tokens but one, by name; write the id of the token, such as !<[5]>"
        raise error_at(text, at, message)
    return f"<[^{token.removeprefix('!<[')}"


def _string_of(text: str) -> Any:
    """Returns a function that gives the characters of one string the same key, and each other part one of its own."""
    return lambda part: part.at if _is_string(text, part) else ~id(part)


def _is_string(text: str, node: Any) -> bool:
    return isinstance(node, Characters) and text[node.at : node.at + 1] == '"'


def _joined(text: str, group: list[Any]) -> list[Any]:
    if not _is_string(text, group[0]):
        return [_part(text, part) for part in group]
    return [Text("".join(chr(part.ranges[0][0]) for part in group), group[0].at)]
