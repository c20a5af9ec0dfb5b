"""Expressions as the oracles read them: nodes of one derivative matcher (see ``regex.derivative_matcher``)."""

from __future__ import annotations

from collections.abc import Iterable

from constrain.language import tree
from tests.support.regex.derivative_matcher import _EMPTY, _NOTHING, Node, _Store

NOTHING, EMPTY = _NOTHING, _EMPTY

_STORE = _Store()


def from_tree(expression: tree.Expression) -> Node:
    return _STORE.translate(expression)


def literal(text: bytes) -> Node:
    return _STORE.literal(text)


def concatenation(first: Node, rest: Node) -> Node:
    return _STORE.concatenation((first, rest))


def alternation(parts: Iterable[Node]) -> Node:
    return _STORE.alternation(list(parts))


def intersection(parts: Iterable[Node]) -> Node:
    return _STORE.intersection(list(parts))


def complement(part: Node) -> Node:
    return _STORE.complement(part)


def repetition(part: Node, minimum: int, maximum: int | None) -> Node:
    return _STORE.repetition(part, minimum, maximum)


def nullable(node: Node) -> bool:
    return _STORE.nullable[node]


def derivative(node: Node, byte: int) -> Node:
    """What may follow ``byte`` in the texts of ``node`` that begin with it."""
    return _STORE.derivative(node, byte)


def bytes_of(node: Node) -> frozenset[int]:
    """Bytes that an expression tells from others, and one that stands for all those it does not."""
    return _STORE.bytes_of(node)


def shortest(node: Node) -> int | None:
    """The length of a shortest text; None if there is none."""
    return _STORE.shortest(node)


def is_empty(node: Node) -> bool:
    return _STORE.shortest(node) is None


def is_finite(node: Node) -> bool:
    """Whether there are finitely many texts."""
    return _STORE.is_finite(node)


def matches(node: Node, text: bytes) -> bool:
    for byte in text:
        node = derivative(node, byte)
    return nullable(node)
