"""Formats as other servers spell them: each says what a JSON Schema, pattern or grammar is, or is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from constrain import Regex
from constrain.fields.values import FieldError
from constrain.gbnf import Gbnf
from constrain.lark import Lark
from constrain.server.requests.formats import RESPONSE_FORMAT, TEXT_FORMAT, read_format, text_of_schema
from constrain.server.requests.peers import PEERS
from constrain.server.responses.repeated import repeat_text
from tests.support import for_each

AGE: dict[str, Any] = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
LIST = {"type": "array", "items": {"type": "integer"}}
ANY = {"type": "object"}
GBNF = 'root ::= "(" root ")" | "x"'

BOTH: dict[str, tuple[dict[str, Any], Any]] = {
    "json_object": ({"type": "json_object"}, ANY),
    "a schema beside json_object": ({"type": "json_object", "schema": AGE}, AGE),
    "a value beside json_object": ({"type": "json_object", "value": AGE}, AGE),
    "json": ({"type": "json"}, ANY),
    "a value beside json": ({"type": "json", "value": LIST}, LIST),
    "a schema without a type": ({"type": "json_object", "value": {"required": ["a"]}}, {**ANY, "required": ["a"]}),
    "a schema beside json_schema": ({"type": "json_schema", "schema": AGE}, AGE),
    "a value beside json_schema": ({"type": "json_schema", "value": AGE}, AGE),
    "a value with a name": ({"type": "json_schema", "value": {"name": "a b", "schema": LIST}}, LIST),
    "a pattern": ({"type": "regex", "pattern": "a+"}, Regex("a+")),
    "a pattern as a value": ({"type": "regex", "value": "a+"}, Regex("a+")),
    "a grammar": ({"type": "grammar", "grammar": GBNF}, Gbnf(GBNF)),
    "a marked grammar": (
        {"type": "grammar", "value": '%llguidance {}\nstart: "a"'},
        Lark('%llguidance {}\nstart: "a"'),
    ),
}
"""Formats of both endpoints, and what they say."""


def plain(schema: object) -> Any:
    return json.loads(schema) if isinstance(schema, str) else schema


@for_each("given, meant", BOTH.values())
def test_formats_of_other_servers_are_read_by_both_endpoints(given: dict[str, Any], meant: Any) -> None:
    for spelling in (RESPONSE_FORMAT, TEXT_FORMAT):
        found = read_format(given, spelling, "structural")
        assert found is not None
        assert plain(found.schema) == meant
    shown = repeat_text({"format": given})["format"]
    assert shown["type"] == {"json": "json_object"}.get(given["type"], given["type"]) or shown == {"type": "text"}
    assert "schema" not in shown or shown["schema"] in (AGE, LIST, {"required": ["a"]})


def test_a_bare_schema_is_told_how_a_format_has_it() -> None:
    for spelling, wrapped in (
        (RESPONSE_FORMAT, '"json_schema": {"name": "answer", "schema": '),
        (TEXT_FORMAT, '"schema": '),
    ):
        with pytest.raises(FieldError, match=re.escape(f'{{"type": "json_schema", {wrapped}{{...}}')):
            read_format({"type": "object"}, spelling, "structural")


def test_keywords_that_are_null_are_missing() -> None:
    given: dict[str, Any] = {
        "required": None,
        "properties": {"default": {"enum": None, "const": None}, "a": {"anyOf": [{"items": None, "type": "array"}]}},
        "default": {"required": None},
        "enum": [None, {"required": None}],
    }
    assert json.loads(text_of_schema(given)) == {
        "properties": {"default": {"const": None}, "a": {"anyOf": [{"type": "array"}]}},
        "default": {"required": None},
        "enum": [None, {"required": None}],
    }
    assert given["required"] is None


EBNF = Gbnf("root ::= a.b\na.b ::= [\\-]", dialect="xgrammar")
LARK = Lark('start: "(" start ")" | "::=" // root ::= x')
DIALECTS: dict[str, tuple[str, str, Any]] = {
    "llama.cpp's": ("grammar", GBNF, Gbnf(GBNF)),
    "llama.cpp's with llguidance": ("grammar", '%llguidance {}\nstart: "a"', Lark('%llguidance {}\nstart: "a"')),
    "vLLM's with XGrammar": ("guided_grammar", EBNF.text, EBNF),
    "vLLM's with Lark": ("guided_grammar", LARK.text, LARK),
    "SGLang's": ("ebnf", f"# a comment\n{EBNF.text}", Gbnf(f"# a comment\n{EBNF.text}", dialect="xgrammar")),
}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"type": "json", "value": AGE}, AGE),
        ({"type": "json_schema", "value": {"name": "a b", "schema": AGE}}, AGE),
        ({"type": "regex", "value": "a+"}, Regex("a+")),
    ],
)
def test_the_grammar_of_tgi_is_read(given: dict[str, Any], meant: Any) -> None:
    assert plain(PEERS["grammar"](given, "grammar").schema) == meant
    with pytest.raises(ValueError, match="'json', 'json_schema', 'regex'"):
        PEERS["grammar"]({**given, "type": "text"}, "grammar")


@for_each("field, text, meant", DIALECTS.values())
def test_the_field_says_the_dialect(field: str, text: str, meant: Any) -> None:
    assert PEERS[field](text, field).schema == meant
    if field == "guided_grammar":
        assert PEERS["structured_outputs"]({"grammar": text}, "structured_outputs").schema == meant
