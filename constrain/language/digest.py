"""Digests of schemas and grammars: 32 bytes that identify a constraint in caches."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from constrain.language.tree import Expression, Inner, parts_first

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar
    from constrain.language.source import Source


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
        if isinstance(value, Expression):
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
    for node in parts_first(root, digests):
        if not isinstance(node, Inner):
            digests[id(node)] = hashlib.sha256(repr(node).encode()).digest()
            continue
        digest = hashlib.sha256(type(node).__name__.encode())
        for field in (getattr(node, name) for name in node.__match_args__):
            if isinstance(field, int) or field is None:
                digest.update(f" {field}".encode())
            else:
                parts = field if isinstance(field, tuple) else (field,)
                digest.update(b"(" + b"".join(digests[id(part)] for part in parts) + b")")
        digests[id(node)] = digest.digest()
    return digests[id(root)]
