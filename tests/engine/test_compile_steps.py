"""A constraint in steps: found where it is known, and otherwise made here, or unpacked from another process."""

from __future__ import annotations

from typing import Any

import pytest

import constrain
from constrain.engine.compiling import ToCompile, to_compile
from constrain.engine.remembered import remembered_constraints
from tests.support import byte_vocabulary

VOCABULARY = byte_vocabulary()


def wanted(schema: object, **options: Any) -> ToCompile:
    return to_compile(schema, VOCABULARY, close_objects=True, cache=False, **options)


@pytest.mark.parametrize("schema", [{"enum": ["unpacked", 1]}, constrain.Regex("unpacked|1")], ids=["schema", "regex"])
def test_what_is_unpacked_is_remembered(schema: object) -> None:
    assert wanted(schema).find() is None
    packed = constrain.compile(schema, byte_vocabulary(), cache=False)._packed()
    made = wanted(schema).unpack(packed)
    assert wanted(schema).find() is made
    assert made.accepts("1")
    assert not made.accepts("2")


def test_what_is_compiled_is_remembered() -> None:
    schema = {"const": "compiled"}
    assert wanted(schema).compile() is wanted(schema).find()


def test_a_constraint_is_counted_once() -> None:
    schema = {"const": "counted"}
    before = remembered_constraints.counts.known, remembered_constraints.counts.new
    one = wanted(schema)
    assert one.find() is None
    one.compile()
    assert (remembered_constraints.counts.known, remembered_constraints.counts.new) == (before[0], before[1] + 1)


def test_what_is_compiled_alike_has_one_identity() -> None:
    identities = {
        wanted({"const": 1}).identity(),
        wanted('{"const": 1}').identity(),
        wanted({"const": 1}, whitespace="any").identity(),
        wanted({"const": 2}).identity(),
        to_compile({"const": 1}, VOCABULARY, close_objects=False, cache=False).identity(),
        wanted(constrain.Regex("1")).identity(),
    }
    assert len(identities) == 5
