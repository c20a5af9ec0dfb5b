"""Formats as other servers spell them: each says what a JSON Schema, pattern or grammar is, or is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import constrain
from constrain import Regex
from constrain.chat.reading.events import CallStarted, TextDelta
from constrain.fields.values import FieldError
from constrain.gbnf import Gbnf
from constrain.lark import Lark
from constrain.llama.decoding.token_logprob import TokenLogprob
from constrain.server.app import Application
from constrain.server.requests.formats import RESPONSE_FORMAT, TEXT_FORMAT, read_format, text_of_schema
from constrain.server.requests.peers import PEERS
from constrain.server.requests.question import take_prefill
from constrain.server.responses.repeated import repeat_text
from constrain.server.serving.prefill import Prefill
from tests.support import for_each
from tests.support.server.asking import ask, chunks_of
from tests.support.server.response_answers import completion

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


USER = [{"role": "user", "content": "Name a colour."}]
BEGUN = {"role": "assistant", "content": "The colour"}
CALLER = {"role": "assistant", "tool_calls": [{}]}


@for_each(
    "last, fields, text",
    ((BEGUN,), {}, "The colour"),
    ((BEGUN,), {"continue_final_message": True}, "The colour"),
    ((BEGUN,), {"add_generation_prompt": False, "continue_final_message": False}, "The colour"),
    (({**BEGUN, "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},), {}, "ab"),
    (({**BEGUN, "content": ""},), {}, ""),
    ((), {}, ""),
    ((), {"add_generation_prompt": True, "continue_final_message": False}, ""),
)
def test_the_last_message_may_be_the_beginning_of_the_answer(last: Any, fields: dict[str, Any], text: str) -> None:
    options: Any = {}
    assert take_prefill(fields, [*USER, *last], options) == (USER, text)
    assert options == ({"thinking": False} if text else {})


@pytest.mark.parametrize("fields", [{"continue_final_message": False}, {"add_generation_prompt": True}])
def test_a_request_may_ask_for_a_message_of_its_own(fields: dict[str, Any]) -> None:
    assert take_prefill(fields, [*USER, BEGUN], {}) == ([*USER, BEGUN], "")


@for_each(
    "messages, fields, options, param",
    (USER, {"continue_final_message": True}, {}, "continue_final_message"),
    ([*USER, CALLER], {"add_generation_prompt": False}, {}, "add_generation_prompt"),
    ([*USER, BEGUN], {"continue_final_message": True, "add_generation_prompt": True}, {}, "continue_final_message"),
    ([*USER, BEGUN], {"continue_final_message": 1}, {}, "continue_final_message"),
    ([BEGUN], {}, {}, "messages[0]"),
    ([*USER, BEGUN], {}, {"thinking": True}, "messages[1]"),
    ([*USER, BEGUN], {}, {"stop": ["x", "col"]}, "messages[1]"),
    ([*USER, BEGUN], {}, {"draft": True}, "draft"),
)
def test_a_beginning_that_cannot_be_continued_is_refused(
    messages: Any, fields: dict[str, Any], options: Any, param: str
) -> None:
    with pytest.raises(FieldError) as caught:
        take_prefill(fields, messages, options)
    assert caught.value.param == param


def test_the_beginning_is_cut_from_events_and_answers() -> None:
    def token(text: str) -> TokenLogprob:
        return TokenLogprob(1, text, text.encode(), -1.0, ())

    tokens = [token(text) for text in ("The", " colour", " is", " red")]
    prefill = Prefill(characters=10, tokens=2, given=3)
    events = [
        TextDelta("The col", tuple(tokens[:2])),
        TextDelta("our is", tuple(tokens[2:3])),
        CallStarted(0, "a", "f"),
    ]
    shown = [prefill.cut_event(event) for event in (*events, TextDelta(" red", tuple(tokens[3:])))]
    assert shown == [None, TextDelta(" is", (tokens[2],)), events[2], TextDelta(" red", (tokens[3],))]
    cut = prefill.cut(completion("The colour is red", "The colour is red"))
    assert (cut.text, cut.usage.prompt_tokens, cut.usage.completion_tokens) == (" is red", 23, 4)


SCHEMA = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}
NAMED = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
SENT = [*USER, {"role": "assistant", "content": '{"colour": "b'}]


@for_each(
    "path, fields",
    ("/v1/chat/completions", {"response_format": NAMED, "logprobs": True, "n": 2}),
    ("/v1/chat/completions", {"response_format": NAMED, "stream": True}),
    ("/v1/messages", {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}, "max_tokens": 9}),
    ("/api/chat", {"format": SCHEMA, "stream": False}),
)
def test_the_answer_is_the_rest_of_a_value(application: Application, path: str, fields: dict[str, Any]) -> None:
    response = ask(application, "POST", path, json={"model": "small", "messages": SENT, **fields})
    assert response.status_code == 200, response.text
    if "stream" in fields and path != "/api/chat":
        choices = [choice for chunk in chunks_of(response) for choice in chunk["choices"]]
        texts = ["".join(choice["delta"].get("content") or "" for choice in choices)]
    elif path == "/api/chat":
        texts = [response.json()["message"]["content"]]
    elif path == "/v1/messages":
        texts = [response.json()["content"][0]["text"]]
    else:
        texts = [choice["message"]["content"] for choice in response.json()["choices"]]
        told = [choice["logprobs"]["content"] for choice in response.json()["choices"]]
        assert ["".join(each["token"] for each in tokens) for tokens in told] == texts
    for text in texts:
        assert json.loads(SENT[-1]["content"] + text) == {"colour": "blue"}


def test_a_beginning_that_no_answer_has_is_refused(application: Application) -> None:
    body = {"model": "small", "messages": [*USER, BEGUN], "response_format": NAMED}
    response = ask(application, "POST", "/v1/chat/completions", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "messages"


def test_free_text_goes_on(application: Application, model: constrain.Model) -> None:
    begun = {"role": "assistant", "content": "1, 2, 3, 4,"}
    body = {"model": "small", "max_tokens": 6, "temperature": 0}
    plain, going_on = (
        ask(application, "POST", "/v1/chat/completions", json={**body, "messages": messages}).json()
        for messages in (USER, [*USER, begun])
    )
    assert going_on["choices"][0]["message"]["content"]
    read = plain["usage"]["prompt_tokens"] + len(model.text_tokens(begun["content"]))
    assert (going_on["usage"]["prompt_tokens"], going_on["usage"]["completion_tokens"]) == (read, 6)
