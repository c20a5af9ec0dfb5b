"""Malformed and unsupported structural tags: each is an error with its place and a remedy, within two seconds."""

from __future__ import annotations

from typing import Any

import pytest

import constrain
from constrain.parts import StructuralTag
from constrain.structural.members import MAX_FORMATS, MAX_TAG_NUMBER
from constrain.structural.reading import MAX_TRIGGERS
from constrain.work import MAX_NESTING
from tests.structural.cases import ANY, WEATHER, X, const, dispatch, json, sequence, tag, triggered
from tests.support import byte_vocabulary, for_each
from tests.support.processor_time import finishes_within

DEEP: dict[str, Any] = ANY
for _ in range(MAX_NESTING):
    DEEP = sequence(DEEP)

ERRORS: dict[str, tuple[object, str, str]] = {
    "no object": ([], "", "a structural tag is a JSON object, not []"),
    "another type": ({"type": "tag", "format": ANY}, "/type", 'type must be "structural_tag", not "tag"'),
    "no format": ({"type": "structural_tag"}, "", "needs the member format"),
    "an unknown member": (
        {"format": ANY, "fromat": 1},
        "",
        "a structural tag has no member 'fromat' (did you mean format?)",
    ),
    "a format that is a text": ({"format": "any_text"}, "/format", 'a format is a JSON object, not "any_text"'),
    "no type": ({"format": {}}, "/format", "a format needs a type: one of const_string, json_schema"),
    "an unknown type": (
        {"format": {"type": "any-text"}},
        "/format/type",
        "there is no format 'any-text' (did you mean any_text?); there are const_string",
    ),
    "an unknown member of a format": (
        {"format": {"type": "any_text", "exclude": ["a"]}},
        "/format",
        "the format any_text has no member 'exclude' (did you mean excludes?)",
    ),
    "a constant without a value": ({"format": {"type": "const_string"}}, "/format", "the member value is missing"),
    "a number as a text": ({"format": const(7)}, "/format/value", "expected a text, not 7"),  # type: ignore[arg-type]
    "half of a pair": ({"format": const("\ud800")}, "/format/value", "half of a surrogate pair"),
    "no elements": ({"format": sequence()}, "/format/elements", "elements is empty"),
    "elements that are no list": ({"format": {"type": "or", "elements": 1}}, "/format/elements", "elements is a list"),
    "a style that there is not": (
        {"format": json(style="xml")},
        "/format/style",
        'there is no style "xml"; there are json, qwen_xml',
    ),
    "excludes in JSON": ({"format": json(excludes=["a"])}, "/format/excludes", "not supported for JSON"),
    "a schema that is a text": (
        {"format": json("{}")},
        "/format/json_schema",
        "a JSON Schema is an object, true or false",
    ),
    "a negative number of tokens": (
        {"format": {"type": "any_tokens", "max_tokens": -1}},
        "/format/max_tokens",
        "is an integer of 0 or more, not -1",
    ),
    "a token that is none": (
        {"format": {"type": "exclude_token", "exclude_tokens": [1.5]}},
        "/format/exclude_tokens/0",
        "a token is the text or the id of a token, not 1.5",
    ),
    "a negative length": (
        {"format": {**ANY, "max_chars": -1}},
        "/format/max_chars",
        "is an integer of 0 or more, not -1",
    ),
    "max below min": (
        {"format": {"type": "repeat", "min": 2, "max": 1, "content": ANY}},
        "/format/max",
        "less than min (2)",
    ),
    "a pattern that is wrong": ({"format": {"type": "regex", "pattern": "(a"}}, "/format/pattern", ""),
    "a bool that is none": (
        {"format": triggered(["b"], [X], at_least_one=1)},
        "/format/at_least_one",
        "is true or false, not 1",
    ),
    "an empty trigger": ({"format": triggered([""], [X])}, "/format/triggers/0", "must not be empty"),
    "no trigger": ({"format": triggered([], [X])}, "/format/triggers", "triggers is empty"),
    "a tag without a trigger": (
        {"format": triggered(["<f"], [WEATHER, X])},
        "/format/tags/1/begin",
        '"bc" begins with no trigger ("<f"); add a trigger, or change the begin',
    ),
    "a trigger without a tag": (
        {"format": triggered(["b", "q"], [X])},
        "/format/triggers/1",
        'no tag begins with the trigger "q"; remove the trigger',
    ),
    "a trigger twice": ({"format": triggered(["b", "b"], [X])}, "/format/triggers/1", 'the trigger "b" is there twice'),
    "a trigger in a trigger": (
        {"format": triggered(["b", "bc"], [X])},
        "/format/triggers/1",
        'the trigger "bc" contains the trigger "b"',
    ),
    "a pattern in a pattern": (
        {"format": dispatch(["a", ANY], ["xay", ANY])},
        "/format/rules/1/0",
        'the pattern "xay" contains the pattern "a"',
    ),
    "an empty pattern": ({"format": dispatch(["", ANY])}, "/format/rules/0/0", "must not be empty"),
    "a rule of three": ({"format": dispatch(["a", ANY, 1])}, "/format/rules/0", "a rule is a list of two"),
    "another format as a tag": (
        {"format": triggered(["b"], [ANY])},
        "/format/tags/0/type",
        'tags holds formats of type "tag" only, not "any_text"',
    ),
    "a token as a begin of a text": (
        {"format": triggered(["b"], [tag({"type": "token", "token": 1}, ANY, "y")])},
        "/format/tags/0/begin",
        "use token_triggered_tags",
    ),
    "a text as a begin of a token": (
        {"format": {"type": "token_triggered_tags", "trigger_tokens": [1], "tags": [X]}},
        "/format/tags/0/begin",
        "begins with one of trigger_tokens",
    ),
    "a format as an end": (
        {"format": tag("a", ANY, ANY)},
        "/format/end/type",
        'expected a text or a format of type "token", not "any_text"',
    ),
    "no end": ({"format": tag("a", ANY, [])}, "/format/end", "the list of ends is empty"),
    "free text without an end": ({"format": tag("a", ANY, "")}, "/format/end", "its end must not be empty"),
    "a negative token": ({"format": {"type": "token", "token": -1}}, "/format/token", "ids begin at 0"),
    "a huge token": ({"format": {"type": "token", "token": 1 << 40}}, "/format/token", "more than 32 bits"),
    "half of a token": ({"format": {"type": "token", "token": 1.5}}, "/format/token", "not 1.5"),
    "true as a token": ({"format": {"type": "token", "token": True}}, "/format/token", "the text or the id of a token"),
    "a structure without an end": (
        {"structures": [{"begin": "a", "schema": {}}], "triggers": ["a"]},
        "/structures/0",
        "the member end is missing",
    ),
    "a structure whose schema is no JSON": (
        {"structures": [{"begin": "a", "schema": "{", "end": "b"}], "triggers": ["a"]},
        "/structures/0/schema",
        "not JSON",
    ),
    "structures without a trigger": (
        {"structures": [{"begin": "a", "schema": {}, "end": "b"}]},
        "",
        "the member triggers is missing",
    ),
}

LIMITS: dict[str, tuple[object, str, str]] = {
    "nesting": ({"format": DEEP}, "/format" + "/elements/0" * MAX_NESTING, "MAX_NESTING"),
    "formats": ({"format": sequence(*[sequence(*[ANY] * 100)] * 60)}, "/format/elements/49/elements/49", "MAX_FORMATS"),
    "triggers": (
        {"format": triggered([f"<{index}>" for index in range(MAX_TRIGGERS + 1)], [X])},
        f"/format/triggers/{MAX_TRIGGERS}",
        "MAX_TRIGGERS",
    ),
    "a list": ({"format": {**ANY, "excludes": ["a"] * (MAX_FORMATS + 1)}}, "/format/excludes", "MAX_FORMATS"),
    "a number": ({"format": {**ANY, "max_chars": MAX_TAG_NUMBER + 1}}, "/format/max_chars", "MAX_TAG_NUMBER"),
}


@for_each("case", ERRORS.values())
def test_errors_name_the_place(case: tuple[Any, str, str]) -> None:
    document, pointer, message = case
    with (
        finishes_within(2),
        pytest.raises((constrain.GrammarError, constrain.PatternError, constrain.SchemaError)) as error,
    ):
        StructuralTag(document) if isinstance(document, dict) else StructuralTag("[]")
    assert error.value.pointer == pointer
    assert message in error.value.message


@pytest.mark.slow
@for_each("case", LIMITS.values())
def test_limits_are_named(case: tuple[Any, str, str]) -> None:
    document, pointer, name = case
    with pytest.raises(constrain.LimitError, match=name) as error:
        StructuralTag(document)
    assert error.value.pointer == pointer


def test_values_of_other_types_are_type_errors() -> None:
    with pytest.raises(TypeError, match="a structural tag is a dict or JSON text, not 7"):
        StructuralTag(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="description"):
        StructuralTag({"format": ANY}, description=1)  # type: ignore[arg-type]
    with pytest.raises(constrain.GrammarError, match="JSON cannot express"):
        StructuralTag({"format": {1, 2}})


@for_each(
    "document, pointer, message",
    [
        (
            {"format": triggered(["b"], [tag("b", json({"type": "strin"}), "y")])},
            "/format/tags/0/content/json_schema/type",
            "strin",
        ),
        ({"format": sequence(ANY, json({"minimum": "a"}))}, "/format/elements/1/json_schema/minimum", ""),
        (
            {"structures": [{"begin": "a", "schema": {"type": 1}, "end": "b"}], "triggers": ["a"]},
            "/structures/0/schema/type",
            "",
        ),
        (
            {"format": {"type": "grammar", "grammar": "root ::= item"}},
            "/format/grammar",
            "line 1, column 10: the rule item",
        ),
        ({"format": {"type": "regex", "pattern": "[a&&b]"}}, "/format/pattern", "matches no text at all"),
        ({"format": json(style="qwen_xml", schema={"type": "integer"})}, "/format/json_schema", ""),
    ],
)
def test_errors_in_parts_name_the_place_when_the_tag_is_compiled(
    document: dict[str, Any], pointer: str, message: str
) -> None:
    with pytest.raises(constrain.ConstrainError) as error:
        constrain.compile(StructuralTag(document), byte_vocabulary(), cache=False)
    assert error.value.pointer == pointer
    assert message in error.value.message
