"""Expressions as the oracles read them: nodes of one derivative matcher (see ``regex.derivative_matcher``)."""

from __future__ import annotations

from tests.support.regex.derivative_matcher import _EMPTY, _NOTHING, Node, _Store

NOTHING, EMPTY = _NOTHING, _EMPTY

_STORE = _Store()

from_tree, literal, complement, repetition = _STORE.translate, _STORE.literal, _STORE.complement, _STORE.repetition
alternation, intersection = _STORE.alternation, _STORE.intersection
derivative, bytes_of, shortest, is_finite = _STORE.derivative, _STORE.bytes_of, _STORE.shortest, _STORE.is_finite
nullable = _STORE.nullable.__getitem__


def concatenation(first: Node, rest: Node) -> Node:
    return _STORE.concatenation((first, rest))


def is_empty(node: Node) -> bool:
    return shortest(node) is None


def matches(node: Node, text: bytes) -> bool:
    for byte in text:
        node = derivative(node, byte)
    return nullable(node)
