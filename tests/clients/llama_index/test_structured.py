"""``structured_predict`` and structured models: with a format, with a call, and what is refused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import openai
import pytest
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.llms.openai_like import OpenAILike


class Person(BaseModel):
    """Who somebody is."""

    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)
    mood: Literal["good", "bad"]


class Step(BaseModel):
    words: str = Field(max_length=20)
    minutes: int = Field(ge=1, le=9)


class Plan(BaseModel):
    """A plan."""

    steps: list[Step] = Field(min_length=1, max_length=2)
    done: bool


class Never(BaseModel):
    """Nothing matches."""

    word: str = Field(json_schema_extra={"pattern": "(?=x)y"})


ASK = PromptTemplate("{name} is 36 years old. Who is it?")
KINDS = pytest.mark.parametrize("kind", [Person, Plan], ids=["limits", "nested"])


@pytest.fixture(params=[True, False], ids=["format", "call"])
def either(request: pytest.FixtureRequest, connect: Callable[..., OpenAILike]) -> OpenAILike:
    """The model by each of the two ways to an instance."""
    return connect(should_use_structured_outputs=request.param)


@KINDS
def test_an_instance_is_predicted(either: OpenAILike, kind: type[BaseModel]) -> None:
    assert isinstance(either.structured_predict(kind, ASK, name="Ada"), kind)


@KINDS
def test_a_structured_model_answers_with_an_instance(either: OpenAILike, kind: type[BaseModel]) -> None:
    answer = either.as_structured_llm(kind).chat([ChatMessage("Ada is 36 years old.")])
    assert isinstance(answer.raw, kind)
    kind.model_validate_json(answer.message.content or "")


def test_an_instance_is_predicted_in_asynchronous_code(either: OpenAILike) -> None:
    assert isinstance(asyncio.run(either.astructured_predict(Person, ASK, name="Ada")), Person)


def test_instances_are_streamed(llm: OpenAILike) -> None:
    """With a format: LlamaIndex does not find the calls of a stream, and returns empty instances."""
    parts: list[Any] = list(llm.stream_structured_predict(Person, ASK, name="Ada"))
    assert len(parts) > 1
    Person.model_validate(parts[-1].model_dump())


def test_a_schema_that_cannot_be_enforced_is_refused(either: OpenAILike) -> None:
    with pytest.raises(openai.BadRequestError, match="word"):
        either.structured_predict(Never, ASK, name="Ada")


def test_too_few_tokens_for_any_answer_are_refused(either: OpenAILike) -> None:
    few = either.model_copy(update={"max_tokens": 2})
    with pytest.raises(openai.BadRequestError, match="enough"):
        few.structured_predict(Person, ASK, name="Ada")
