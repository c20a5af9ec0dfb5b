"""Output types of agents, by tools, natively, and by prompt."""

from __future__ import annotations

from datetime import date, timedelta  # noqa: TC003 - pydantic reads the annotations
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass
from pydantic_ai import Agent, NativeOutput, PromptedOutput, StructuredDict, TextOutput, ToolOutput
from pydantic_ai.exceptions import UnexpectedModelBehavior
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

    AnyModel = OpenAIChatModel | OpenAIResponsesModel


class City(BaseModel):
    """A city."""

    city: str = Field(max_length=30)
    country: str = Field(max_length=30)


class Fruit(BaseModel):
    name: str = Field(max_length=20)
    colour: Literal["red", "green", "yellow"]


class Vehicle(BaseModel):
    name: str = Field(max_length=20)
    wheels: int = Field(ge=0, le=18)


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class Person(BaseModel):
    name: str = Field(max_length=20)
    born: date | None = None
    level: Level = Level.LOW
    tags: list[str] = Field(default_factory=list, max_length=2)


class Node(BaseModel):
    """A tree."""

    label: str = Field(max_length=8)
    children: list[Node] = Field(default_factory=list, max_length=2)


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    lap: timedelta
    scores: dict[str, int] = Field(max_length=2)


class Point(TypedDict):
    x: int
    y: int


@dataclass
class Box:
    name: Annotated[str, Field(max_length=20)]
    size: Annotated[float, Field(ge=0, le=100)]


SHAPES = [City, Person, Node, Closed, Point, Box, Level]

PLAIN = [
    bool,
    int,
    Annotated[float, Field(ge=0, le=1)],
    Literal["yes", "no"],
    list[int],
    list[Fruit],
    dict[str, int],
    Annotated[list[str], Field(min_length=1, max_length=2)],
    tuple[int, bool],
]

ASK = "The windy city in the US of A, in one word."


def answer(model: AnyModel, output_type: Any) -> Any:
    return Agent(model, output_type=output_type, retries=0).run_sync(ASK).output


@pytest.mark.parametrize("mode", [ToolOutput, NativeOutput], ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_an_output_is_of_its_type(model: AnyModel, mode: Any, shape: Any) -> None:
    TypeAdapter(shape).validate_python(answer(model, mode(shape)), from_attributes=True)


@pytest.mark.parametrize("shape", PLAIN, ids=str)
def test_an_output_need_be_no_object(model: AnyModel, shape: Any) -> None:
    TypeAdapter(shape).validate_python(answer(model, shape))


@pytest.mark.parametrize("mode", [ToolOutput, NativeOutput], ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("strict", [True, False])
def test_strict_is_taken_both_ways(model: AnyModel, mode: Any, *, strict: bool) -> None:
    assert isinstance(answer(model, mode(City, strict=strict)), City)


def test_a_union_is_one_tool_for_each_type(model: AnyModel) -> None:
    assert isinstance(answer(model, Fruit | Vehicle), Fruit | Vehicle)


def test_a_list_of_types_is_one_tool_for_each(model: AnyModel) -> None:
    outputs = [ToolOutput(Fruit, name="return_fruit", description="Returns a fruit."), ToolOutput(Vehicle)]
    assert isinstance(answer(model, outputs), Fruit | Vehicle)


def test_native_output_may_be_of_several_types(model: AnyModel) -> None:
    output_type = NativeOutput([Fruit, Vehicle], name="Fruit_or_vehicle", description="A fruit or a vehicle.")
    assert isinstance(answer(model, output_type), Fruit | Vehicle)


def test_native_output_may_be_shown_in_the_prompt(model: AnyModel) -> None:
    assert isinstance(answer(model, NativeOutput(City, template="As JSON of {schema}")), City)


def test_text_or_a_tool_may_come(model: AnyModel) -> None:
    assert isinstance(answer(model, [City, str]), City | str)


def test_nothing_may_come(model: AnyModel) -> None:
    assert isinstance(answer(model, [City, None]), City | None)


def test_an_output_may_be_a_function(model: AnyModel) -> None:
    def both(city: Annotated[str, Field(max_length=20)], size: Annotated[int, Field(ge=0, le=9)]) -> tuple[str, int]:
        """Takes a city and its size."""
        return city, size

    city, size = answer(model, both)
    assert len(city) <= 20
    assert 0 <= size <= 9


def test_an_output_may_be_made_of_the_text(model: AnyModel) -> None:
    def words(text: str) -> list[str]:
        return text.split()

    assert answer(model, TextOutput(words))


def test_an_output_may_be_a_schema(model: AnyModel) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name", "age"],
    }
    assert set(answer(model, StructuredDict(schema, name="Human", description="A human"))) == {"name", "age"}


def test_prompted_output_is_a_json_object(model: AnyModel) -> None:
    """Which, the request does not say; pydantic-ai looks afterwards."""
    agent = Agent(model, output_type=PromptedOutput(City), retries=0)
    try:
        assert isinstance(agent.run_sync(ASK).output, City)
    except UnexpectedModelBehavior as error:
        assert "output" in str(error)  # noqa: PT017 - either is right


def test_prompted_output_may_have_its_own_words(model: AnyModel) -> None:
    class Anything(BaseModel):
        model_config = ConfigDict(extra="allow")

    agent = Agent(model, output_type=PromptedOutput([Anything], template="Some JSON: {schema}"), retries=0)
    assert isinstance(agent.run_sync(ASK).output, Anything)
