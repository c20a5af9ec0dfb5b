"""Schemas with quotes: exactly the pieces of the sources are strings of them, and mistakes are named at their place."""

from __future__ import annotations

import json
import random
import re
from typing import Annotated, Any

import pydantic
import pytest

import constrain
from constrain import LimitError, Quote, SchemaError, UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.chat.tools.openai import tool_from_json
from constrain.generation.quoting import with_given
from constrain.given import Given, without_given
from constrain.language.result import result_type
from constrain.quotes.keyword import may_have_quotes
from constrain.quotes.places import Quotes
from constrain.quotes.texts import fold
from tests.support import byte_vocabulary, each_row, for_each

ALPHABET = ["a", "B", "_", " ", "\n", '"', "\\", "é", "É", "×", "😀"]


def compiled(schema: Any, **sources: Any) -> constrain.Constraint:
    return constrain.compile(schema, byte_vocabulary(), sources=sources)


def accepted(schema: Any, values: list[Any], **sources: Any) -> list[Any]:
    constraint = compiled(schema, **sources)
    return [value for value in values if constraint.accepts(json.dumps(value, ensure_ascii=False))]


def is_boundary(text: str, at: int) -> bool:
    return not (0 < at < len(text) and re.fullmatch(r"\w\w", text[at - 1 : at + 1]))


@for_each("seed", range(60))
def test_a_string_is_accepted_if_it_is_a_piece_of_a_source(seed: int) -> None:
    rng = random.Random(seed)
    texts = ["".join(rng.choices(ALPHABET, k=rng.randint(2, 9))) for _ in range(2)]
    options = {
        "whole_words": rng.random() < 0.5,
        "fold": rng.random() < 0.5,
        "min_length": rng.choice([0, 1, 2]),
        "max_length": rng.choice([2, 4, 20]),
    }
    searched = [fold(text).text for text in texts] if options["fold"] else texts
    expected = {
        text[begin:end]
        for text in searched
        for begin in range(len(text) + 1)
        for end in range(begin, len(text) + 1)
        if options["min_length"] <= end - begin <= options["max_length"]
        and (not options["whole_words"] or (is_boundary(text, begin) and is_boundary(text, end)))
        and (not options["whole_words"] or text[begin:end] == text[begin:end].strip())
    }
    schema = {"type": ["string", "null"], "x-quote": {"source": "it", **options}}
    others = {"".join(rng.choices(ALPHABET, k=rng.randint(0, 4))) for _ in range(200)}
    candidates = sorted(expected | others | {text[:end] for text in searched for end in range(len(text))})
    assert set(accepted(schema, candidates, it=texts)) == expected
    assert accepted(schema, [None], it=texts) == [None]


def test_quotes_in_types() -> None:
    class Facts(pydantic.BaseModel):
        who: Annotated[str, Quote(whole_words=True)] | None
        said: list[Annotated[str, Quote("letter", min_length=3, max_length=5)]]

    constraint = compiled(Facts, prompt='He said "no".', letter=["abc", "defgh\n"])
    assert constraint.accepts(r'{"who": "said \"no\"", "said": ["efgh\n", "abc"]}')
    assert constraint.accepts('{"who": null, "said": []}')
    assert not constraint.accepts('{"who": "sai", "said": []}')
    assert not constraint.accepts('{"who": null, "said": ["ab"]}')
    assert not constraint.accepts('{"who": null, "said": ["cdef"]}')


def test_the_class_in_place_of_an_instance_is_told_the_cure() -> None:
    with pytest.raises(TypeError, match=r"write Annotated\[str, constrain.Quote\(\)\]"):
        compiled(Annotated[str, Quote], prompt="a")


def test_other_keywords_narrow_quotes() -> None:
    values = ["a1", "1", "12", "2b", "a", "x", ""]
    text = "a12b"
    for beside, expected in (
        ({"pattern": "^[0-9]+$"}, ["1", "12"]),
        ({"enum": ["12", "x"]}, ["12"]),
        ({"minLength": 2}, ["a1", "12", "2b"]),
        ({"maxLength": 1}, ["1", "a"]),
        ({"not": {"pattern": "[0-9]"}}, ["a"]),
        ({"not": {"x-quote": "other"}}, ["a1", "12", "2b", "a"]),
    ):
        schema = {"type": "string", "x-quote": "it", **beside}
        assert accepted(schema, values, it=text, other="x1") == expected


def test_sources_may_stand_in_the_schema() -> None:
    schema = {"x-sources": {"it": "abc"}, "type": "string", "x-quote": "it"}
    assert accepted(schema, ["b", "d"]) == ["b"]
    assert accepted(json.dumps(schema), ["b", "d"], it="d") == ["b"]


def test_equal_schemas_with_other_sources_are_compiled_anew() -> None:
    schema = {"type": "string", "x-quote": "it"}
    assert compiled(schema, it="abc") is compiled(schema, it="abc")
    assert accepted(schema, ["a", "d"], it="abc") == ["a"]
    assert accepted(schema, ["a", "d"], it="def") == ["d"]


MISTAKES: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ({"type": "string", "x-quote": True}, {}, SchemaError, "at /x-quote: there is no source 'prompt'"),
    ({"properties": {"a": {"x-quote": "b"}}}, {"c": ""}, SchemaError, "at /properties/a/x-quote: .*; there are .c"),
    ({"type": "integer", "x-quote": "it"}, {"it": "a"}, SchemaError, "at /x-quote: x-quote is about strings"),
    ({"x-quote": 3}, {"it": "a"}, SchemaError, "must be true, the name of a source"),
    ({"x-quote": {"min": 3}}, {"it": "a"}, SchemaError, "has no option 'min'"),
    ({"x-quote": {"fold": 1}}, {"it": "a"}, SchemaError, "fold of x-quote must be of the type bool"),
    ({"x-quote": {"min_length": -1}}, {"it": "a"}, SchemaError, "min_length of x-quote is -1"),
    ({"x-quote": {"max_length": 0}}, {"it": "a"}, SchemaError, "max_length of x-quote is 0, which is less"),
    ({"type": "string", "x-quote": "it"}, {"it": ""}, UnsatisfiableSchemaError, "at /x-quote: no quote has 1 or more"),
    ({"type": "string", "x-quote": "it", "minLength": 4}, {"it": "abc"}, UnsatisfiableSchemaError, "text .* has 3"),
    ({"x-quote": {"source": "it", "fold": True}, "pattern": "a"}, {"it": "a"}, UnsupportedSchemaError, "at /pattern"),
    ({"x-quote": "it"}, {"it": 3}, TypeError, r"sources\['it'\] must be a text or a list of texts"),
    ({"x-quote": "it"}, {"it": "\ud800"}, ValueError, "lone surrogate"),
    ({"x-quote": "it"}, {"it": "a" * 1_000_001}, LimitError, "MAX_QUOTE_CHARACTERS = 1000000"),
]


@for_each("schema, sources, error, message", MISTAKES)
def test_mistakes_are_named(schema: Any, sources: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compiled(schema, **sources)


def test_all_spellings_of_quotes_are_refused() -> None:
    with pytest.raises(UnsupportedSchemaError, match='x-quote needs escapes="canonical"'):
        constrain.compile({"x-quote": "it"}, byte_vocabulary(), sources={"it": "a"}, escapes="any")


def test_an_annotation_checks_its_options() -> None:
    with pytest.raises(ValueError, match="max_length of x-quote is 1"):
        Quote(min_length=2, max_length=1)


def test_sources_are_for_json_schemas_only() -> None:
    with pytest.raises(ValueError, match="sources applies to JSON Schemas only"):
        constrain.compile(constrain.Regex("a"), byte_vocabulary(), sources={"it": "a"})


@pytest.mark.parametrize("schema", ['{"x-quote": true}', r'{"\u0078-quote": true}', r'{"x\u002Dquote": true}'])
def test_quotes_are_found_in_the_text_of_a_schema_however_it_spells_the_keyword(schema: str) -> None:
    assert may_have_quotes(schema)
    assert not may_have_quotes('{"const": "X-QUOTE \\u00e9 \\u0001"}')


def test_quotes_are_any_strings_where_their_source_is_not_known() -> None:
    own = {"x-sources": {"b": "text"}}
    schema = {
        **own,
        "x-quote": {"fold": True},
        "properties": {
            "x-quote": {"x-quote": "a"},
            "properties": {"x-quote": "b"},
            "const": {"x-quote": True},
            "it": {"const": {"x-quote": True}, "anyOf": [{"x-quote": True}, {"x-quote": 1}]},
        },
    }
    written = json.dumps(schema)
    assert without_given(schema) == {
        **own,
        "properties": {
            "x-quote": {},
            "properties": {"x-quote": "b"},
            "const": {},
            "it": {"const": {"x-quote": True}, "anyOf": [{}, {"x-quote": 1}]},
        },
    }
    assert json.dumps(schema) == written


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


@each_row(
    "schema, expected",
    ({"type": "string", "pattern": "^[\\u0020-\\u007e]*$"}, False),
    ({"type": "string", "x-quote": True}, True),
    ({"anyOf": [{"type": "null"}, {"type": "string", "x-quote": "it"}]}, True),
)
def test_only_schemas_with_quotes_are_searched(schema: dict[str, Any], expected: bool) -> None:
    text = json.dumps(schema).replace("x-", "\\u0078-")
    result = with_given(result_type(text), Given({"it": ("a",), "prompt": ("b",)}))
    assert (result.quotes is not None) == expected


def test_sources_of_a_tool_are_checked_when_it_is_made() -> None:
    parameters = {"properties": {"a": {"type": "string", "x-quote": "it"}}, "x-sources": {"it": 5}}
    with pytest.raises(constrain.SchemaError, match=r"the parameters of tool 'f': x-sources\['it'\] must be a text"):
        tool_from_json({"type": "function", "function": {"name": "f", "parameters": parameters}})
