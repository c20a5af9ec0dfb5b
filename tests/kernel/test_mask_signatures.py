"""Masks that are taken over from the same place in another context are those that would be computed there."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from constrain import kernel
from constrain.json_schema.compiler import compile_schema
from tests.support import Tokens, real_vocabulary

POINT: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "label": {"type": "string", "maxLength": 9}},
    "required": ["x"],
}


def schema(point: dict[str, Any]) -> dict[str, Any]:
    """One object in contexts that differ in what may follow it."""
    return {
        "$defs": {"point": point},
        "type": "object",
        "properties": {
            "first": {"$ref": "#/$defs/point"},
            "second": {"$ref": "#/$defs/point"},
            "list": {"type": "array", "items": {"$ref": "#/$defs/point"}},
            "pair": {"type": "array", "prefixItems": [{"$ref": "#/$defs/point"}] * 2, "items": False, "minItems": 2},
            "nested": {
                "type": "object",
                "properties": {"only": {"$ref": "#/$defs/point"}},
                "required": ["only"],
                "additionalProperties": False,
            },
            "last": {"$ref": "#/$defs/point"},
        },
        "required": ["second"],
        "additionalProperties": False,
    }


DOCUMENTS: list[Any] = [
    {"first": {"x": 12, "label": "a b"}, "second": {"x": -1}},
    {"second": {"x": 12, "label": "a b"}, "list": [{"x": 12, "label": "a b"}, {"x": 0}, {"x": 12, "label": "c"}]},
    {"second": {"x": 12}, "pair": [{"x": 12, "label": "a b"}, {"x": 12, "label": "a b"}]},
    {"second": {"x": 12, "label": ""}, "nested": {"only": {"x": 12, "label": "a b"}}},
    {"second": {"x": 1}, "last": {"x": 12, "label": "a b"}},
    {"second": {"x": 1}, "nested": {"only": {"x": 345}}, "last": {"x": 12}},
]
FREE_KEYS: list[Any] = [
    {"second": {"x": 1, "more": True, "most": [1, {"x": "y"}], "m": None}},
    {"second": {"x": 1}, "list": [{"x": 1, "other": True}, {"x": 1, "most": [1, {"x": "y"}], "more": True}]},
]


@pytest.mark.slow(only=("usual",))
@pytest.mark.parametrize(
    "whitespace", [{}, {"indent": 2}, {"separators": (",", ":")}], ids=["usual", "indented", "compact"]
)
@pytest.mark.parametrize(
    ("point", "documents"),
    [
        ({**POINT, "additionalProperties": False}, DOCUMENTS),
        (POINT, DOCUMENTS + FREE_KEYS),
        ({**POINT, "maxProperties": 3}, DOCUMENTS),
    ],
    ids=["closed", "free keys", "counted"],
)
def test_masks_are_those_of_a_grammar_that_has_met_nothing(
    whitespace: dict[str, Any], point: dict[str, Any], documents: list[Any]
) -> None:
    vocab = real_vocabulary("gpt-2")
    split = Tokens(vocab).split
    grammar = compile_schema(schema(point)).grammar
    shared = kernel.CompiledGrammar(grammar, vocab._core)
    rows = np.zeros((2, shared.n_words), np.uint32)
    for document in documents:
        text = json.dumps(document, **whitespace).encode()
        one, other = kernel.Matcher(shared), kernel.Matcher(kernel.CompiledGrammar(grammar, vocab._core))
        read = b""
        for token in split(text):
            one.fill_bitmask(rows[0])
            other.fill_bitmask(rows[1])
            assert (rows[0] == rows[1]).all(), read
            assert [one.accept(token), other.accept(token)] == [True, True], read
            read += vocab.token_bytes(token)
        assert one.is_accepting, text
    assert shared.stats()["shared_masks"] > 20
