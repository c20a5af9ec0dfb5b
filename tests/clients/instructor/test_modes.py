"""Every mode of instructor's OpenAI provider: what is asked for, and how the answer comes back."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest
from instructor import Mode
from instructor.core import InstructorError
from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from collections.abc import Callable

    from instructor import AsyncInstructor, Instructor

ENFORCED = [
    Mode.TOOLS,
    Mode.TOOLS_STRICT,
    Mode.FUNCTIONS,
    Mode.JSON_SCHEMA,
    Mode.JSON_O1,
    Mode.RESPONSES_TOOLS,
    Mode.RESPONSES_TOOLS_WITH_INBUILT_TOOLS,
]
"""The modes that send the schema where the server enforces it."""

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class User(BaseModel):
    name: str
    age: int


class Weather(BaseModel):
    """The weather somewhere."""

    city: str = Field(description="Where")
    celsius: int


ASK: list[Any] = [{"role": "user", "content": "Extract: Jason is 25 years old."}]


@pytest.mark.parametrize("mode", ENFORCED, ids=lambda mode: mode.name)
def test_an_answer_is_an_instance(connect: Callable[[Mode], Instructor], mode: Mode) -> None:
    user = connect(mode).create(response_model=User, messages=ASK, max_retries=0)
    assert isinstance(user, User)


@pytest.mark.parametrize("mode", ENFORCED, ids=lambda mode: mode.name)
def test_an_asynchronous_answer_is_an_instance(aconnect: Callable[[Mode], AsyncInstructor], mode: Mode) -> None:
    user = asyncio.run(aconnect(mode).create(response_model=User, messages=ASK, max_retries=0))
    assert isinstance(user, User)


@pytest.mark.parametrize("mode", ENFORCED, ids=lambda mode: mode.name)
def test_the_completion_comes_with_the_instance(connect: Callable[[Mode], Instructor], mode: Mode) -> None:
    user, completion = connect(mode).create_with_completion(response_model=User, messages=ASK, max_retries=0)
    assert isinstance(user, User)
    assert completion.usage.total_tokens > 0


@pytest.mark.parametrize("mode", ENFORCED, ids=lambda mode: mode.name)
def test_partial_instances_end_in_a_whole_one(connect: Callable[[Mode], Instructor], mode: Mode) -> None:
    parts = list(connect(mode).create_partial(response_model=User, messages=ASK, max_retries=0))
    assert User.model_validate(parts[-1].model_dump())


@pytest.mark.parametrize("mode", ENFORCED, ids=lambda mode: mode.name)
def test_asynchronous_partial_instances_end_in_a_whole_one(
    aconnect: Callable[[Mode], AsyncInstructor], mode: Mode
) -> None:
    async def read() -> list[User]:
        return [part async for part in aconnect(mode).create_partial(response_model=User, messages=ASK, max_retries=0)]

    assert User.model_validate(asyncio.run(read())[-1].model_dump())


@pytest.mark.parametrize("mode", ENFORCED, ids=lambda mode: mode.name)
def test_a_stream_of_several_is_of_instances(connect: Callable[[Mode], Instructor], mode: Mode) -> None:
    users = list(connect(mode).create_iterable(response_model=User, messages=ASK, max_retries=0))
    assert all(isinstance(user, User) for user in users)


@pytest.mark.parametrize("mode", ENFORCED, ids=lambda mode: mode.name)
def test_an_asynchronous_stream_of_several_is_of_instances(
    aconnect: Callable[[Mode], AsyncInstructor], mode: Mode
) -> None:
    async def read() -> list[User]:
        return [user async for user in aconnect(mode).create_iterable(response_model=User, messages=ASK, max_retries=0)]

    assert all(isinstance(user, User) for user in asyncio.run(read()))


def test_tools_in_strict_mode_are_taken(connect: Callable[[Mode], Instructor]) -> None:
    class Closed(BaseModel, extra="forbid"):
        name: str
        age: int

    client = connect(Mode.TOOLS_STRICT)
    assert isinstance(client.create(response_model=Closed, messages=ASK, max_retries=0, strict=True), Closed)


def test_json_mode_is_a_json_object(connect: Callable[[Mode], Instructor]) -> None:
    """The schema is in the prompt only: any object may come."""
    client, answers = connect(Mode.JSON), []
    client.on("completion:response", answers.append)
    with contextlib.suppress(InstructorError):
        assert isinstance(client.create(response_model=User, messages=ASK, max_retries=0), User)
    assert isinstance(json.loads(answers[0].choices[0].message.content), dict)


def test_json_mode_streams_a_json_object(connect: Callable[[Mode], Instructor]) -> None:
    chunks = list(
        connect(Mode.JSON).create(
            response_model=None, messages=ASK, stream=True, response_format={"type": "json_object"}, max_retries=0
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert isinstance(json.loads(text), dict)


def test_json_mode_with_a_schema_beside_it_is_enforced(connect: Callable[[Mode], Instructor]) -> None:
    """As local servers take it: response_format {"type": "json_object", "schema": ...}."""
    completion = connect(Mode.JSON).create(
        response_model=None,
        messages=ASK,
        response_format={"type": "json_object", "schema": User.model_json_schema()},
        max_retries=0,
    )
    assert User.model_validate_json(completion.choices[0].message.content)


def test_markdown_mode_is_any_text(connect: Callable[[Mode], Instructor]) -> None:
    """Nothing about JSON is said in the request: what comes is an instance, or a reason why not."""
    client, answers = connect(Mode.MD_JSON), []
    client.on("completion:response", answers.append)
    with contextlib.suppress(InstructorError):
        assert isinstance(client.create(response_model=User, messages=ASK, max_retries=0), User)
    assert answers[0].choices[0].message.content


def test_markdown_mode_with_a_response_format_is_enforced(connect: Callable[[Mode], Instructor]) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "User", "schema": User.model_json_schema()}}
    client = connect(Mode.MD_JSON)
    assert isinstance(client.create(response_model=User, messages=ASK, max_retries=0, response_format=form), User)


PARALLEL = pytest.mark.parametrize("mode", [Mode.TOOLS, Mode.PARALLEL_TOOLS], ids=lambda mode: mode.name)

BOTH: list[Any] = [
    {"role": "system", "content": "You must always use tools"},
    {"role": "user", "content": "Jason is 25. It is 20 degrees in Oslo."},
]


@PARALLEL
def test_parallel_calls_are_instances(connect: Callable[[Mode], Instructor], mode: Mode) -> None:
    """instructor leaves it to the model whether it calls; the request says in so many words that it must."""
    options: Any = {"messages": BOTH, "max_retries": 0, "extra_body": {"tool_choice": "required"}}
    found = list(connect(mode).create(response_model=Iterable[User | Weather], **options))
    assert found
    assert all(isinstance(each, User | Weather) for each in found)


@PARALLEL
def test_the_model_may_call_nothing(connect: Callable[[Mode], Instructor], mode: Mode) -> None:
    """Words instead of calls are nothing that instructor can read."""
    client, answers = connect(mode), []
    client.on("completion:response", answers.append)
    try:
        found = list(client.create(response_model=Iterable[User | Weather], messages=BOTH, max_retries=0))
    except (InstructorError, TypeError):
        assert answers[0].choices[0].message.tool_calls is None
    else:
        assert all(isinstance(each, User | Weather) for each in found)


@pytest.mark.parametrize("mode", [Mode.TOOLS, Mode.RESPONSES_TOOLS], ids=lambda mode: mode.name)
def test_without_a_model_the_answer_is_the_completion(connect: Callable[[Mode], Instructor], mode: Mode) -> None:
    answer = connect(mode).create(response_model=None, messages=ASK, max_retries=0)
    assert answer.object in ("chat.completion", "response")
    assert answer.usage.total_tokens > 0
