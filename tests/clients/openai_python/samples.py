"""Messages, schemas and tools that several tests use."""

from __future__ import annotations

from typing import Any, Literal

import openai
from pydantic import BaseModel, Field

MESSAGES: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Tell me of Emma, aged 21."}]
PROMPT = "Tell me of Emma, aged 21."


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)
    mood: Literal["good", "bad"]


class Move(BaseModel):
    """Moves a piece."""

    to: Literal["left", "right"]
    steps: int = Field(ge=1, le=9)


class Say(BaseModel):
    """Says a word."""

    word: str = Field(pattern="^[a-z]{1,8}$")


MOVE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"to": {"enum": ["left", "right"], "type": "string"}, "steps": {"type": "integer", "maximum": 9}},
    "required": ["to", "steps"],
    "additionalProperties": False,
}
OPEN_SCHEMA: dict[str, Any] = {
    "title": "Person",
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12, "title": "Name"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 7},
    },
    "required": ["name", "age"],
}
"""As instructor and others write them: with titles and defaults, and not closed."""

MOVE: Any = openai.pydantic_function_tool(Move)
SAY: Any = openai.pydantic_function_tool(Say)


def function(name: str, parameters: dict[str, Any] | None = None, **members: Any) -> Any:
    """A function for chat completions."""
    given = {} if parameters is None else {"parameters": parameters}
    return {"type": "function", "function": {"name": name, **given, **members}}


def custom(name: str, syntax: str, definition: str) -> Any:
    """A custom tool for chat completions."""
    grammar = {"syntax": syntax, "definition": definition}
    return {
        "type": "custom",
        "custom": {"name": name, "description": "Takes a text.", "format": {"type": "grammar", "grammar": grammar}},
    }


def flat_function(name: str, parameters: dict[str, Any], **members: Any) -> Any:
    """A function for responses."""
    return {"type": "function", "name": name, "parameters": parameters, **members}


def flat_custom(name: str, syntax: str, definition: str) -> Any:
    """A custom tool for responses."""
    return {
        "type": "custom",
        "name": name,
        "description": "Takes a text.",
        "format": {"type": "grammar", "syntax": syntax, "definition": definition},
    }


def json_schema(schema: dict[str, Any], *, strict: bool | None = None, **members: Any) -> Any:
    """A ``response_format``."""
    given = {} if strict is None else {"strict": strict}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, **given, **members}}


def text_format(schema: dict[str, Any], *, strict: bool | None = None) -> Any:
    """A ``text`` for responses."""
    given = {} if strict is None else {"strict": strict}
    return {"format": {"type": "json_schema", "name": "answer", "schema": schema, **given}}
