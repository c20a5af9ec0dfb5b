"""Digests of schemas and grammars: 32 bytes that identify a constraint in caches."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from constrain.language.tree import INNER_NODES

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar
    from constrain.language.source import Source
    from constrain.language.tree import Expression


def schema_digest(text: str, policies: object) -> bytes:
    """Returns the SHA-256 of a schema's text and its policies, which their ``repr`` determines."""
    return hashlib.sha256(f"schema {policies!r}\n{text}".encode("utf-8", "surrogatepass")).digest()


def source_digest(source: Source) -> bytes:
    """Returns the SHA-256 of a source, which its ``repr`` determines."""
    return hashlib.sha256(f"source {source!r}".encode("utf-8", "surrogatepass")).digest()


def grammar_digest(grammar: Grammar) -> bytes:
    """Returns the SHA-256 of a grammar; each shared part of its expressions is hashed once."""
    digests: dict[int, bytes] = {}
    digest = hashlib.sha256(b"grammar\n")
    for terminal in grammar.terminals:
        options = terminal.lazy, terminal.max_tokens, terminal.temperature
        about = f"{(terminal.name, terminal.pointer, terminal.role, terminal.label, terminal.kind, *options)!r}\n"
        digest.update(about.encode("utf-8", "surrogatepass"))
        digest.update(expression_digest(terminal.expression, digests))
    for rule in grammar.rules:
        digest.update(f"{rule!r}\n".encode("utf-8", "surrogatepass"))
    compared = f"{grammar.numbers_by_double!r} {grammar.strings_by_value!r}"
    digest.update(f"{grammar.ignored!r} {grammar.self_delimiting!r} {compared}".encode())
    if grammar.warnings:
        digest.update(f"{grammar.warnings!r}".encode("utf-8", "surrogatepass"))
    return digest.digest()


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
