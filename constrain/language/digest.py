"""Digests of schemas and grammars: 32 bytes that identify a constraint in caches."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, get_args

from constrain.language.tree import INNER_NODES, Expression

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar
    from constrain.language.source import Source

_EXPRESSIONS = get_args(Expression)


def schema_digest(text: str, policies: object) -> bytes:
    """Returns the SHA-256 of a schema's text and its policies, which their ``repr`` determines."""
    return hashlib.sha256(f"schema {policies!r}\n{text}".encode("utf-8", "surrogatepass")).digest()


def source_digest(source: Source) -> bytes:
    """Returns the SHA-256 of a source."""
    return hashlib.sha256(b"source\n" + spell_source(source)).digest()


def spell_source(source: Source) -> bytes:
    """Returns bytes that identify a source: its fields that count in comparisons."""
    return _spell_value(source, {})


def grammar_digest(grammar: Grammar) -> bytes:
    """Returns the SHA-256 of all fields of a grammar; each shared part of its expressions is hashed once."""
    return hashlib.sha256(b"grammar\n" + _spell_value(grammar, {})).digest()


def _spell_value(value: object, digests: dict[int, bytes]) -> bytes:
    """Returns bytes that identify a grammar, a source, or a value in one. No recursion: compositions are nested.

    ``repr`` omits parts of large expressions, and the ends of long fields of dataclasses.
    """
    written: list[bytes] = []
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, _EXPRESSIONS):
            written.append(expression_digest(value, digests))
        elif type(value) is tuple:
            written.append(b"%d parts\n" % len(value))
            stack.extend(reversed(value))
        elif is_dataclass(value):
            written.append(f"{type(value).__name__}\n".encode())
            stack.extend(getattr(value, each.name) for each in reversed(fields(value)) if each.compare)
        else:
            written.append(f"{value!r}\n".encode("utf-8", "surrogatepass"))
    return b"".join(written)


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
