"""Agents whose answer is a value: of a Pydantic model, a dataclass, a ``TypedDict`` or anything else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest
from agents import Agent, AgentOutputSchema, Model, Runner
from pydantic import BaseModel, Field
from samples import PROMPT, Person, settings, wait
from typing_extensions import TypedDict


@dataclass
class Point:
    x: int
    label: Literal["a", "b"]


class Pair(TypedDict):
    left: bool
    right: Literal["up", "down"]


class Side(Enum):
    LEFT = "left"
    RIGHT = "right"


class Nested(BaseModel):
    people: list[Person] = Field(min_length=1, max_length=2)
    side: Side
    note: Literal["x", "y"] | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    is_good: bool


class Owner(BaseModel):
    pet: Cat | Dog


class Open(BaseModel):
    """Not for strict mode: its keys are not known."""

    scores: dict[str, bool] = Field(max_length=2)


def run(agent: Agent[Any], given: Any = PROMPT) -> Any:
    return wait(Runner.run(agent, given)).final_output


def typed(model: Model, output_type: Any) -> Agent[Any]:
    return Agent(name="typed", model=model, output_type=output_type, model_settings=settings(max_tokens=200))


@pytest.mark.parametrize("wanted", [Person, Nested, Owner, Point], ids=lambda wanted: wanted.__name__)
def test_objects(model: Model, wanted: type) -> None:
    assert isinstance(run(typed(model, wanted)), wanted)


def test_a_typed_dict(model: Model) -> None:
    value = run(typed(model, Pair))
    assert isinstance(value["left"], bool)
    assert value["right"] in ("up", "down")


WRAPPED: dict[str, Any] = {
    "a list": list[Literal["a", "b"]],
    "a number": int,
    "a truth value": bool,
    "a choice": Literal["yes", "no"],
    "several": Person | Point,
}


@pytest.mark.parametrize("name", WRAPPED)
def test_what_is_no_object_is_wrapped(model: Model, name: str) -> None:
    wanted = WRAPPED[name]
    if name == "a list":
        value = run(typed(model, wanted))
        assert set(value) <= {"a", "b"}
    else:
        value = run(typed(model, wanted))
        kinds = {"a number": int, "a truth value": bool, "a choice": str, "several": (Person, Point)}
        assert isinstance(value, kinds[name])  # type: ignore[arg-type]


@pytest.mark.parametrize("wanted", [Person, Open, Nested], ids=lambda wanted: wanted.__name__)
def test_schemas_that_are_not_strict(model: Model, wanted: type) -> None:
    value = run(typed(model, AgentOutputSchema(wanted, strict_json_schema=False)))
    assert isinstance(value, wanted)


def test_a_list_that_is_not_strict(model: Model) -> None:
    value = run(typed(model, AgentOutputSchema(list[Literal[1, 2]], strict_json_schema=False)))
    assert set(value) <= {1, 2}


def test_a_stream(model: Model) -> None:
    async def work() -> tuple[str, Any]:
        result = Runner.run_streamed(typed(model, Person), PROMPT)
        text = ""
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                text += event.data.delta
        return text, result.final_output

    text, value = wait(work())
    assert isinstance(value, Person)
    assert Person.model_validate_json(text) == value


def test_a_value_at_every_heat(model: Model) -> None:
    agent = typed(model, Person)
    agent.model_settings = settings(temperature=1.8, max_tokens=60)
    assert isinstance(run(agent), Person)
