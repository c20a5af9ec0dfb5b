"""The endpoint for responses: what is made, kept, gone on from, and seen by whom."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from openai import BadRequestError, NotFoundError, OpenAI

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import ask, error_of, served_as
from tests.support.server.response_answers import TOOLS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(url: str) -> OpenAI:
    return OpenAI(api_key="any", base_url=f"{url}/v1", max_retries=0)


def respond(application: Application, **fields: Any) -> httpx.Response:
    body = {"model": "small", "input": "Say hello.", "temperature": 0, **fields}
    return ask(application, "POST", "/v1/responses", json=body)


def test_streams_hold_what_the_response_does(client: OpenAI) -> None:
    asked: dict[str, Any] = {
        "model": "small",
        "input": "Is it warm in Oslo?",
        "temperature": 0,
        "max_output_tokens": 120,
        "tools": TOOLS,
    }
    with client.responses.stream(**asked, tool_choice="required") as stream:
        for _ in stream:
            pass
        streamed = stream.get_final_response()
    kept = client.responses.retrieve(streamed.id)
    assert [item.type for item in kept.output] == [item.type for item in streamed.output]
    assert {item.type for item in kept.output} <= {"function_call", "custom_tool_call"}
    assert kept.usage == streamed.usage


def test_a_response_is_gone_on_from_and_its_tokens_are_not_read_again(client: OpenAI) -> None:
    first = client.responses.create(model="small", input="My name is Ada.", max_output_tokens=8, temperature=0)
    second = client.responses.create(
        model="small", input="What is my name?", previous_response_id=first.id, max_output_tokens=8, temperature=0
    )
    assert second.previous_response_id == first.id
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.input_tokens > first.usage.total_tokens
    assert second.usage.input_tokens_details.cached_tokens >= first.usage.input_tokens
    listed = client.responses.input_items.list(second.id).data
    assert [item.content[0].text for item in listed] == ["What is my name?"]  # type: ignore[union-attr]


def test_what_is_not_kept_or_deleted_is_not_there(client: OpenAI) -> None:
    gone = client.responses.create(model="small", input="Hi", max_output_tokens=4, store=False)
    kept = client.responses.create(model="small", input="Hi", max_output_tokens=4)
    assert client.responses.retrieve(kept.id).output == kept.output
    client.responses.delete(kept.id)
    for response in (gone, kept):
        with pytest.raises(NotFoundError):
            client.responses.retrieve(response.id)
        with pytest.raises(BadRequestError) as caught:
            client.responses.create(model="small", input="Hi", previous_response_id=response.id)
        assert caught.value.code == "previous_response_not_found"


def test_a_response_is_there_for_its_key_alone(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings(api_keys=("one", "two")))
    body = {"model": "small", "input": "Hi", "max_output_tokens": 4}
    made = ask(application, "POST", "/v1/responses", json=body, headers={"Authorization": "Bearer one"}).json()
    path = f"/v1/responses/{made['id']}"
    for key, status in (("one", 200), ("two", 404)):
        for method, what in (("GET", path), ("GET", path + "/input_items"), ("DELETE", path)):
            if (key, method) == ("one", "DELETE"):
                continue
            assert ask(application, method, what, headers={"Authorization": f"Bearer {key}"}).status_code == status
    next_body = {**body, "previous_response_id": made["id"]}
    refused = ask(application, "POST", "/v1/responses", json=next_body, headers={"Authorization": "Bearer two"})
    assert error_of(refused)["code"] == "previous_response_not_found"


WRONG_FORMAT = {"type": "json_schema", "name": "x", "schema": {"type": "string", "pattern": "("}}
WRONG_TOOL = {"type": "function", "name": "f", "strict": False, "parameters": {"type": "strin"}}


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"text": {"format": WRONG_FORMAT}}, "invalid_json_schema", "text.format.schema"),
        ({"tools": [WRONG_TOOL]}, "invalid_function_parameters", "tools[0].parameters"),
        ({"input": "word " * 3000}, "context_length_exceeded", "input"),
    ],
)
def test_what_cannot_be_had_is_refused_by_its_place(
    application: Application, fields: dict[str, Any], code: str, param: str
) -> None:
    response = respond(application, **fields)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["code"], error["param"]) == (code, param)


def test_other_ways_to_read_a_response_are_refused(application: Application) -> None:
    made = respond(application, max_output_tokens=4).json()
    path = f"/v1/responses/{made['id']}"
    assert error_of(ask(application, "GET", f"{path}?stream=true"))["param"] == "stream"
    assert ask(application, "POST", f"{path}/cancel").status_code == 400
    assert ask(application, "POST", "/v1/responses/compact", json={}).status_code == 404
