"""Many texts and values that must not come again: none of them is lost, and tables grow about as the text does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from constrain import kernel
from constrain.json_schema.compiler import compile_schema
from tests.support import byte_vocabulary, for_each

UNIQUE = {"type": "array", "uniqueItems": True}
STRINGS = {**UNIQUE, "items": {"type": "string"}}

KINDS: dict[str, tuple[dict[str, Any], Callable[[int], object]]] = {
    "strings": (STRINGS, lambda index: f"item {index * 7919 % 100_003}"),
    "integers": ({**UNIQUE, "items": {"type": "integer"}}, lambda index: index * 7919 % 100_003 - 50_000),
    "strings and numbers": (
        {**UNIQUE, "items": {"type": ["string", "number"]}},
        lambda index: index / 8 if index % 2 else str(index),
    ),
    "keys": ({"type": "object", "additionalProperties": {"const": 0}}, lambda index: f"key {index * 7919 % 100_003}"),
}


def compiled(schema: dict[str, Any]) -> kernel.CompiledGrammar:
    return kernel.CompiledGrammar(compile_schema(schema).grammar, byte_vocabulary()._core)


def written(schema: dict[str, Any], members: Sequence[object]) -> bytes:
    """A text with these members, which may be the same."""
    parts = map(json.dumps, members)
    if schema["type"] == "array":
        return f"[{', '.join(parts)}]".encode()
    return f"{{{', '.join(f'{key}: 0' for key in parts)}}}".encode()


@for_each("kind", KINDS)
@for_each("count", [31, 32, 33, 65])
def test_no_member_of_many_may_come_again_and_a_new_one_may(kind: str, count: int) -> None:
    schema, member = KINDS[kind]
    grammar = compiled(schema)
    members = [member(index) for index in range(count)]
    assert grammar.accepts(written(schema, [*members, member(count)]))
    assert [again for again in members if grammar.accepts(written(schema, [*members, again]))] == []


@for_each("kind", KINDS)
def test_members_are_the_same_in_any_order(kind: str) -> None:
    schema, member = KINDS[kind]
    grammar = compiled(schema)
    members = [member(index) for index in range(70)]
    assert grammar.accepts(written(schema, members))
    for order in (members[::-1], members[35:] + members[:35], members[::2] + members[1::2]):
        assert grammar.accepts(written(schema, [*order, member(70)]))
        assert [again for again in order if grammar.accepts(written(schema, [*order, again]))] == []


def table_bytes(schema: dict[str, Any], member: Callable[[int], object], count: int) -> int:
    grammar = compiled(schema)
    before = grammar.stats()["memory_bytes"]
    text = written(schema, [member(index) for index in range(count)])
    assert grammar.accepts(text)  # a matcher would make masks, too
    assert grammar.stats()["generation"] == 0, "the tables were begun anew"
    return grammar.stats()["memory_bytes"] - before


@for_each("kind", KINDS)
def test_tables_grow_about_as_the_text_does(kind: str) -> None:
    schema, member = KINDS[kind]
    assert table_bytes(schema, member, 800) < 2 * 8 * table_bytes(schema, member, 100)


@for_each("kind", ["strings", "keys"])
def test_memory_never_shrinks_while_a_text_is_read(kind: str) -> None:
    schema, member = KINDS[kind]
    grammar = compiled(schema)
    matcher = kernel.Matcher(grammar)
    text = written(schema, [member(index) for index in range(60)])
    bytes_after = [grammar.stats()["memory_bytes"] for byte in text if matcher.accept(byte)]
    assert bytes_after == sorted(bytes_after)
