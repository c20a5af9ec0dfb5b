"""Styles of arguments: values of all types are written as each model family writes them, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

import constrain
from constrain.parts import StructuralTag
from tests.structural.cases import json as json_format
from tests.structural.cases import tag
from tests.structural.styles import MARK, NESTED, TYPED, WRITERS, written
from tests.support import byte_vocabulary, for_each

ALL = tuple(WRITERS)
UNDECLARED = tuple(style for style in ALL if style != "minimax_m3_xml")

END = {
    "qwen_xml": "</parameter>",
    "minimax_xml": "</parameter>",
    "glm_xml": "</arg_value>",
    "deepseek_xml": "</｜DSML｜parameter>",
    "deepseek_v4_1_xml": "</｜DSML｜ parameter>",
    "kimi_k3_xml": "<|close|>argument<|sep|>",
    "cohere_xml": "</cofl:value>",
    "minimax_m3_xml": f"{MARK}</a>",
}
"""The mark behind the value of an argument ``a``."""

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def closed(**properties: object) -> dict[str, Any]:
    """An object whose members are all required, except those with a name that ends in ``_``."""
    required = [name for name in properties if not name.endswith("_")]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


CITY = closed(city=STRING, days_=INTEGER)
POINT = closed(x=INTEGER, note_=STRING)
TREE = {"$defs": {"tree": closed(name=STRING, children_={"type": "array", "items": {"$ref": "#/$defs/tree"}})}}


def compiled(schema: object, style: str, **options: object) -> constrain.Constraint:
    document = {"format": json_format(schema, style=style, **options)}
    return constrain.compile(StructuralTag(document), byte_vocabulary(), cache=False)


VALUES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = {
    "strings and numbers": (
        CITY,
        [{"city": "Bonn"}, {"city": 'a "b" <c> & \\n\n', "days_": 3}, {"city": "", "days_": -1}, {"city": "7"}],
        [{}, {"days_": 3}, {"days_": 3, "city": "Bonn"}, {"city": "Bonn", "days_": 1.5}, {"city": "Bonn", "town": "a"}],
    ),
    "constants": (
        closed(a={"enum": ["x y", 2, None, True]}, b_={"const": "</p>"}),
        [{"a": "x y"}, {"a": 2}, {"a": None}, {"a": True, "b_": "</p>"}],
        [{"a": "x"}, {"a": 3}, {"a": False}, {"a": 2, "b_": "<p>"}],
    ),
    "an object": (
        closed(point=POINT),
        [{"point": {"x": 1}}, {"point": {"x": 1, "note_": "a, b"}}],
        [{"point": {}}, {"point": {"note_": "a", "x": 1}}, {"point": {"x": "a"}}, {"point": {"x": 1, "y": 2}}],
    ),
    "an empty object": (closed(empty=closed(), more_=closed(a_=INTEGER)), [{"empty": {}}], [{}, {"empty": {"a": 1}}]),
    "an array": (
        closed(items={"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 3}),
        [{"items": [1]}, {"items": [1, 2, 3]}],
        [{"items": []}, {"items": [1, 2, 3, 4]}, {"items": ["a"]}],
    ),
    "an array of strings": (
        closed(items={"type": "array", "items": STRING}),
        [{"items": []}, {"items": ["a b"]}, {"items": ["", "c"]}],
        [{"items": [1, None, {"a": 1}]}],
    ),
    "a tuple": (
        closed(pair={"type": "array", "prefixItems": [STRING, INTEGER], "items": False, "minItems": 2}),
        [{"pair": ["a", 1]}],
        [{"pair": ["a"]}, {"pair": ["a", 1, 2]}],
    ),
    "objects in arrays in objects": (
        closed(a=closed(list={"type": "array", "items": POINT})),
        [{"a": {"list": []}}, {"a": {"list": [{"x": 1}, {"x": 2, "note_": "b"}]}}],
        [{"a": {"list": [{"x": 1}, {}]}}, {"a": {"list": {"x": 1}}}],
    ),
    "arrays in arrays": (
        closed(a={"type": "array", "items": {"type": "array", "items": INTEGER}}),
        [{"a": []}, {"a": [[], [1], [1, 2]]}],
        [{"a": [1]}],
    ),
    "a schema that refers to itself": (
        {**closed(tree={"$ref": "#/$defs/tree"}), **TREE},
        [{"tree": {"name": "a"}}, {"tree": {"name": "a", "children_": [{"name": "b", "children_": []}]}}],
        [{"tree": {"name": "a", "children_": [{}]}}],
    ),
    "objects of two kinds": (
        closed(one={"anyOf": [closed(a=INTEGER), closed(b=STRING)]}),
        [{"one": {"a": 1}}, {"one": {"b": "x"}}],
        [{"one": {}}, {"one": {"a": 1, "b": "x"}}],
    ),
    "a key that another one needs": (
        {**closed(a_=INTEGER, b_=INTEGER), "dependentRequired": {"a_": ["b_"]}},
        [{}, {"b_": 1}, {"a_": 1, "b_": 2}],
        [{"a_": 1}],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("style", ALL)
@pytest.mark.parametrize("case", VALUES.values(), ids=VALUES)
def test_values_are_accepted_and_rejected(case: tuple[Any, list[Any], list[Any]], style: str) -> None:
    schema, accepted, rejected = case
    constraint = compiled(schema, style)
    assert constraint.split == ()
    for between in ("", "\n"):
        assert [value for value in accepted if not constraint.accepts(written(style, value, between))] == []
        assert [value for value in rejected if constraint.accepts(written(style, value, between))] == []


@for_each("style", ALL)
def test_values_of_several_types_keep_their_type(style: str) -> None:
    constraint = compiled(closed(v={"type": ["string", "integer", "null"]}), style)
    for value in ("Bonn", "2 days", 7, None, "nullable"):
        assert constraint.accepts(written(style, {"v": value}))
    assert not constraint.accepts(written(style, {"v": 1.5}))
    assert not constraint.accepts(written(style, {"v": True}))
    for text in ("7", "null", '"Bonn"', "1.5", " true", "[1]"):  # another type for a reader that cannot tell
        assert constraint.accepts(written(style, {"v": text})) == (style in TYPED or text in ("7", "null"))


@for_each("style", ALL)
def test_strings_and_objects_keep_their_type(style: str) -> None:
    constraint = compiled(closed(v={"anyOf": [STRING, POINT]}), style)
    for value in ("Bonn", "a{", {"x": 1}, {"x": 1, "note_": "a"}):
        assert constraint.accepts(written(style, {"v": value}))
    assert not constraint.accepts(written(style, {"v": {}}))
    assert constraint.accepts(written(style, {"v": '{"x": 2.5}'})) == (style in TYPED)
    assert constraint.accepts(written(style, {"v": ""})) == (style != "minimax_m3_xml")


@for_each("style", TYPED)
def test_marks_tell_the_type(style: str) -> None:
    constraint = compiled(CITY, style)
    text = written(style, {"city": "3", "days_": 3})
    types = {"kimi_k3_xml": ('"string"', '"number"'), "cohere_xml": ('"raw"', '"json"')}
    string, number = types.get(style, ('"true"', '"false"'))
    assert constraint.accepts(text)
    assert not constraint.accepts(text.replace(string, number))
    assert not constraint.accepts(text.replace(number, string))


@for_each("style", ALL)
def test_line_breaks_stand_between_elements_and_around_json(style: str) -> None:
    constraint = compiled(CITY, style)
    text = written(style, {"city": "Bonn", "days_": 3}, "\n")
    assert constraint.accepts(f"\n{text}\n")
    assert constraint.accepts(text.replace(">3<", ">\n3\n<").replace(">3]", ">\n3\n]"))
    assert not constraint.accepts(f"\n\n{text}")
    assert not constraint.accepts(f"{text} ")
    without = compiled(CITY, style, max_whitespace_cnt=0)
    assert without.accepts(text.replace("\n", ""))
    assert not without.accepts(text)
    assert not without.accepts(text.replace("\n", "") + "\n")


@for_each("style", ALL)
def test_a_call_without_arguments_is_empty(style: str) -> None:
    constraint = compiled(closed(), style)
    assert constraint.accepts("")
    assert constraint.accepts("\n")
    assert not constraint.accepts("\n\n")


@pytest.mark.parametrize("style", NESTED)
def test_line_breaks_stand_between_inner_elements(style: str) -> None:
    constraint = compiled(VALUES["objects in arrays in objects"][0], style)
    end = f"{MARK}<" if style == "minimax_m3_xml" else "<"
    text = written(style, {"a": {"list": [{"x": 1}, {"x": 2}]}})
    assert constraint.accepts(text.replace(end, f"\n{end}"))
    assert not constraint.accepts(text.replace(end, f"\n\n{end}"))


@for_each("style", ALL)
def test_strings_do_not_hold_the_mark_behind_them(style: str) -> None:
    constraint = compiled(closed(a=STRING), style)
    reserved = MARK if style == "minimax_m3_xml" else END[style]
    assert not constraint.accepts(written(style, {"a": f"x{reserved}y"}))
    assert constraint.accepts(written(style, {"a": f"x{END[style][:-1]}"})) == (style != "minimax_m3_xml")
    with pytest.raises(constrain.UnsupportedSchemaError, match="every string allowed here contains") as error:
        compiled(closed(a={"const": f"x{END[style]}y"}), style)
    assert str(error.value.pointer).endswith("/properties/a")


@for_each("style", ALL)
def test_patterns_and_lengths_hold_for_plain_strings(style: str) -> None:
    constraint = compiled(closed(a={"type": "string", "pattern": '^"[a-z]+"$', "maxLength": 5}), style)
    assert constraint.accepts(written(style, {"a": '"abc"'}))
    assert not constraint.accepts(written(style, {"a": '"abcd"'}))
    assert not constraint.accepts(written(style, {"a": "abc"}))


@for_each("style", UNDECLARED)
def test_undeclared_arguments_are_written_once(style: str) -> None:
    schema = {**closed(city=STRING), "additionalProperties": INTEGER}
    constraint = compiled(schema, style)
    assert constraint.accepts(written(style, {"city": "Bonn", "a": 1, "b c": 2}, "\n"))
    assert not constraint.accepts(written(style, {"city": "Bonn", "a": "x"}))
    once = written(style, {"a": 1})
    for between in ("", "\n"):
        assert not constraint.accepts(written(style, {"city": "Bonn"}) + once + between + once)
    assert not constraint.accepts(written(style, {"city": "Bonn"}) * 2)
    assert not constraint.accepts(written(style, {"city": "Bonn", "": 1}))


@pytest.mark.slow
@pytest.mark.parametrize("style", UNDECLARED)
@pytest.mark.parametrize("schema", [True, {"type": "object"}])
def test_any_arguments_may_be_written(style: str, schema: object) -> None:
    constraint = compiled(schema, style)
    values = {"a": "x y", "b": -1.5, "c": None, "d": [1, {"e": "f"}], "g": {"h": True, "i": []}}
    assert constraint.accepts("")
    assert constraint.accepts(written(style, values, "\n"))


@for_each("style", UNDECLARED)
def test_undeclared_arguments_match_their_patterns(style: str) -> None:
    schema = {
        "type": "object",
        "patternProperties": {"^x": INTEGER, "^y": STRING},
        "additionalProperties": False,
        "minProperties": 2,
    }
    constraint = compiled(schema, style)
    assert constraint.accepts(written(style, {"x1": 1, "y": "a"}))
    assert not constraint.accepts(written(style, {"x1": 1}))
    assert not constraint.accepts(written(style, {"x1": 1, "z": 1}))
    assert not constraint.accepts(written(style, {"x1": "a", "y": "a"}))


def test_names_have_entities() -> None:
    schema = closed(**{'a&<>"b': INTEGER})
    for style in ("kimi_k3_xml", "cohere_xml"):
        constraint = compiled(schema, style)
        assert constraint.accepts(written(style, {'a&<>"b': 1}))
        assert not constraint.accepts(written(style, {'a&<>"b': 1}).replace("&amp;", "&"))


@for_each("style", ALL)
def test_members_may_have_any_order(style: str) -> None:
    constraint = compiled(closed(a=INTEGER, b=STRING, c_=closed(d=INTEGER, e=INTEGER)), style, any_order=True)
    assert constraint.accepts(written(style, {"b": "x", "a": 1}, "\n"))
    assert constraint.accepts(written(style, {"c_": {"e": 1, "d": 2}, "b": "x", "a": 1}))
    assert not constraint.accepts(written(style, {"b": "x", "c_": {"e": 1, "d": 2}}))
    assert not constraint.accepts(written(style, {"b": "x"}) + written(style, {"b": "x", "a": 1}))


REFUSED: dict[str, tuple[str, object, str, str]] = {
    "undeclared names in M3": ("minimax_m3_xml", {"type": "object"}, "", "repeat the names"),
    "undeclared names inside in M3": (
        "minimax_m3_xml",
        closed(a={"type": "object", "additionalProperties": INTEGER}),
        "",
        "list them in properties",
    ),
    "an array or an object in M3": (
        "minimax_m3_xml",
        closed(a={"anyOf": [{"type": "array", "items": INTEGER}, POINT]}),
        "/properties/a",
        "may be an array or an object",
    ),
    "different items in M3": (
        "minimax_m3_xml",
        closed(a={"type": "array", "items": INTEGER, "uniqueItems": True}),
        "/properties/a/uniqueItems",
        "uniqueItems is not supported in this style",
    ),
    "different items in Cohere's": (
        "cohere_xml",
        closed(a={"type": "array", "items": INTEGER, "uniqueItems": True}),
        "/properties/a/uniqueItems",
        "remove it",
    ),
    "a name with a quote": ("deepseek_xml", closed(**{'a"b': INTEGER}), "", "cannot be an argument name"),
    "a name with an angle bracket": ("minimax_m3_xml", closed(**{"a>b": INTEGER}), "", "cannot be an argument name"),
    "a name that begins like an end": ("minimax_m3_xml", closed(**{"/a": INTEGER}), "", "cannot be an argument name"),
    "a blank name": ("kimi_k3_xml", closed(**{" ": INTEGER}), "", "cannot be an argument name"),
    "names of which none can be written": (
        "deepseek_xml",
        {"type": "object", "patternProperties": {'^"+$': INTEGER}, "additionalProperties": False},
        "",
        "none may be empty or contain",
    ),
    "no object": ("kimi_k3_xml", INTEGER, "", "no object satisfies their schema"),
}


@for_each("case", REFUSED.values())
def test_schemas_that_a_style_cannot_express_are_refused(case: tuple[str, object, str, str]) -> None:
    style, schema, pointer, message = case
    with pytest.raises(constrain.SchemaError) as error:
        compiled(schema, style)
    assert error.value.pointer == f"/format/json_schema{pointer}"
    assert message in error.value.message


@pytest.mark.slow
@pytest.mark.parametrize("style", ALL)
def test_a_call_ends_with_its_tag(style: str) -> None:
    for begin, end in (("<call>\n", "\n</call>\n"), ("<call>", "</call>\n"), ("<call>", "<")):
        document = {"format": tag(begin, json_format(CITY, style=style), end)}
        constraint = constrain.compile(StructuralTag(document), byte_vocabulary(), cache=False)
        for values in ({"city": "Bonn"}, {"city": "a</call>", "days_": 3}):
            for between in ("", "\n"):
                assert constraint.accepts(begin + written(style, values, between) + between + end)
        assert not constraint.accepts(begin + end)
        assert constraint.split == () or end == "<"


@pytest.mark.slow
@pytest.mark.parametrize("style", ALL)
def test_hundreds_of_arguments_are_compiled_at_once(style: str) -> None:
    kinds = [STRING, INTEGER, {"type": ["string", "null"]}, POINT, {"type": "array", "items": STRING}]
    schema = closed(**{f"a{index}_": kinds[index % len(kinds)] for index in range(120)})
    document = {"format": tag("<call>\n", json_format(schema, style=style), "\n</call>")}
    constraint = constrain.compile(StructuralTag(document), byte_vocabulary(), cache=False)
    assert constraint.split == ()
    values = {"a0_": "x", "a1_": 2, "a2_": None, "a118_": {"x": 1}, "a119_": ["y"]}
    assert constraint.accepts(f"<call>\n{written(style, values, chr(10))}\n</call>")


def with_special(names: list[str]) -> tuple[constrain.Vocabulary, dict[int, str]]:
    """A vocabulary of bytes and special tokens, and the names of these."""
    special = {256 + index: name for index, name in enumerate(names)}
    texts = [*(bytes([byte]) for byte in range(256)), *[b""] * (len(names) + 1)]
    return constrain.Vocabulary.from_tokens(texts, eos=[256 + len(names)], special=special), special


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[b-z]*$", "maxLength": 5},
        {"type": "string", "not": {"pattern": "[aA]"}, "maxLength": 5},
    ],
)
def test_patterns_with_lengths_stand_before_a_special_token(schema: dict[str, Any]) -> None:
    vocabulary, special = with_special(["<|open|>", "<|close|>", "<|sep|>"])
    document = {"format": tag("<a>", json_format(closed(a=schema), style="kimi_k3_xml"), "</a>")}
    constraint = constrain.compile(StructuralTag(document), vocabulary, cache=False)
    for value, expected in (("", True), ("bb", True), ("bbbbbb", False), ("a", False)):
        matcher = constraint.matcher()
        text = f"<a>{written('kimi_k3_xml', {'a': value})}</a>"
        assert (all(map(matcher.accept, tokens_of(text, special))) and matcher.is_accepting) == expected, value


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_a_string_that_a_reader_may_take_for_a_number_is_none_beside_numbers(text: str) -> None:
    constraint = compiled(closed(a={"type": ["string", "number"]}), "qwen_xml")
    assert not constraint.accepts(written("qwen_xml", {"a": text}))
    assert constraint.accepts(written("qwen_xml", {"a": f"{text}s"}))


@pytest.mark.slow
def test_marks_stand_for_special_tokens() -> None:
    names = ["<|open|>", "<|close|>", "<|sep|>", "｜DSML｜", MARK, "<cofl:value", "</cofl:value>", "<parameter="]
    vocabulary, special = with_special(names)
    schema = {**closed(city=STRING, inside_=POINT, list_={"type": "array", "items": INTEGER})}
    values = {"city": "B</", "inside_": {"x": 1}, "list_": [1, 2]}
    for style in ALL:
        for open_schema in (schema, {**schema, "additionalProperties": INTEGER}):
            if open_schema is not schema and style == "minimax_m3_xml":
                continue
            document = {"format": tag("<a>", json_format(open_schema, style=style), "</a>")}
            constraint = constrain.compile(StructuralTag(document), vocabulary, cache=False)
            more = {} if open_schema is schema else {"more": 1, "much": 2}
            text = f"<a>{written(style, {**values, **more}, chr(10))}\n</a>"
            matcher = constraint.matcher()
            assert all(map(matcher.accept, tokens_of(text, special))), style
            assert matcher.is_accepting
            if any(name in text for name in names):
                assert not constraint.accepts(text)


def tokens_of(text: str, special: dict[int, str]) -> list[int]:
    """The tokens of a text: special ones where their names stand, and bytes."""
    found: list[int] = []
    while text:
        token = next((token for token, name in special.items() if text.startswith(name)), None)
        if token is None:
            found += text[0].encode()
            text = text[1:]
        else:
            found.append(token)
            text = text[len(special[token]) :]
    return found
