"""The server's address, types, tools and questions that the adapters of all clients in Python use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

MODEL = os.environ["CONSTRAIN_MODEL"]
KEY = os.environ["OPENAI_API_KEY"]
URL = os.environ["OPENAI_BASE_URL"]
ROOT = os.environ["ANTHROPIC_BASE_URL"]

SECONDS = 240.0

MAX_TOKENS = 100
"""Enough for every value and call; the server ends each within it."""

PROMPT = "Tell me of Emma, aged 21."
SUM = "What is 2+2?"
QUESTION = "What will the weather be in Rome?"


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=150)
    mood: Literal["good", "bad"]


class Step(BaseModel):
    words: str = Field(max_length=12)
    minutes: int = Field(ge=1, le=9)


class Plan(BaseModel):
    """A plan."""

    steps: list[Step] = Field(min_length=1, max_length=2)
    done: bool


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    is_good: bool


class Owner(BaseModel):
    """Has one of two pets."""

    pet: Cat | Dog


class Tree(BaseModel):
    """A tree."""

    label: Literal["a", "b"]
    children: list[Tree] = Field(max_length=2)


class Never(BaseModel):
    """Nothing matches, for a reason that every client sends; some leave out ``pattern``."""

    word: str = Field(json_schema_extra={"allOf": [{"const": "a"}, {"const": "b"}]})


KINDS = (Person, Plan, Owner, Tree)


class Weather(BaseModel):
    """The arguments of ``weather``."""

    city: Literal["Oslo", "Rome"]
    days: int = Field(ge=1, le=9)


class Note(BaseModel):
    """The arguments of ``note``."""

    word: str = Field(max_length=8)


ARGUMENTS = {"weather": Weather, "note": Note}


def weather(city: Literal["Oslo", "Rome"], days: Annotated[int, Field(ge=1, le=9)]) -> str:
    """Tells the weather of the next days."""
    return f"sun in {city} for {days} day(s)"


def note(word: Annotated[str, Field(max_length=8)]) -> str:
    """Notes a word."""
    return f"noted {word}"


FUNCTIONS: list[Any] = [
    {"name": name, "description": f"Calls {name}.", "parameters": kind.model_json_schema()}
    for name, kind in ARGUMENTS.items()
]
TOOLS: list[Any] = [{"type": "function", "function": function} for function in FUNCTIONS]
"""As chat completions have them."""


@dataclass(frozen=True)
class Call:
    """A call of a tool, as a client has read it."""

    id: str
    name: str
    arguments: dict[str, Any]


def choice_of(choice: str) -> Any:
    """A ``tool_choice`` of chat completions: the name of a tool as an object, another word as it is."""
    return {"type": "function", "function": {"name": choice}} if choice in ARGUMENTS else choice
