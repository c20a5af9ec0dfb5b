"""Messages, schemas and tools that several tests use."""

from __future__ import annotations

from typing import Any, Literal

import jsonschema
from pydantic import BaseModel, Field

QUESTION: Any = [{"role": "user", "content": "Tell me of Emma, aged 21."}]


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)
    mood: Literal["good", "bad"]


PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
MOVE: Any = {
    "name": "move",
    "description": "Moves a piece.",
    "input_schema": {
        "type": "object",
        "properties": {"to": {"enum": ["left", "right"]}, "steps": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["to", "steps"],
        "additionalProperties": False,
    },
}
WAIT: Any = {"name": "wait", "input_schema": {"type": "object", "properties": {}}}
TOOLS: Any = [MOVE, WAIT]
SCHEMAS = {tool["name"]: tool["input_schema"] for tool in TOOLS}


def calls_of(message: Any) -> list[Any]:
    """The calls of a message, each checked by its schema."""
    calls = [block for block in message.content if block.type == "tool_use"]
    for call in calls:
        jsonschema.validate(call.input, SCHEMAS[call.name])
    assert len({call.id for call in calls}) == len(calls)
    assert (message.stop_reason == "tool_use") is bool(calls)
    return calls
