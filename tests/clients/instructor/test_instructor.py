"""What instructor alone asks for: response models of its documentation, modes by prompt, and questions asked again."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable
from datetime import date, datetime
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

import instructor
import openai
import pytest
from adapter import ENFORCED, MESSAGES, WAYS
from instructor import Maybe, Mode, OpenAISchema
from instructor.core import InstructorError, InstructorRetryException
from pydantic import UUID4, AfterValidator, BaseModel, Field, IPvAnyAddress
from shared import MAX_TOKENS, MODEL, URL, Cat, Dog, Note, Person, Weather

T = TypeVar("T")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Chosen(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Event(BaseModel):
    day: date
    at: datetime
    id: UUID
    version: UUID4
    address: IPvAnyAddress


class Priced(BaseModel):
    price: float = Field(gt=0, lt=10**6)
    share: Annotated[int, Field(multiple_of=5, ge=0, le=100)]
    email: str = Field(pattern=r"^[a-z]{1,8}@[a-z]{1,8}\.(com|org)$")


class Page(BaseModel, Generic[T]):
    items: list[T] = Field(max_length=2)
    total: int


class Notes(Page[Note]):
    """With a name of its own: Page[Note] is none for a tool."""


class Defaults(BaseModel):
    """Everything may be left out."""

    name: str = Field(default="nobody", max_length=9)
    scores: dict[str, int] = Field(default_factory=dict, max_length=2)


class OldStyle(OpenAISchema):
    """A schema in the older way."""

    word: str = Field(max_length=20)


MODELS: list[Any] = [Chosen, Event, Priced, Notes, Defaults, OldStyle, Maybe(Note)]


def client_of(mode: Mode) -> Any:
    return instructor.from_openai(openai.OpenAI(max_retries=0), mode=mode, model=MODEL, max_tokens=MAX_TOKENS)


@pytest.mark.parametrize("mode", [Mode.TOOLS, Mode.JSON_SCHEMA], ids=lambda mode: mode.name)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_an_answer_is_of_its_model(mode: Mode, model: Any) -> None:
    assert isinstance(WAYS[mode.name]().value(model), model)


@pytest.mark.parametrize("mode", ENFORCED, ids=lambda mode: mode.name)
def test_several_instances_are_streamed(mode: Mode) -> None:
    found = WAYS[mode.name]().client.create_iterable(response_model=Note, messages=MESSAGES, max_retries=0)
    assert all(isinstance(each, Note) for each in found)


@pytest.mark.parametrize("mode", ENFORCED, ids=lambda mode: mode.name)
def test_asynchronous_answers_are_of_their_model(mode: Mode) -> None:
    limit = "max_output_tokens" if mode.value.startswith("responses") else "max_tokens"

    async def ask() -> list[Any]:
        connection = openai.AsyncOpenAI(max_retries=0)
        client: Any = instructor.from_openai(connection, mode=mode, model=MODEL, **{limit: MAX_TOKENS})
        parts = client.create_partial(response_model=Person, messages=MESSAGES, max_retries=0)
        last = [part async for part in parts][-1]
        assert Person.model_validate(last.model_dump())
        asked = (client.create(response_model=kind, messages=MESSAGES, max_retries=0) for kind in (Person, Note))
        return await asyncio.gather(*asked)

    first, second = asyncio.run(ask())
    assert isinstance(first, Person)
    assert isinstance(second, Note)


@pytest.mark.parametrize("mode", [Mode.JSON, Mode.MD_JSON], ids=lambda mode: mode.name)
def test_modes_by_prompt_are_enforced_where_the_request_has_a_schema(mode: Mode) -> None:
    """Their own requests have none: any object may come in one, and any text in the other."""
    client = client_of(mode)
    answers: list[Any] = []
    client.on("completion:response", answers.append)
    with contextlib.suppress(InstructorError):
        assert isinstance(client.create(response_model=Person, messages=MESSAGES, max_retries=0), Person)
    text = answers[0].choices[0].message.content
    assert isinstance(json.loads(text), dict) if mode is Mode.JSON else text
    form = {"type": "json_schema", "json_schema": {"name": "Person", "schema": Person.model_json_schema()}}
    if mode is Mode.JSON:
        form = {"type": "json_object", "schema": Person.model_json_schema()}
    whole = client.create(response_model=None, messages=MESSAGES, response_format=form, max_retries=0)
    assert Person.model_validate_json(whole.choices[0].message.content)


@pytest.mark.parametrize("mode", [Mode.TOOLS, Mode.PARALLEL_TOOLS], ids=lambda mode: mode.name)
def test_parallel_calls_are_instances(mode: Mode) -> None:
    """instructor leaves it to the model whether it calls; the request says in so many words that it must."""
    client = client_of(mode)
    messages = [{"role": "system", "content": "You must always use tools"}, *MESSAGES]
    options: Any = {"messages": messages, "max_retries": 0, "extra_body": {"tool_choice": "required"}}
    found = list(client.create(response_model=Iterable[Note | Weather], **options))
    assert found
    assert all(isinstance(each, Note | Weather) for each in found)


def refuse(value: Any) -> Any:
    raise ValueError(f"{value!r} is not what was meant")


class Refused(BaseModel):
    name: Annotated[str, Field(max_length=20), AfterValidator(refuse)]


@pytest.mark.parametrize("mode", [Mode.TOOLS, Mode.JSON_SCHEMA, Mode.RESPONSES_TOOLS], ids=lambda mode: mode.name)
def test_what_a_validator_refuses_is_asked_for_again(mode: Mode) -> None:
    client, asked = WAYS[mode.name]().client, []
    client.on("completion:kwargs", lambda **options: asked.append(options))
    with pytest.raises(InstructorRetryException) as caught:
        client.create(response_model=Refused, messages=list(MESSAGES), max_retries=1)
    assert caught.value.n_attempts == len(asked) == 2


def test_an_open_object_is_refused_where_the_schema_is_strict_and_images_by_name() -> None:
    """By the endpoint for responses instructor says that it is strict."""
    with pytest.raises(InstructorRetryException, match="additionalProperties"):
        WAYS["RESPONSES_TOOLS"]().value(Defaults)
    content = ["What is it?", instructor.Image.from_url("https://example.org/a.png")]
    messages = [{"role": "user", "content": content}]
    with pytest.raises(InstructorRetryException, match="image"):
        WAYS["TOOLS"]().client.create(response_model=Note, messages=messages, max_retries=0)


def test_clients_of_every_kind_are_answered() -> None:
    asked: Any = {"response_model": Note, "messages": MESSAGES, "max_retries": 0, "max_tokens": MAX_TOKENS}
    assert isinstance(instructor.from_provider(f"openai/{MODEL}").create(**asked), Note)
    local: Any = instructor.from_provider(f"ollama/{MODEL}", base_url=URL, mode=Mode.JSON_SCHEMA)
    assert isinstance(local.create(**asked), Note)
    patched: Any = instructor.patch(openai.OpenAI(max_retries=0))
    assert isinstance(patched.chat.completions.create(model=MODEL, **asked), Note)
