"""Places of quotes: in the value, and in the source as it was given."""

from __future__ import annotations

import json
from typing import Any

import pytest

import constrain
from constrain.chat.tools.openai import tool_from_json
from constrain.generation.quoting import with_quotes
from constrain.language.result import result_type
from constrain.quotes.places import Quotes
from constrain.quotes.texts import fold

SOURCES = {"it": ['He said\n\n  "NO" twice: NO.', "Another é text"], "other": ["no twice"]}


def quotes_of(schema: dict[str, Any]) -> Quotes:
    return Quotes({"x-given-sources": SOURCES, **schema})


def found_in(schema: dict[str, Any], value: Any) -> list[tuple[Any, ...]]:
    places = quotes_of(schema).places(json.dumps(value, indent=1))
    for place in places:
        part = value
        for step in place.path:
            part = part[step]
        assert SOURCES[place.source][place.text][place.start : place.end] == part
    return [(place.path, place.source, place.text, place.start) for place in places]


def test_the_first_occurrence_is_reported() -> None:
    assert found_in({"x-quote": "it"}, "NO") == [((), "it", 0, 12)]
    assert found_in({"x-quote": {"source": "it", "min_length": 0}}, "") == [((), "it", 0, 0)]
    assert found_in({"x-quote": "it"}, "é text") == [((), "it", 1, 8)]


def test_an_occurrence_of_whole_words_is_reported() -> None:
    schema = {"x-sources": {"it": "cats cat"}, "x-quote": {"source": "it", "whole_words": True}}
    (place,) = Quotes(schema).places('"cat"')
    assert (place.start, place.end) == (5, 8)


def test_quotes_are_found_below_all_keywords() -> None:
    schema = {
        "$defs": {
            "q/": {"type": "string", "x-quote": "it"},
            "node": {"properties": {"next": {"$ref": "#/$defs/node"}}},
        },
        "allOf": [{"properties": {"a": {"items": {"$ref": "#/$defs/q~1"}}}}],
        "properties": {"b": {"prefixItems": [True, {"anyOf": [{"$ref": "#/%24defs/q~1"}, {"type": "null"}]}]}},
        "patternProperties": {"^\\p{Ll}q": {"x-quote": "other"}},
        "additionalProperties": {"if": {"type": "string"}, "then": {"x-quote": "it"}},
    }
    value = {"a": ["NO", "He"], "b": ["NO", "text"], "pq": "no", "z": "é", "y": {"x": "NO"}}
    assert [(path, source) for path, source, *_ in found_in(schema, value)] == [
        (("a", 0), "it"), (("a", 1), "it"), (("b", 1), "it"), (("pq",), "other"), (("z",), "it"),
    ]  # fmt: skip


def test_a_union_has_the_source_of_its_branch() -> None:
    def branch(kind: str, source: str) -> dict[str, Any]:
        return {"properties": {"kind": {"const": kind}, "text": {"x-quote": source}}, "required": ["kind", "text"]}

    schema = {"oneOf": [branch("a", "it"), branch("b", "other")]}
    assert found_in(schema, {"kind": "b", "text": "twice"}) == [(("text",), "other", 0, 3)]
    assert found_in(schema, {"kind": "a", "text": "twice"}) == [(("text",), "it", 0, 16)]
    assert found_in({"anyOf": [{"x-quote": "other"}, {"x-quote": "it"}]}, "NO") == [((), "it", 0, 12)]


def test_folded_quotes_get_the_spelling_of_their_source() -> None:
    schema = {"properties": {"q": {"x-quote": {"source": "it", "fold": True}}, "other": {"type": "string"}}}
    text = '{ "other": "said no", "q":"said \\"no\\" t" , "n": 1.50}'
    quotes = quotes_of(schema)
    restored = quotes.restored(text)
    assert restored == '{ "other": "said no", "q":"said\\n\\n  \\"NO\\" t" , "n": 1.50}'
    (place,) = quotes.places(restored)
    assert (place.path, place.start, place.end) == (("q",), 3, 17)
    assert quotes.places(text) == (place,)


def test_folding_keeps_positions() -> None:
    folded = fold(" A\t\nß ẞİ\u00a0")
    assert folded.text == " a ß ẞİ "
    assert folded.positions == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_answers_that_python_reads_with_limits() -> None:
    quotes = quotes_of({"properties": {"a": {"x-quote": "it"}}})
    (place,) = quotes.places(f'{{"n": {"9" * 5_000}, "a": "NO"}}')
    assert place.path == ("a",)
    with pytest.raises(constrain.OutputValidationError, match="nested more than"):
        quotes.places(f'{{"n": {"[" * 1_000}{"]" * 1_000}, "a": "NO"}}')


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "pattern": "^[\\u0020-\\u007e]*$"}, False),
        ({"type": "string", "x-quote": True}, True),
        ({"anyOf": [{"type": "null"}, {"type": "string", "x-quote": "it"}]}, True),
    ],
)
def test_only_schemas_with_quotes_are_searched(schema: dict[str, Any], expected: bool) -> None:
    text = json.dumps(schema).replace("x-", "\\u0078-")
    result = with_quotes(result_type(text), text, {"it": ("a",), "prompt": ("b",)})
    assert (result.quotes is not None) == expected


def test_sources_of_a_tool_are_checked_when_it_is_made() -> None:
    parameters = {"properties": {"a": {"type": "string", "x-quote": "it"}}, "x-sources": {"it": 5}}
    with pytest.raises(constrain.SchemaError, match=r"the parameters of tool 'f': x-sources\['it'\] must be a text"):
        tool_from_json({"type": "function", "function": {"name": "f", "parameters": parameters}})
