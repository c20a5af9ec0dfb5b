"""Tools in OpenAI's JSON, in the shapes of both endpoints."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest

import constrain
from constrain import CustomTool, FunctionTool, Lark, Regex, ToolError, tool_from_json, tool_to_json
from tests.support import Tokens, Walker, byte_vocabulary, data_folder, for_each
from tests.support.judges import second_validation_error

WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather, now.",
    "parameters": {
        "type": "object",
        "properties": {
            "location": {"type": "string", "pattern": "^[a-z]{1,20}$"},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["location"],
    },
}
PLACE: dict[str, Any] = {"type": "object", "properties": {"place": {"type": "string", "maxLength": 3}}}


def nested(document: dict[str, Any]) -> dict[str, Any]:
    """The shape of chat completions."""
    inner = {key: value for key, value in document.items() if key != "type"}
    if "format" in inner and inner["format"]["type"] == "grammar":
        grammar = {key: value for key, value in inner["format"].items() if key != "type"}
        inner["format"] = {"type": "grammar", "grammar": grammar}
    return {"type": document["type"], document["type"]: inner}


def with_strict(document: dict[str, Any], strict: Any) -> dict[str, Any]:
    return {**document, "strict": strict}


CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"location": {"type": "string"}},
    "required": ["location"],
    "additionalProperties": False,
}

# Function tools


@pytest.mark.parametrize("shape", ["chat", "responses"])
def test_both_shapes_are_read(shape: str) -> None:
    document = nested(WEATHER) if shape == "chat" else WEATHER
    before = copy.deepcopy(document)
    made = tool_from_json(document)
    assert isinstance(made, FunctionTool)
    assert (made.name, made.description, made.strict) == ("get_weather", "Weather, now.", False)
    assert made.parameters == WEATHER["parameters"]
    made.parameters["properties"].clear()
    assert document == before


@pytest.mark.parametrize("strict", [None, False])
def test_what_is_not_strict_stays_so(strict: bool | None) -> None:
    made = tool_from_json(with_strict(WEATHER, strict))
    assert isinstance(made, FunctionTool)
    assert not made.strict
    assert made.parameters["required"] == ["location"]
    assert made.validate('{"location": "oslo"}').values == {"location": "oslo"}
    assert tool_to_json(made, "responses") == with_strict(WEATHER, strict=False)
    again = tool_from_json(tool_to_json(made))
    assert isinstance(again, FunctionTool)
    assert not again.strict
    assert again.parameters == made.parameters


def test_strict_parameters_must_keep_the_structural_rules() -> None:
    made = tool_from_json({"type": "function", "name": "f", "parameters": CLOSED, "strict": True})
    assert isinstance(made, FunctionTool)
    assert made.strict
    with pytest.raises(constrain.SchemaError, match="additionalProperties") as caught:
        tool_from_json(with_strict(WEATHER, strict=True))
    assert "get_weather" in str(caught.value)
    assert "days" in str(caught.value)


@pytest.mark.parametrize("parameters", [{}, {"parameters": None}, {"parameters": {"type": "object", "properties": {}}}])
def test_without_parameters_there_are_no_arguments(parameters: dict[str, Any]) -> None:
    made = tool_from_json({"type": "function", "name": "now", **parameters}, lambda: "now")
    assert made.call("{}") == "now"
    with pytest.raises(constrain.OutputValidationError):
        made.validate('{"a": 1}')


@for_each(
    "text",
    ['{"location": "Oslo"}', "{}", '{"location": "a", "days": 0}', "[]", "{", '{"location": "a", "location": "b"}'],
)
def test_arguments_that_the_schema_does_not_take_are_refused(text: str) -> None:
    with pytest.raises(constrain.OutputValidationError) as caught:
        tool_from_json(WEATHER).validate(text)
    assert caught.value.text == text


@pytest.mark.parametrize("text", ['{"days": 2.0, "location":\n"a"}', '{ "location" : "a" , "more": null }'])
def test_arguments_may_be_in_any_order_and_spelling(text: str) -> None:
    made = tool_from_json(WEATHER)
    assert isinstance(made, FunctionTool)
    assert made.validate(text).values == json.loads(text)


def test_characters_may_be_escaped_in_any_way() -> None:
    made = tool_from_json({"type": "function", "name": "f", "parameters": PLACE})
    assert made.validate(r'{"place": "\u00e9\u0001\/"}').values == {"place": "é\x01/"}  # type: ignore[union-attr]
    with pytest.raises(constrain.OutputValidationError):
        made.validate(r'{"place": "\ud800"}')


def test_arguments_are_an_object_even_where_the_schema_does_not_say_so() -> None:
    made = tool_from_json({"type": "function", "name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}})
    with pytest.raises(constrain.OutputValidationError):
        made.validate("3")
    with pytest.raises(constrain.SchemaError, match="array"):
        tool_from_json({"type": "function", "name": "f", "parameters": {"type": "array"}})


def test_a_function_runs_with_the_arguments_by_name() -> None:
    def weather(ctx: constrain.ToolContext[str], location: str, days: int = 1) -> str:
        return f"{ctx} {location} {days}"

    made = tool_from_json(WEATHER, weather)
    assert made.call({"location": "oslo"}, context="sunny:") == "sunny: oslo 1"


def other_name(place: str, days: int = 1) -> None: ...


def without_default(location: str, days: int) -> None: ...


def too_few(location: str) -> None: ...


def by_position(location: str, /, days: int = 1) -> None: ...


def test_a_function_takes_whatever_keys_an_open_object_may_have() -> None:
    document = {"type": "function", "name": "note", "parameters": {"type": "object"}}
    assert tool_from_json(document, lambda **keys: keys).call('{"a": 1}') == {"a": 1}
    with pytest.raises(ToolError, match="any_other"):
        tool_from_json(document, lambda a=None: a)


@for_each("function", [other_name, without_default, too_few, by_position])
def test_a_function_that_cannot_take_the_arguments_is_refused(function: Any) -> None:
    with pytest.raises(ToolError, match="get_weather"):
        tool_from_json(WEATHER, function)


def test_parameters_that_cannot_be_enforced_are_refused_with_the_place() -> None:
    parameters = {"type": "object", "properties": {"a": {"const": 1e300}}}
    with pytest.raises(constrain.UnsupportedSchemaError, match="tool 'f'") as caught:
        tool_from_json({"type": "function", "name": "f", "parameters": parameters})
    assert caught.value.pointer == "/properties/a/const"


PATTERN = {"type": "grammar", "syntax": "regex", "definition": r"\p{L}\cA"}


def test_a_pattern_may_be_of_another_dialect() -> None:
    made = tool_from_json({"type": "custom", "name": "a", "format": {**PATTERN, "dialect": "ecma"}})
    assert isinstance(made, CustomTool)
    assert made.format == Regex(PATTERN["definition"], "ecma")
    with pytest.raises(constrain.PatternError):
        tool_from_json({"type": "custom", "name": "a", "format": PATTERN})


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "/type"),
    ({"type": "web_search"}, "/type"),
    ({"type": "function"}, "/name"),
    ({"type": "function", "function": {}}, "/function/name"),
    ({"type": "function", "function": []}, "/function"),
    ({"type": "function", "name": "a b"}, "/name"),
    ({"type": "function", "function": {"name": "a:b"}}, "/function/name"),
    ({"type": "function", "name": "a", "description": 3}, "/description"),
    ({"type": "function", "name": "a", "strict": "yes"}, "/strict"),
    ({"type": "function", "name": "a", "parameters": True}, "/parameters"),
    ({"type": "custom", "custom": {"name": "a", "format": "x"}}, "/custom/format"),
    ({"type": "custom", "custom": {"name": "a", "format": {}}}, "/custom/format/type"),
    ({"type": "custom", "name": "a", "format": {"type": "json"}}, "/format/type"),
    ({"type": "custom", "name": "a", "format": {"type": "grammar"}}, "/format/syntax"),
    ({"type": "custom", "name": "a", "format": {"type": "grammar", "grammar": {}}}, "/format/grammar/syntax"),
    ({"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": "lark"}}, "/format/definition"),
    ({"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": "x", "definition": ""}}, "/format/syntax"),
    ({"type": "custom", "name": "a", "format": {**PATTERN, "dialect": "perl"}}, "/format/dialect"),
]


@for_each("document, pointer", REFUSED)
def test_other_documents_are_refused_with_the_place(document: dict[str, Any], pointer: str) -> None:
    with pytest.raises(ToolError) as caught:
        tool_from_json(document)
    assert caught.value.pointer == pointer


# Custom tools


def test_custom_tools_are_written_in_both_shapes() -> None:
    made = CustomTool("digits", "Digits.", Regex("[0-9]+"))
    grammar = {"syntax": "regex", "definition": "[0-9]+"}
    assert tool_to_json(made, "responses") == {
        "type": "custom",
        "name": "digits",
        "description": "Digits.",
        "format": {"type": "grammar", **grammar},
    }
    assert tool_to_json(made) == {
        "type": "custom",
        "custom": {"name": "digits", "description": "Digits.", "format": {"type": "grammar", "grammar": grammar}},
    }
    assert tool_to_json(CustomTool("free"), "responses")["format"] == {"type": "text"}


@pytest.mark.parametrize("source", [Regex("a", dialect="ecma"), Lark("begin: /a/", start="begin"), constrain.text()])
def test_formats_that_openai_does_not_have_are_not_written(source: Any) -> None:
    with pytest.raises(ToolError, match="digits"):
        tool_to_json(CustomTool("digits", format=source))


# OpenAI's examples


def examples() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data_folder() / "openai-examples.json").read_text(encoding="utf-8"))
    return found


def walks(schema: dict[str, Any]) -> list[str]:
    vocabulary = byte_vocabulary()
    constraint = constrain.compile(schema, vocabulary)
    walker, tokens = Walker(constraint, vocabulary), Tokens(vocabulary)
    return [walker.text(Random(seed), tokens, most=60).decode() for seed in range(10)]


def test_every_function_tool_of_the_examples_is_read_written_and_run() -> None:
    for document in examples()["function_tools"].values():
        for shaped, shape in ((document, "responses"), (nested(document), "chat")):
            made = tool_from_json(shaped, lambda **arguments: arguments)
            assert isinstance(made, FunctionTool)
            written = with_strict(document, document.get("strict", False))
            assert tool_to_json(made, shape) == (nested(written) if shape == "chat" else written)  # type: ignore[arg-type]
            for text in walks(made.schema):
                assert made.call(text) == json.loads(text)
                assert second_validation_error(document["parameters"], text.encode()) is None


def test_every_custom_tool_of_the_examples_takes_what_it_should() -> None:
    for document in examples()["custom_tools"].values():
        given = {key: value for key, value in document.items() if key not in ("accept", "reject")}
        for shaped, shape in ((given, "responses"), (nested(given), "chat")):
            made = tool_from_json(shaped, lambda text: text)
            assert isinstance(made, CustomTool)
            if "format" in given:
                assert tool_to_json(made, shape) == shaped  # type: ignore[arg-type]
            for text in document.get("accept", ["print('any text')"]):
                assert made.call(made.validate(text)) == text
            for text in document.get("reject", ()):
                with pytest.raises(constrain.OutputValidationError):
                    made.validate(text)


def quoting(quote: object, **more: object) -> constrain.FunctionTool:
    parameters = {"type": "object", "properties": {"it": {"type": "string", "x-quote": quote}}, **more}
    tool = constrain.tool_from_json({"type": "function", "name": "f", "parameters": parameters})
    assert isinstance(tool, constrain.FunctionTool)
    return tool


def test_arguments_are_compared_with_the_sources_in_the_schema_alone() -> None:
    assert quoting(True).validate('{"it": "anything"}').values == {"it": "anything"}
    with_source = quoting("page", **{"x-sources": {"page": "One page"}})
    assert with_source.validate('{"it": "One"}').values == {"it": "One"}
    with pytest.raises(constrain.OutputValidationError, match="invalid arguments of tool 'f'"):
        with_source.validate('{"it": "anything"}')


def test_a_malformed_quote_in_a_tool_is_named() -> None:
    with pytest.raises(constrain.SchemaError, match=r"the parameters of tool 'f': .*no option 'folds'") as caught:
        quoting({"folds": True})
    assert caught.value.pointer == "/properties/it/x-quote"
