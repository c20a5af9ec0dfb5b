"""``response_format`` by every provider: classes, schemas, streams, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import litellm
import pytest
from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from collections.abc import Callable


class Person(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)
    mood: Literal["good", "bad"]


class Step(BaseModel):
    words: str = Field(max_length=20)
    minutes: int = Field(ge=1, le=9)


class Plan(BaseModel):
    steps: list[Step] = Field(min_length=1, max_length=2)
    done: bool


MESSAGES = [{"role": "user", "content": "Ada is 36 years old. Who is she?"}]

REFUSED = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)y"}}, "required": ["a"]}
"""Nothing matches the pattern."""


def form(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def test_a_class_is_enforced(ask: Callable[..., Any]) -> None:
    Person.model_validate_json(ask(messages=MESSAGES, response_format=Person).choices[0].message.content)


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_a_nested_class_is_enforced(connect: Callable[[str], Callable[..., Any]], provider: str) -> None:
    Plan.model_validate_json(connect(provider)(messages=MESSAGES, response_format=Plan).choices[0].message.content)


def test_references_that_litellm_breaks_for_anthropic_are_refused(connect: Callable[[str], Callable[..., Any]]) -> None:
    """It makes a path of ``#/$defs/Step``, which leads nowhere."""
    with pytest.raises(litellm.BadRequestError, match=r"/\$defs/Step"):
        connect("anthropic")(messages=MESSAGES, response_format=Plan)


def test_a_schema_is_enforced(ask: Callable[..., Any]) -> None:
    answer = ask(messages=MESSAGES, response_format=form(Person.model_json_schema()))
    Person.model_validate_json(answer.choices[0].message.content)


def test_a_class_is_enforced_in_a_stream(ask: Callable[..., Any]) -> None:
    parts = ask(messages=MESSAGES, response_format=Person, stream=True)
    Person.model_validate_json("".join(part.choices[0].delta.content or "" for part in parts if part.choices))


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_any_object_may_be_asked_for(connect: Callable[[str], Callable[..., Any]], provider: str) -> None:
    """Not of Anthropic's API, which LiteLLM does not tell of it."""
    answer = connect(provider)(messages=MESSAGES, response_format={"type": "json_object"})
    assert isinstance(json.loads(answer.choices[0].message.content), dict)


def test_a_schema_that_cannot_be_enforced_is_refused(ask: Callable[..., Any]) -> None:
    with pytest.raises(litellm.BadRequestError, match=r"pattern|schema"):
        ask(messages=MESSAGES, response_format=form(REFUSED))


def test_too_few_tokens_for_any_answer_are_refused(ask: Callable[..., Any]) -> None:
    with pytest.raises(litellm.BadRequestError, match="enough"):
        ask(messages=MESSAGES, response_format=Person, max_tokens=2)
