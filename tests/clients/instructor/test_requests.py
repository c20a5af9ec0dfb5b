"""What requests carry beside the response model: messages, options, hooks, and questions asked again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import instructor
import openai
import pytest
from instructor import Mode, Partial, llm_validator
from instructor.core import InstructorRetryException
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
)
from tenacity import Retrying, stop_after_attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from instructor import AsyncInstructor, Instructor

ASK: list[Any] = [{"role": "user", "content": "Extract: Jason is 25 years old."}]

ENFORCED = pytest.mark.parametrize(
    "mode", [Mode.TOOLS, Mode.JSON_SCHEMA, Mode.JSON, Mode.RESPONSES_TOOLS], ids=lambda mode: mode.name
)


class User(BaseModel):
    name: str = Field(max_length=20)
    age: int


def refuse(value: Any) -> Any:
    message = f"{value!r} is not what was meant"
    raise ValueError(message)


class Refused(BaseModel):
    name: Annotated[str, Field(max_length=20), AfterValidator(refuse)]


@ENFORCED
def test_what_a_validator_refuses_is_asked_for_again(connect: Callable[[Mode], Instructor], mode: Mode) -> None:
    client, asked = connect(mode), []
    client.on("completion:kwargs", lambda **options: asked.append(options))
    with pytest.raises(InstructorRetryException) as caught:
        client.create(response_model=Refused, messages=list(ASK), max_retries=1)
    assert caught.value.n_attempts == len(asked) == 2


def test_a_second_answer_may_be_the_right_one(client: Instructor) -> None:
    seen = []

    class Second(BaseModel):
        name: str = Field(max_length=20)

        @field_validator("name")
        @classmethod
        def not_the_first(cls, value: str) -> str:
            seen.append(value)
            if len(seen) == 1:
                raise ValueError("Name must be in upper case")
            return value

    assert isinstance(client.create(response_model=Second, messages=list(ASK), max_retries=2), Second)
    assert len(seen) == 2


def test_asynchronous_code_asks_again_too(aconnect: Callable[[Mode], AsyncInstructor]) -> None:
    with pytest.raises(InstructorRetryException) as caught:
        asyncio.run(aconnect(Mode.TOOLS).create(response_model=Refused, messages=list(ASK), max_retries=1))
    assert caught.value.n_attempts == 2


def test_retries_may_be_those_of_tenacity(client: Instructor) -> None:
    with pytest.raises(InstructorRetryException):
        client.create(response_model=Refused, messages=list(ASK), max_retries=Retrying(stop=stop_after_attempt(2)))


def test_validators_see_the_context(client: Instructor) -> None:
    contexts = []

    class Seen(BaseModel):
        name: str = Field(max_length=20)

        @field_validator("name")
        @classmethod
        def look(cls, value: str, info: ValidationInfo) -> str:
            contexts.append(info.context)
            return value

    client.create(response_model=Seen, messages=ASK, context={"banned": ["x"]}, max_retries=0)
    assert {"banned": ["x"]} in contexts


def test_messages_are_templates(client: Instructor) -> None:
    asked: list[dict[str, Any]] = []
    client.on("completion:kwargs", lambda **options: asked.append(options))
    client.create(
        response_model=User,
        messages=[{"role": "user", "content": "Extract: {{ text }}"}],
        context={"text": "Ada is 36"},
        max_retries=0,
    )
    assert asked[0]["messages"][-1]["content"] == "Extract: Ada is 36"


def test_conversations_have_many_roles(client: Instructor) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "You extract users."},
        {"role": "user", "content": [{"type": "text", "text": "Ada is 36."}]},
        {"role": "assistant", "content": "Who else?"},
        {"role": "user", "content": "Bo is 7."},
    ]
    assert isinstance(client.create(response_model=User, messages=messages, max_retries=0), User)


def test_options_go_with_the_request(client: Instructor) -> None:
    user = client.create(
        response_model=User,
        messages=ASK,
        max_retries=0,
        temperature=0.0,
        top_p=0.9,
        seed=1,
        presence_penalty=0.5,
        frequency_penalty=0.5,
        user="somebody",
        metadata={"a": "b"},
        stop=["\n\n\n\n"],
        parallel_tool_calls=False,
    )
    assert isinstance(user, User)


def test_equal_seeds_give_equal_answers_at_temperature_zero(client: Instructor) -> None:
    users = [client.create(response_model=User, messages=ASK, max_retries=0, temperature=0, seed=5) for _ in range(2)]
    assert users[0].model_dump() == users[1].model_dump()


def test_hooks_hear_of_requests_and_answers(client: Instructor) -> None:
    heard = []
    client.on("completion:kwargs", lambda **_: heard.append("kwargs"))
    client.on("completion:response", lambda _: heard.append("response"))
    client.create(response_model=User, messages=ASK, max_retries=0)
    assert heard == ["kwargs", "response"]


def test_hooks_hear_of_answers_that_do_not_validate(client: Instructor) -> None:
    heard: list[Exception] = []
    client.on("parse:error", heard.append)
    with pytest.raises(InstructorRetryException):
        client.create(response_model=Refused, messages=list(ASK), max_retries=0)
    assert isinstance(heard[0], ValidationError)


def test_a_request_that_cannot_be_answered_is_a_bad_request(client: Instructor) -> None:
    """Too few tokens for any answer: the message names a number that is enough."""
    heard: list[Exception] = []
    client.on("completion:error", heard.append)
    with pytest.raises((InstructorRetryException, openai.BadRequestError), match="enough"):
        client.create(response_model=User, messages=ASK, max_retries=0, max_tokens=1)
    assert isinstance(heard[0], openai.BadRequestError)


def test_usage_is_of_all_attempts(client: Instructor) -> None:
    with pytest.raises(InstructorRetryException) as caught:
        client.create(response_model=Refused, messages=list(ASK), max_retries=1)
    one = caught.value.last_completion.usage
    assert caught.value.total_usage.completion_tokens >= one.completion_tokens


@pytest.mark.parametrize("is_async", [False, True])
def test_a_client_may_come_from_its_provider(*, is_async: bool) -> None:
    client: Any = instructor.from_provider(f"openai/{os.environ['CONSTRAIN_MODEL']}", async_client=is_async)
    answer = client.create(response_model=User, messages=ASK, max_retries=0, max_tokens=100)
    assert isinstance(asyncio.run(answer) if is_async else answer, User)


def test_the_provider_for_local_models_is_answered() -> None:
    client: Any = instructor.from_provider(
        f"ollama/{os.environ['CONSTRAIN_MODEL']}", base_url=os.environ["OPENAI_BASE_URL"], mode=Mode.JSON_SCHEMA
    )
    assert isinstance(client.create(response_model=User, messages=ASK, max_retries=0, max_tokens=100), User)


def test_a_client_may_be_patched() -> None:
    client: Any = instructor.patch(openai.OpenAI(max_retries=0))
    user = client.chat.completions.create(
        model=os.environ["CONSTRAIN_MODEL"], response_model=User, messages=ASK, max_retries=0, max_tokens=100
    )
    assert isinstance(user, User)


def test_requests_are_answered_together(aconnect: Callable[[Mode], AsyncInstructor]) -> None:
    async def ask() -> list[User]:
        client = aconnect(Mode.TOOLS)
        texts = ["Ada is 36.", "Bo is 7.", "Cy is 80.", "Di is 21."]
        messages: list[list[Any]] = [[{"role": "user", "content": text}] for text in texts]
        return await asyncio.gather(
            *(client.create(response_model=User, messages=each, max_retries=0) for each in messages)
        )

    assert all(isinstance(user, User) for user in asyncio.run(ask()))


def test_partial_instances_grow(client: Instructor) -> None:
    class Meeting(BaseModel):
        title: str = Field(max_length=40)
        people: list[User] = Field(min_length=1, max_length=2)

    parts = list(client.create_partial(response_model=Meeting, messages=ASK, max_retries=0))
    assert len(parts) > 2
    assert Meeting.model_validate(parts[-1].model_dump())


def test_a_validator_may_ask_the_model(client: Instructor) -> None:
    """Whether it agrees is up to the model; its verdict is one in any case."""

    class Statement(BaseModel):
        words: Annotated[
            str,
            Field(max_length=20),
            BeforeValidator(
                llm_validator("it is polite", client=client, model=os.environ["CONSTRAIN_MODEL"], allow_override=True)
            ),
        ]

    try:
        assert Statement(words="Good morning")
    except ValidationError as error:
        assert error.errors()[0]["loc"] == ("words",)  # noqa: PT017 - either is right


def test_the_older_ways_to_stream_are_answered(client: Instructor) -> None:
    users = list(client.create(response_model=Iterable[User], messages=ASK, stream=True, max_retries=0))
    assert all(isinstance(user, User) for user in users)
    parts = list(client.chat.completions.create(response_model=Partial[User], messages=ASK, stream=True, max_retries=0))
    assert User.model_validate(parts[-1].model_dump())


def test_models_may_be_made_while_running(client: Instructor) -> None:
    fields: dict[str, Any] = {"name": (str, Field(max_length=20)), "born": (int, Field(ge=1900, le=2100))}
    made = create_model("Made", **fields)
    answer = client.create(response_model=made, messages=ASK, max_retries=0)
    assert 1900 <= answer.born <= 2100


def test_images_are_refused_by_name(client: Instructor) -> None:
    content = ["What is it?", instructor.Image.from_url("https://example.org/a.png")]
    with pytest.raises(InstructorRetryException, match="image"):
        client.create(response_model=User, messages=[{"role": "user", "content": content}], max_retries=0)
