"""Digests of schemas and grammars: 32 bytes that identify a constraint in caches."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, get_args

from constrain.language.grammar import Capture, Grammar, Rule, Terminal
from constrain.language.tree import INNER_NODES, Expression

if TYPE_CHECKING:
    from constrain.language.source import Source

_EXPRESSIONS = get_args(Expression)
_RECORDS = (Grammar, Terminal, Rule, Capture)


def schema_digest(text: str, policies: object) -> bytes:
    """Returns the SHA-256 of a schema's text and its policies, which their ``repr`` determines."""
    return hashlib.sha256(f"schema {policies!r}\n{text}".encode("utf-8", "surrogatepass")).digest()


def source_digest(source: Source) -> bytes:
    """Returns the SHA-256 of a source, which its ``repr`` determines."""
    return hashlib.sha256(f"source {source!r}".encode("utf-8", "surrogatepass")).digest()


def grammar_digest(grammar: Grammar) -> bytes:
    """Returns the SHA-256 of all fields of a grammar; each shared part of its expressions is hashed once."""
    return hashlib.sha256(b"grammar\n" + _spell_value(grammar, {})).digest()


def _spell_value(value: object, digests: dict[int, bytes]) -> bytes:
    """Returns bytes that identify a grammar or a value in it. ``repr`` omits parts of large expressions."""
    if isinstance(value, _RECORDS):
        return b"(" + b"".join(_spell_value(getattr(value, name), digests) for name in value.__slots__) + b")"
    if isinstance(value, _EXPRESSIONS):
        return expression_digest(value, digests)
    if isinstance(value, tuple) and value and isinstance(value[0], _RECORDS):
        return b"[" + b"".join(_spell_value(part, digests) for part in value) + b"]"
    return f"{value!r}\n".encode("utf-8", "surrogatepass")


def expression_digest(root: Expression, digests: dict[int, bytes]) -> bytes:
    """Returns the digest of an expression; ``digests``: known ones by identity. No recursion: expressions are deep."""
    stack = [(root, False)]
    while stack:
        node, parts_known = stack.pop()
        if id(node) in digests:
            continue
        if not isinstance(node, INNER_NODES):
            digests[id(node)] = hashlib.sha256(repr(node).encode()).digest()
            continue
        fields = [getattr(node, field) for field in node.__slots__]
        if not parts_known:
            stack.append((node, True))
            stack.extend((part, False) for field in fields for part in _parts(field))
            continue
        digest = hashlib.sha256(type(node).__name__.encode())
        for field in fields:
            if isinstance(field, int) or field is None:
                digest.update(f" {field}".encode())
            else:
                digest.update(b"(" + b"".join(digests[id(part)] for part in _parts(field)) + b")")
        digests[id(node)] = digest.digest()
    return digests[id(root)]


def _parts(field: object) -> tuple[Expression, ...]:
    """Returns the expressions in a field of an inner node."""
    if isinstance(field, int) or field is None:
        return ()
    return field if isinstance(field, tuple) else (field,)
