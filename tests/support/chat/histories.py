"""Conversations and tools as clients send them, to show to every chat template."""

from __future__ import annotations

import json
from typing import Any

Conversation = list[dict[str, Any]]


def user(text: str = "word-user") -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str = "word-answer", **other: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **other}


def system(text: str = "word-system") -> dict[str, Any]:
    return {"role": "system", "content": text}


def caller(*ids: str, content: str | None = None, arguments: Any = '{"city": "word-city"}', **other: Any) -> Any:
    called = {"name": "weather", "arguments": arguments}
    calls = [{"id": each, "type": "function", "function": called} for each in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls, **other}


def result(call_id: str = "a", content: Any = "word-result") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def loop(content: str | None = None, **other: Any) -> Conversation:
    return [caller("a", content=content, **other), result()]


CONVERSATIONS: dict[str, Conversation] = {
    "a question": [user()],
    "a system message and a question": [system(), user()],
    "a developer's message": [{"role": "developer", "content": "word-system"}, user()],
    "two system messages": [system(), system("word-more"), user()],
    "a system message later": [user(), answer(), system(), user()],
    "a system message at the end": [user(), system()],
    "a system message alone": [system()],
    "two turns": [user(), answer(), user()],
    "an answer with reasoning": [user(), answer(reasoning_content="word-thought"), user()],
    "an empty question": [user("")],
    "an empty answer": [user(), answer(""), user()],
    "an answer that is null": [user(), {"role": "assistant", "content": None}, user()],
    "an empty system message": [system(""), user()],
    "content as parts": [{"role": "user", "content": [{"type": "text", "text": "word-user"}]}],
    "two questions": [user(), user()],
    "two answers": [user(), answer(), answer(), user()],
    "three questions, two answers": [user(), user(), user(), answer(), answer(), user()],
    "an answer first": [answer(), user()],
    "a system message and an answer first": [system(), answer(), user()],
    "a result": [user(), *loop()],
    "a result of a call beside empty text": [user(), *loop("")],
    "a result of a call beside text": [user(), *loop("word-beside")],
    "an answer behind a result": [user(), *loop(), answer(), user()],
    "an answer behind a result, with text beside the call": [user(), *loop("word-beside"), answer(), user()],
    "an answer behind a result, with empty text": [system(), user(), *loop(""), answer(), user()],
    "text and call apart": [user(), answer("word-beside"), *loop(), answer(), user()],
    "a question behind a result": [user(), *loop(), user()],
    "a question behind a result, and more": [user(), *loop(), user(), answer(), user()],
    "calls one after another": [user(), *loop(), *loop(""), *loop("word-beside"), answer(), user()],
    "two calls": [user(), caller("a", "b"), result("a"), result("b")],
    "two calls, results out of order": [user(), caller("a", "b", content="word-beside"), result("b"), result("a")],
    "two calls, an answer and a question": [user(), caller("a", "b"), result("b"), result("a"), answer(), user()],
    "reasoning in front of a call": [user(), *loop(reasoning_content="word-thought")],
    "reasoning and text in front of a call": [user(), *loop("word-beside", reasoning_content="word-thought")],
    "an empty result": [user(), caller("a"), result("a", "")],
    "a result without content": [user(), caller("a"), result("a", None)],
    "a result of JSON": [user(), caller("a"), result("a", '{"t": [1, null]}'), answer(), user()],
    "a result whose call is gone": [user(), result("z"), answer(), user()],
    "a result whose call is gone, first": [result("z"), answer(), user()],
    "two results of one call": [user(), caller("a"), result(), result(), answer(), user()],
    "a call without arguments": [user(), *loop(arguments=None), answer(), user()],
    "a call whose arguments are null": [user(), *loop(arguments="null"), answer(), user()],
    "a call whose arguments are cut off": [user(), *loop(arguments='{"city": "word-'), answer(), user()],
    "a call whose arguments are a list": [user(), *loop(arguments="[1, 2]"), answer(), user()],
    "a call whose arguments are a value": [user(), *loop(arguments={"city": ["word-city", None]}), answer(), user()],
    "a long history": [system(), *[user(), *loop("word-beside"), answer()] * 5, user()],
    "a long history of texts": [system(), *[user(), answer()] * 20, user()],
}
"""Conversations by what is special about them."""


def _tool(parameters: Any, **other: Any) -> dict[str, Any]:
    function = {"name": "weather", "description": "Weather of a city.", "parameters": parameters, **other}
    return {"type": "function", "function": function}


def _of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_TEXT = {"type": "string"}
_SCHEMAS: dict[str, Any] = {
    "text": _of(city={**_TEXT, "description": "A city."}),
    "no description": _of(city=_TEXT),
    "description null": _of(city={**_TEXT, "description": None}),
    "types": _of(city={"type": ["string", "null"]}),
    "types, deep": _of(where=_of(city={"type": ["string", "integer", "null"], "description": "A city."})),
    "types beside a choice": _of(city={"type": ["string", "null"], "anyOf": [{"maxLength": 3}, {"type": "null"}]}),
    "choice": _of(city={"anyOf": [_TEXT, {"type": "null"}], "default": None}),
    "one of": _of(city={"oneOf": [_TEXT, {"type": "integer"}]}),
    "all of": _of(city={"allOf": [_TEXT, {"maxLength": 9}]}),
    "enum": _of(city={"enum": ["Oslo", "Rome", None, 5]}),
    "enum of texts": _of(city={"type": "string", "enum": ["Oslo", "Rome"], "default": "Oslo"}),
    "constant": _of(city={"const": "Oslo"}),
    "reference": {**_of(city={"$ref": "#/$defs/city"}), "$defs": {"city": _TEXT}},
    "list": _of(cities={"type": "array", "items": _TEXT}),
    "list of anything": _of(cities={"type": "array"}),
    "list of objects": _of(cities={"type": "array", "items": _of(city=_TEXT)}),
    "object": _of(where={"type": "object"}),
    "map": _of(where={"type": "object", "additionalProperties": {"type": "integer"}}),
    "closed": {**_of(where={**_of(city=_TEXT), "additionalProperties": False}), "additionalProperties": False},
    "anything": _of(city={}),
    "boolean": _of(city=True),
    "no property": {"type": "object", "properties": {}},
    "no properties": {"type": "object"},
    "nothing": {},
    "null": None,
    "nothing required": {"type": "object", "properties": {"city": _TEXT}},
    "numbers": _of(days={"type": "integer", "minimum": 1, "maximum": 5}, share={"type": "number", "multipleOf": 0.5}),
    "pattern": _of(city={"type": "string", "pattern": '^"[a-z]+"$', "minLength": 1}),
}

TOOLS: dict[str, list[dict[str, Any]]] = {name: [_tool(schema)] for name, schema in _SCHEMAS.items()}
"""Tools of a conversation, by their schemas."""

TOOLS |= {
    "no description of the tool": [{"type": "function", "function": {"name": "weather"}}],
    "description of the tool null": [_tool(_SCHEMAS["text"], description=None)],
    "strict": [_tool(_SCHEMAS["text"], strict=True)],
    "several": [
        _tool(schema, name=f"weather_{number}") for number, schema in enumerate(_SCHEMAS.values()) if schema is not None
    ],
}


def words(conversation: Conversation) -> set[str]:
    """The words of a conversation that a prompt must show: all but thoughts, and text in front of calls."""
    said = json.dumps([{**message, "reasoning_content": ""} for message in conversation])
    return {word for word in ("word-user", "word-system", "word-more", "word-answer", "word-result") if word in said}
