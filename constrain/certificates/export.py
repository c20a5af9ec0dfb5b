"""A compiled ``Grammar`` as JSON: rules, terminals, and the nodes of their expressions, each shared node once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.engine.special import token_ids
from constrain.language.grammar import Role
from constrain.language.tree import (
    Alternation,
    ByteClass,
    CharClass,
    Complement,
    Concatenation,
    Intersection,
    Literal,
    LiteralSet,
    LiteralTable,
    Multiple,
    Repetition,
    Substring,
    Window,
    each_node,
    listed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.grammar import Grammar, Rule, Terminal
    from constrain.language.tree import Entry, Expression
    from constrain.vocabulary.vocabulary import Vocabulary

_KINDS: dict[type[Any], str] = {
    Concatenation: "all",
    Alternation: "any",
    Intersection: "both",
    Complement: "not",
    Repetition: "repeat",
    Window: "window",
}


MAX_EMBEDDED_VALUES = 10_000
"""Values of a table that a certificate has itself: 10,000; of a larger one it has the digest."""


def grammar_to_json(grammar: Grammar, vocabulary: Vocabulary | None = None) -> dict[str, Any]:
    """Returns a grammar as JSON. Only what bears on the language is in it, and names for people.

    ``vocabulary``: where the grammar's tokens are found by name; ``None`` for a grammar without tokens.
    """
    expressions = [terminal.expression for terminal in grammar.terminals]
    taken = _taken(expressions)
    entries, numbers = listed([*(each.origin for each in reversed(taken) if each.origin), *expressions])
    roots = numbers[len(taken) :]
    origins = dict(zip(map(id, reversed(taken)), numbers, strict=False))
    return {
        "rules": [_rule(rule) for rule in grammar.rules],
        "terminals": [_terminal(each, root, vocabulary) for each, root in zip(grammar.terminals, roots, strict=True)],
        "expressions": [_node(entry, origins) for entry in entries],
        "ignored": list(grammar.ignored),
        "numbers_by_double": grammar.numbers_by_double,
        "strings_by_value": grammar.strings_by_value,
    }


def written(data: bytes) -> str | dict[str, str]:
    """Returns bytes as text, or as ``{"hex": ...}`` if they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def _rule(rule: Rule) -> dict[str, Any]:
    edges = [
        [
            edge.source,
            edge.symbol,
            edge.target,
            [list(condition) for condition in edge.conditions],
            [[int(action), slot] for action, slot in edge.actions],
            edge.excluding,
            edge.distinct,
        ]
        for edge in rule.edges
    ]
    made: dict[str, Any] = {
        "name": rule.name,
        "edges": edges,
        "accepting": list(rule.accepting),
        "slots": list(rule.slots),
    }
    return made if rule.max_tokens is None else {**made, "max_tokens": rule.max_tokens}


def _terminal(terminal: Terminal, root: int, vocabulary: Vocabulary | None) -> dict[str, Any]:
    made: dict[str, Any] = {"name": terminal.name, "expression": root}
    if vocabulary is not None and (ids := token_ids(terminal, vocabulary)) is not None:
        made["tokens"] = [list(pair) for pair in ids]
    if terminal.pointer:
        made["pointer"] = terminal.pointer
    if terminal.role is not Role.SCALAR:
        made["role"] = int(terminal.role)
    if terminal.label:
        made["label"] = written(terminal.label)
    if terminal.lazy:
        made["lazy"] = True
    if terminal.max_tokens is not None:
        made["max_tokens"] = terminal.max_tokens
    return made


def _taken(expressions: list[Expression]) -> list[LiteralTable]:
    """Returns the large tables whose texts were taken from other tables, each before those that it was taken from."""
    found: dict[int, LiteralTable] = {}
    waiting = expressions
    while waiting:
        tables = [each for each in each_node(*waiting) if isinstance(each, LiteralTable) and each.origin is not None]
        new = [each for each in tables if len(each.texts) > MAX_EMBEDDED_VALUES]
        for each in new:
            found.pop(id(each), None)  # what another one was taken from comes after it
            found[id(each)] = each
        waiting = [each.origin for each in new if each.origin is not None]
    return [*found.values()]


def _node(entry: Entry, origins: Mapping[int, int]) -> list[Any]:
    if len(entry) == 1:
        return ["both", [origins[id(entry[0])]]] if id(entry[0]) in origins else _leaf(entry[0])
    kind, fields = entry
    return [_KINDS[kind], *(list(field) if isinstance(field, tuple) else field for field in fields)]


def _leaf(node: Expression) -> list[Any]:
    match node:
        case Literal(text):
            return ["literal", [written(text)]]
        case ByteClass(ranges):
            return ["class", [list(pair) for pair in ranges], "byte"]
        case CharClass(ranges, json):
            return ["class", [list(pair) for pair in ranges], "json" if json else "char"]
        case LiteralTable(texts, digest) if len(texts) > MAX_EMBEDDED_VALUES:
            return ["table", digest, len(texts)]
        case LiteralSet(texts) | LiteralTable(texts):
            return ["literal", [written(text) for text in texts]]
        case Multiple(divisor, scale):
            return ["multiple", divisor, scale]
        case Substring(texts, minimum, maximum, json, cuts):
            marks = ["".join("1" if byte else "0" for byte in cut) for cut in cuts]
            return ["substring", list(texts), minimum, maximum, "json" if json else "char", marks]
    raise AssertionError(node)
