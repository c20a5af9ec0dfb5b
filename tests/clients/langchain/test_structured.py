"""``with_structured_output``: every method, strict and not, of every kind of schema."""

from __future__ import annotations

import asyncio  # noqa: TC003
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import openai
import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI


class Joke(BaseModel):
    """Joke to tell user."""

    setup: str = Field(description="The setup of the joke", max_length=40)
    punchline: str = Field(description="The punchline to the joke", max_length=40)
    rating: Optional[int] = Field(default=None, description="How funny it is, from 1 to 10")  # noqa: UP045


class Movie(TypedDict):
    """A movie."""

    title: Annotated[str, ..., "The title"]
    year: Annotated[int, ..., "The year"]


class Step(BaseModel):
    explanation: str = Field(max_length=30)
    output: str = Field(max_length=10)


class Solution(BaseModel):
    """The solution of a task."""

    steps: list[Step] = Field(max_length=2)
    answer: Literal["yes", "no"]


class Message(BaseModel):
    """An answer in words."""

    words: str = Field(max_length=30)


class Reply(BaseModel):
    """Either of two."""

    final: Joke | Message


class Person(BaseModel):
    name: str = Field(max_length=20)
    boss: Person | None = None


SCHEMA = {
    "title": "person",
    "description": "A person.",
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The name", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
}

OPENAI_FUNCTION = {
    "name": "person",
    "description": "A person.",
    "parameters": {**SCHEMA, "additionalProperties": False},
}

STRICT = pytest.mark.parametrize("strict", [None, True, False])
METHOD = pytest.mark.parametrize("method", ["json_schema", "function_calling"])

ASK = "Tell me a joke about cats"


@STRICT
@METHOD
@pytest.mark.parametrize("schema", [Joke, Solution, Reply], ids=lambda schema: schema.__name__)
def test_a_class_gives_an_instance(model: ChatOpenAI, method: Any, schema: Any, *, strict: bool | None) -> None:
    structured = model.with_structured_output(schema, method=method, strict=strict)
    assert isinstance(structured.invoke(ASK), schema)


@STRICT
@METHOD
@pytest.mark.parametrize("schema", [Movie, SCHEMA, OPENAI_FUNCTION], ids=["TypedDict", "schema", "function"])
def test_what_is_no_class_gives_a_dictionary(
    model: ChatOpenAI, method: Any, schema: Any, *, strict: bool | None, request: pytest.FixtureRequest
) -> None:
    if strict and schema is SCHEMA and "json_schema" not in request.node.name.replace("-schema", ""):
        schema = {**SCHEMA, "additionalProperties": False}
    answer = model.with_structured_output(schema, method=method, strict=strict).invoke(ASK)
    assert set(answer) == ({"title", "year"} if schema is Movie else {"name", "age"})


def test_recursive_classes_are_answered(model: ChatOpenAI) -> None:
    assert isinstance(model.with_structured_output(Person).invoke("Ada's boss is Bo."), Person)


@METHOD
def test_the_raw_message_comes_with_it(model: ChatOpenAI, method: Any) -> None:
    answer = model.with_structured_output(Joke, method=method, include_raw=True).invoke(ASK)
    assert isinstance(answer["parsed"], Joke)
    assert answer["parsing_error"] is None
    assert answer["raw"].usage_metadata["total_tokens"] > 0


def test_json_mode_is_a_json_object(model: ChatOpenAI) -> None:
    """Which, only the prompt says."""
    structured = model.with_structured_output(None, method="json_mode")
    assert isinstance(structured.invoke("Answer in JSON with a `setup` and a `punchline` key: a joke."), dict)


def test_json_mode_with_a_class_says_what_does_not_fit(model: ChatOpenAI) -> None:
    structured = model.with_structured_output(Joke, method="json_mode", include_raw=True)
    answer = structured.invoke("Answer in JSON with a `setup` and a `punchline` key: a joke.")
    assert isinstance(json.loads(answer["raw"].text), dict)
    assert isinstance(answer["parsed"], Joke) != isinstance(answer["parsing_error"], OutputParserException)


@METHOD
def test_structured_output_is_streamed(model: ChatOpenAI, method: Any) -> None:
    parts = list(model.with_structured_output(Movie, method=method).stream("Name a movie"))
    assert set(parts[-1]) == {"title", "year"}


@METHOD
def test_instances_are_streamed(model: ChatOpenAI, method: Any) -> None:
    assert isinstance(list(model.with_structured_output(Joke, method=method).stream(ASK))[-1], Joke)


@METHOD
def test_asynchronous_code_is_answered(model: ChatOpenAI, method: Any, loop: asyncio.AbstractEventLoop) -> None:
    structured = model.with_structured_output(Joke, method=method)
    assert isinstance(loop.run_until_complete(structured.ainvoke(ASK)), Joke)


def test_chains_with_prompts_are_answered(model: ChatOpenAI) -> None:
    prompt = ChatPromptTemplate.from_messages([("system", "You are {mood}."), ("human", "{input}")])
    chain = prompt | model.with_structured_output(Joke)
    assert isinstance(chain.invoke({"mood": "funny", "input": ASK}), Joke)


def test_examples_as_calls_go_before(model: ChatOpenAI) -> None:
    examples: list[Any] = [
        ("human", "A joke about planes"),
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "Joke", "arguments": '{"setup": "Planes?", "punchline": "Gone."}'},
                }
            ],
        },
        {"role": "tool", "content": "", "tool_call_id": "call_1"},
        ("human", ASK),
    ]
    assert isinstance(model.with_structured_output(Joke, method="function_calling").invoke(examples), Joke)


def test_batches_are_answered(model: ChatOpenAI) -> None:
    answers = model.with_structured_output(Joke).batch(["cats", "dogs", "owls"], {"max_concurrency": 3})
    assert all(isinstance(answer, Joke) for answer in answers)


def test_a_response_format_may_be_bound(chat: ChatOpenAI) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
    answer = chat.bind(response_format=form).invoke("Ada is 36")
    assert set(json.loads(answer.text)) == {"name", "age"}
    assert set((chat.bind(response_format={"type": "json_object"}) | JsonOutputParser()).invoke("JSON!")) is not None


def test_parsers_read_what_is_enforced(chat: ChatOpenAI) -> None:
    parser = PydanticOutputParser(pydantic_object=Joke)
    form = {"type": "json_schema", "json_schema": {"name": "joke", "schema": Joke.model_json_schema()}}
    prompt = ChatPromptTemplate.from_template("{instructions}\n{input}").partial(
        instructions=parser.get_format_instructions()
    )
    assert isinstance((prompt | chat.bind(response_format=form) | parser).invoke({"input": ASK}), Joke)


def test_a_schema_that_breaks_strict_rules_is_refused(model: ChatOpenAI) -> None:
    """Open objects are a mistake where ``strict`` is true; the client sends a schema in a dict as it is."""
    form = {
        "type": "json_schema",
        "name": "person",
        "json_schema": {"name": "person", "schema": SCHEMA, "strict": True},
    }
    with pytest.raises(openai.BadRequestError, match="additionalProperties"):
        model.bind(response_format=form).invoke("Ada is 36")


def test_too_few_tokens_for_any_answer_are_refused(model: ChatOpenAI) -> None:
    few = model.model_copy(update={"max_tokens": 1})
    with pytest.raises(openai.BadRequestError, match="enough"):
        few.with_structured_output(Solution).invoke(ASK)
