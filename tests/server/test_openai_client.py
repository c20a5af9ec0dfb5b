"""The ``openai`` package against a server on a socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

import openai
import pytest
from pydantic import BaseModel, Field

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import SECONDS, served_as, serving

pytestmark = pytest.mark.slow


class Person(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)
    mood: Literal["good", "bad"]


class Move(BaseModel):
    """Moves a piece."""

    to: Literal["left", "right"]
    steps: int = Field(ge=1, le=9)


MESSAGES: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Tell me of Emma, aged 21."}]
MOVE = openai.pydantic_function_tool(Move)
NAMED = {"syntax": "lark", "definition": 'start: "hi" name\nname[capture]: /[a-z]{2}/'}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # the client's own
def test_parsed_messages_and_calls_can_be_sent_back(client: openai.OpenAI) -> None:
    asked: Any = {"model": "small", "temperature": 0, "max_tokens": 100}
    said = client.chat.completions.parse(messages=MESSAGES, response_format=Person, **asked).choices[0].message
    assert isinstance(said.parsed, Person)
    more: Any = [*MESSAGES, said, {"role": "user", "content": "Move, then."}]
    asked |= {"tools": [MOVE], "messages": more}
    called = client.chat.completions.parse(tool_choice="required", **asked).choices[0].message
    assert called.tool_calls
    assert all(isinstance(call.function.parsed_arguments, Move) for call in called.tool_calls)
    results = [{"role": "tool", "tool_call_id": call.id, "content": "done"} for call in called.tool_calls]
    asked |= {"messages": [*more, called, *results], "max_tokens": 5}
    assert client.chat.completions.create(tool_choice="none", **asked).choices[0].message.content


def test_stream_helper(client: openai.OpenAI) -> None:
    asked: Any = {"model": "small", "messages": MESSAGES, "temperature": 0, "max_tokens": 100}
    with client.chat.completions.stream(response_format=Person, **asked) as stream:
        kinds = {event.type for event in stream}
        completion = stream.get_final_completion()
    assert {"content.delta", "content.done"} <= kinds
    assert isinstance(completion.choices[0].message.parsed, Person)
    with client.chat.completions.stream(tools=[MOVE], tool_choice="required", **asked) as stream:
        kinds = {event.type for event in stream}
        message = stream.get_final_completion().choices[0].message
    assert {"tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"} <= kinds
    assert message.content is None
    assert message.tool_calls
    assert all(isinstance(call.function.parsed_arguments, Move) for call in message.tool_calls)


def test_a_streamed_custom_call_ends_with_its_captures(client: openai.OpenAI) -> None:
    tool: Any = {"type": "custom", "custom": {"name": "say", "format": {"type": "grammar", "grammar": NAMED}}}
    asked: Any = {"tools": [tool], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 200}
    chunks = client.chat.completions.create(model="small", messages=MESSAGES, stream=True, **asked)
    parts: list[Any] = [part for chunk in chunks for part in chunk.choices[0].delta.tool_calls or ()]
    assert parts[0].type == "custom"
    text = "".join(part.custom["input"] for part in parts)
    assert text.startswith("hi")
    assert parts[-1].custom == {"input": "", "captures": {"name": text[2:]}, "capture_spans": {"name": [2, 4]}}


def test_a_custom_call_of_a_response_has_its_captures(client: openai.OpenAI) -> None:
    tool: Any = {"type": "custom", "name": "say", "format": {"type": "grammar", **NAMED}}
    asked: Any = {"tools": [tool], "tool_choice": "required", "parallel_tool_calls": False, "input": "Say hi."}
    whole = client.responses.create(model="small", **asked)
    stream = client.responses.create(model="small", stream=True, **asked)
    (ended,) = (event.response for event in stream if event.type == "response.completed")
    for response in (whole, ended):
        (item,) = (item for item in response.output if item.type == "custom_tool_call")
        extra = {"captures": {"name": item.input[2:]}, "capture_spans": {"name": [2, 4]}}
        assert item.model_extra == {"status": "completed", **extra}


def test_many_at_once_are_served_together(url: str) -> None:
    async def ask_all() -> list[Any]:
        asked: Any = {"model": "small", "messages": MESSAGES, "response_format": Person, "max_tokens": 60}
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, timeout=SECONDS) as client:
            return await asyncio.gather(*(client.chat.completions.parse(seed=seed, **asked) for seed in range(9)))

    completions = asyncio.run(ask_all())
    assert all(isinstance(completion.choices[0].message.parsed, Person) for completion in completions)


def test_errors_are_of_the_clients_classes(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="large", messages=MESSAGES)
    assert unknown.value.code == "model_not_found"
    wrong: Any = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": {"type": "array"}}}
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="small", messages=MESSAGES, response_format=wrong, stream=True)
    assert (bad.value.param, bad.value.code) == ("response_format", "invalid_json_schema")


def test_a_wrong_key_is_an_authentication_error(model: constrain.Model) -> None:
    settings = Settings(api_keys=("right",))
    with serving(Application(served_as(model, "small"), settings)) as url:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="wrong", max_retries=0) as client:
            with pytest.raises(openai.AuthenticationError) as caught:
                client.models.list()
            assert caught.value.code == "invalid_api_key"
        with openai.OpenAI(base_url=f"{url}/v1", api_key="right", max_retries=0) as client:
            assert [one.id for one in client.models.list()] == ["small"]


def test_text_is_never_cut_inside_a_character(client: openai.OpenAI) -> None:
    schema = {"const": {"text": "äöü 漢字 🎉"}}
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    chunks = client.chat.completions.create(
        model="small", messages=MESSAGES, response_format=wanted, stream=True, max_tokens=200
    )
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert json.loads(text) == {"text": "äöü 漢字 🎉"}
