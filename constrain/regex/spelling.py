"""Conversion between expressions of decoded text and of the content of JSON strings.

The canonical escape policy (``constrain.language.tree``) gives every character one spelling, and no spelling is the
beginning of another one. So spelling is a homomorphism with an inverse: it is done leaf by leaf, and Boolean operations
keep their meaning if complements stay inside spelled texts.
"""

from __future__ import annotations

import json
from dataclasses import replace
from json.encoder import encode_basestring
from typing import TYPE_CHECKING

from constrain.language.tree import (
    ANY_BYTE,
    ANY_CHAR,
    ANY_JSON_CHAR,
    Alternation,
    ByteClass,
    CharClass,
    Complement,
    Expression,
    Inner,
    Intersection,
    Literal,
    LiteralSet,
    LiteralTable,
    Multiple,
    Repetition,
    Substring,
    with_parts,
)
from constrain.regex.anchors import union

if TYPE_CHECKING:
    from collections.abc import Callable

_ASCII_END = 0x80
_NEEDS_ESCAPE = frozenset([*range(0x20), 0x22, 0x5C])

_ANY_SPELLED = Repetition(ANY_JSON_CHAR, 0, None)
_ANY_DECODED = Repetition(ANY_CHAR, 0, None)
_ANY_SPELLED_BYTE = Alternation((CharClass(((0, 0x7F),), json=True), ByteClass(((0x80, 0xFF),))))


def in_json(expression: Expression) -> Expression:
    """Returns the same texts, spelled as the content of JSON strings."""
    return _Translation(_spelled_leaf, _ANY_SPELLED).of(expression)


def in_json_text(text: bytes) -> bytes:
    """Returns a text, spelled as the content of a JSON string."""
    return b"".join(
        encode_basestring(chr(byte))[1:-1].encode() if byte in _NEEDS_ESCAPE else bytes([byte]) for byte in text
    )


def out_of_json(expression: Expression) -> Expression:
    """Returns the texts whose spellings ``expression`` matches; it matches contents of JSON strings only."""
    return _Translation(_decoded_leaf, _ANY_DECODED).of(expression)


class _Translation:
    """A translation of leaves; inner nodes keep their meaning, and shared nodes stay shared."""

    def __init__(self, leaf: Callable[[Expression], Expression], anything: Expression) -> None:
        self.leaf = leaf
        self.anything = anything
        self.done: dict[int, tuple[Expression, Expression]] = {}  # by identity, with the node to keep it alive

    def of(self, node: Expression) -> Expression:
        known = self.done.get(id(node))
        if known is None:
            made = with_parts(node, self.of) if isinstance(node, Inner | Multiple) else self.leaf(node)
            made = Intersection((self.anything, made)) if isinstance(made, Complement) else made
            known = self.done[id(node)] = node, made
        return known[1]


def _spelled_leaf(leaf: Expression) -> Expression:
    match leaf:
        case Literal(text):
            return Literal(in_json_text(text))
        case LiteralSet(texts) | LiteralTable(texts):
            return LiteralSet(tuple(map(in_json_text, texts)))
        case CharClass(ranges, _):
            return CharClass(ranges, json=True)
        case Substring():
            return replace(leaf, json=True)
    assert isinstance(leaf, ByteClass), leaf
    if leaf == ANY_BYTE:
        return _ANY_SPELLED_BYTE
    ascii_part = tuple((low, min(high, _ASCII_END - 1)) for low, high in leaf.ranges if low < _ASCII_END)
    other = tuple((max(low, _ASCII_END), high) for low, high in leaf.ranges if high >= _ASCII_END)
    parts: list[Expression] = [CharClass(ascii_part, json=True)] if ascii_part else []
    return union([*parts, ByteClass(other)] if other else parts)


def _decoded_leaf(leaf: Expression) -> Expression:
    match leaf:
        case Literal(text):
            return Literal(_read(text))
        case LiteralSet(texts) | LiteralTable(texts):
            return LiteralSet(tuple(map(_read, texts)))
        case CharClass(ranges, json=True):
            return CharClass(ranges)
        case Substring():
            return replace(leaf, json=False)
    return leaf  # bytes written unchanged, or any bytes


def _read(content: bytes) -> bytes:
    text: str = json.loads(b'"%b"' % content)
    return text.encode()
