"""Random answers of a model that has tools, and what must be true of their calls."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import constrain
from constrain.chat.answers.choices import Calls, CustomCalls, FunctionCalls
from constrain.chat.answers.language import AnswerLanguage
from tests.support import Tokens, allowed, small_vocabulary
from tests.support.chat.parsed import ParsedAnswer
from tests.support.judging import require_valid

WALKS = 12
"""Walks for each form and mode."""


SCHEMAS: dict[str, Any] = {
    "get_weather": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 12},
            "unit": {"enum": ["c", "f", None]},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["city"],
    },
    "get": {
        "type": "object",
        "properties": {
            "deep": {"type": "array", "items": {"type": ["boolean", "null", "string"]}, "maxItems": 3},
            "at": {"$ref": "#/$defs/point"},
        },
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
    },
    "now": {"type": "object", "properties": {}},
}


TOOLS = (
    *(FunctionCalls(name, json.dumps(schema)) for name, schema in SCHEMAS.items()),
    CustomCalls("note"),
    CustomCalls("plate", constrain.Regex(r'"?[A-Z\\]{1,3}\n?[0-9]+')),
)


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["age"]}
"""Of content beside calls."""


MODES: dict[str, dict[str, Any]] = {
    "auto": {},
    "required": {"calls": Calls.REQUIRED},
    "named": {"calls": Calls.REQUIRED, "allowed": ("get_weather",), "parallel": False},
    "allowed": {"allowed": ("get", "note")},
    "none": {"calls": Calls.NONE},
    "one": {"parallel": False},
}


VOCABULARY = small_vocabulary(6)
TOKENS = Tokens(VOCABULARY)


def walked(answer: AnswerLanguage, seed: int, leads: tuple[bytes, ...] = (b"",), *, count: int = WALKS) -> list[bytes]:
    """Random answers that begin with the leads: what is forced, random tokens and steps towards the end, in turns."""
    constraint = constrain.compile(answer, VOCABULARY, cache=False)
    return [walk(constraint, Random(f"{seed} {index}"), leads[index % len(leads)]) for index in range(count)]


def walk(constraint: constrain.Constraint, rng: Random, lead: bytes, most: int = 80) -> bytes:
    matcher, row, text, end = constraint.matcher(), constraint.allocate_bitmask()[0], lead, VOCABULARY.eos[0]
    assert matcher.accept_many(list(TOKENS.split(lead))) == len(list(TOKENS.split(lead))), lead
    for _ in range(most):
        forced = matcher.forced_bytes()
        if not forced and rng.random() < 0.4:
            forced = bytes(matcher.shortest_completion())[: rng.randint(1, 4)]
        for token in TOKENS.split(forced):
            assert matcher.accept(token), (text, forced)
            text += VOCABULARY.token_bytes(token)
        if forced:
            continue
        token = int(rng.choice(allowed(matcher, row)))
        assert matcher.accept(token), (text, token)
        if token == end:
            return text
        text += VOCABULARY.token_bytes(token)
    for token in TOKENS.split(bytes(matcher.shortest_completion())):
        assert matcher.accept(token), text
        text += VOCABULARY.token_bytes(token)
    assert matcher.is_accepting, text
    return text


def assert_calls_hold(answer: AnswerLanguage, parsed: ParsedAnswer) -> None:
    """All calls are ended, of tools that may be called, with valid values."""
    tools = {answer.tools[index].name: answer.tools[index] for index in answer.callable_tools()}
    for call in parsed.calls:
        assert call.ended
        tool = tools[call.name]
        if isinstance(tool, FunctionCalls):
            assert call.arguments is not None
            require_valid(json.loads(tool.parameters), call.arguments)
        else:
            assert call.input is not None
            if tool.input is not None:
                assert constrain.compile(tool.input, VOCABULARY).accepts(call.input)
