"""What surrounds the endpoints: keys, headers, errors, raw responses, asynchronous clients, timeouts, metrics."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import (
    APITimeoutError,
    AsyncOpenAI,
    AuthenticationError,
    BadRequestError,
    NotFoundError,
    OpenAI,
    RateLimitError,
)
from samples import MESSAGES, MOVE, Move, Person

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from httpx2 import Client, Response

SECONDS = 240.0


def error_of(response: Response) -> dict[str, Any]:
    """The error of a response, which has OpenAI's shape."""
    assert response.headers["content-type"] == "application/json"
    body: Any = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return dict(body["error"])


def in_loop(work: Callable[[AsyncOpenAI], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with AsyncOpenAI(max_retries=0, timeout=SECONDS) as client:
            return await work(client)

    return asyncio.run(run())


def test_a_wrong_key(model: str) -> None:
    with OpenAI(api_key="wrong", max_retries=0) as client, pytest.raises(AuthenticationError) as caught:
        client.chat.completions.create(model=model, messages=MESSAGES)
    assert (caught.value.status_code, caught.value.code) == (401, "invalid_api_key")


@pytest.mark.parametrize("path", ["models", "models/small", "responses/resp_1"])
def test_every_path_needs_a_key(raw: Client, path: str) -> None:
    response = raw.get(path, headers={"Authorization": "Bearer wrong"})
    assert response.status_code == 401
    assert error_of(response)["code"] == "invalid_api_key"


def test_no_key_at_all(raw: Client) -> None:
    request = raw.build_request("GET", "models")
    del request.headers["authorization"]
    assert raw.send(request).status_code == 401


def test_another_key_of_the_servers(model: str) -> None:
    with OpenAI(api_key=os.environ["CONSTRAIN_OTHER_KEY"], max_retries=0) as client:
        assert client.models.retrieve(model).id == model


def test_health_needs_no_key(raw: Client) -> None:
    request = raw.build_request("GET", str(raw.base_url).removesuffix("v1/") + "health")
    del request.headers["authorization"]
    assert raw.send(request).status_code == 200


def test_metrics(client: OpenAI, raw: Client, model: str) -> None:
    client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=1)
    response = raw.get(str(raw.base_url).removesuffix("v1/") + "metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    assert "_total" in response.text


def test_every_response_has_an_id(raw: Client) -> None:
    ids = [raw.get(path).headers["x-request-id"] for path in ("models", "models/none", "nothing")]
    assert len(set(ids)) == 3


def test_an_unknown_model(client: OpenAI) -> None:
    with pytest.raises(NotFoundError) as caught:
        client.chat.completions.create(model="gpt-5", messages=MESSAGES)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    assert "gpt-5" in caught.value.message


def test_a_prompt_that_is_too_long(client: OpenAI, model: str) -> None:
    messages: Any = [{"role": "user", "content": "word " * 20_000}]
    with pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=messages)
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "messages")


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
@pytest.mark.parametrize("body", [b"", b"{", b'{"a": NaN}', b"\xff\xfe", b"[]", b'"text"'])
def test_a_body_that_is_no_json_object(raw: Client, path: str, body: bytes) -> None:
    response = raw.post(path, content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    error = error_of(response)
    assert error["type"] == "invalid_request_error"


def test_what_is_said_of_malformed_json(raw: Client) -> None:
    response = raw.post("chat/completions", content=b"{", headers={"Content-Type": "application/json"})
    assert error_of(response)["message"].startswith("We could not parse the JSON body of your request")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "nothing", 404),
        ("GET", "chat/completions", 405),
        ("POST", "models", 405),
        ("POST", "audio/speech", 404),
        ("POST", "conversations", 404),
        ("POST", "responses/compact", 404),
    ],
)
def test_what_is_not_there(raw: Client, method: str, path: str, status: int) -> None:
    response = raw.request(method, path, json={})
    assert response.status_code in (status, 400, 404)
    error_of(response)


def test_what_is_missing_is_named(raw: Client, model: str) -> None:
    error = error_of(raw.post("chat/completions", json={"model": model}))
    assert (error["param"], error["code"]) == ("messages", "missing_required_parameter")


def test_a_preflight(raw: Client) -> None:
    asked = "authorization,content-type,x-stainless-lang,x-stainless-retry-count"
    headers = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    request = raw.build_request("OPTIONS", "chat/completions", headers=headers)
    request.headers["Access-Control-Request-Headers"] = asked
    del request.headers["authorization"]
    response = raw.send(request)
    assert response.status_code == 204
    allowed = response.headers["access-control-allow-headers"].lower()
    assert all(name in allowed for name in asked.split(","))


def test_errors_can_be_read_by_pages(raw: Client) -> None:
    response = raw.get("models", headers={"Origin": "https://page.example", "Authorization": "Bearer wrong"})
    assert response.status_code == 401
    assert response.headers["access-control-allow-origin"] in ("*", "https://page.example")


def test_a_raw_response(client: OpenAI, model: str) -> None:
    response = client.chat.completions.with_raw_response.create(model=model, messages=MESSAGES, max_tokens=2)
    assert response.http_response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.request_id
    assert response.parse().choices
    assert json.loads(response.text)["object"] == "chat.completion"


def test_a_streamed_response(client: OpenAI, model: str) -> None:
    with client.chat.completions.with_streaming_response.create(
        model=model, messages=MESSAGES, max_tokens=2
    ) as response:
        assert response.status_code == 200
        assert json.loads(b"".join(response.iter_bytes()))["choices"]


def test_the_lines_of_a_stream(client: OpenAI, model: str) -> None:
    with client.chat.completions.with_streaming_response.create(
        model=model, messages=MESSAGES, max_tokens=2, stream=True
    ) as response:
        lines = [line for line in response.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"


def test_a_raw_response_of_a_responses_stream(client: OpenAI, model: str) -> None:
    response = client.responses.with_raw_response.create(model=model, input="Hi.", max_output_tokens=16, stream=True)
    kinds = [event.type for event in response.parse()]
    assert kinds[0] == "response.created"


def test_a_timeout(model: str) -> None:
    with OpenAI(max_retries=0, timeout=0.05) as client, pytest.raises(APITimeoutError):
        client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=1000, temperature=1)


def test_a_bad_request_is_not_sent_again(model: str) -> None:
    sent = []
    transport = openai.DefaultHttpxClient(event_hooks={"request": [sent.append]})
    with OpenAI(max_retries=3, http_client=transport) as client, pytest.raises(BadRequestError):
        client.chat.completions.create(model=model, messages=[])
    assert len(sent) == 1


def test_a_busy_server_says_when_to_come_back(client: OpenAI, model: str) -> None:
    asked: Any = {"model": model, "messages": MESSAGES, "n": 40, "max_tokens": 100, "stream": True}
    with client.chat.completions.create(**asked) as chunks:
        next(iter(chunks))
        with pytest.raises(RateLimitError) as caught:
            client.chat.completions.create(**asked)
    assert caught.value.code == "rate_limit_exceeded"
    assert int(caught.value.response.headers["retry-after"]) > 0


def test_options_of_one_call(client: OpenAI, model: str) -> None:
    completion = client.with_options(timeout=SECONDS, max_retries=1).chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=2, extra_headers={"X-Mine": "1"}, extra_query={"a": "b"}
    )
    assert completion.choices


def test_the_asynchronous_client(model: str) -> None:
    completion = in_loop(lambda client: client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=3))
    assert completion.choices[0].message.content


def test_an_asynchronous_parse(model: str) -> None:
    completion = in_loop(
        lambda client: client.chat.completions.parse(
            model=model, messages=MESSAGES, response_format=Person, max_tokens=90
        )
    )
    assert isinstance(completion.choices[0].message.parsed, Person)


def test_an_asynchronous_stream(model: str) -> None:
    async def work(client: AsyncOpenAI) -> list[Any]:
        stream = await client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=3, stream=True)
        return [chunk async for chunk in stream]

    assert in_loop(work)[-1].choices[0].finish_reason


def test_the_asynchronous_stream_helper(model: str) -> None:
    async def work(client: AsyncOpenAI) -> Any:
        async with client.chat.completions.stream(
            model=model, messages=MESSAGES, tools=[MOVE], tool_choice="required", max_tokens=120
        ) as stream:
            async for _ in stream:
                pass
            return await stream.get_final_completion()

    calls = in_loop(work).choices[0].message.tool_calls
    assert all(isinstance(call.function.parsed_arguments, Move) for call in calls)


def test_asynchronous_responses(model: str) -> None:
    async def work(client: AsyncOpenAI) -> Any:
        made = await client.responses.parse(model=model, input="Emma.", text_format=Person, max_output_tokens=90)
        async with client.responses.stream(
            model=model, input="Emma.", text_format=Person, max_output_tokens=90
        ) as stream:
            async for _ in stream:
                pass
            return made, await stream.get_final_response()

    assert all(isinstance(response.output_parsed, Person) for response in in_loop(work))


def test_asynchronous_models(model: str) -> None:
    async def work(client: AsyncOpenAI) -> list[str]:
        return [each.id async for each in client.models.list()]

    assert in_loop(work) == [model]


def test_several_at_once(model: str) -> None:
    async def work(client: AsyncOpenAI) -> Any:
        return await asyncio.gather(
            *(
                client.chat.completions.parse(
                    model=model, messages=MESSAGES, response_format=wanted, seed=seed, max_tokens=90
                )
                for seed, wanted in enumerate([Person, Move] * 4)
            )
        )

    kinds = [type(completion.choices[0].message.parsed) for completion in in_loop(work)]
    assert kinds == [Person, Move] * 4


def test_a_task_that_is_cancelled(model: str) -> None:
    async def work(client: AsyncOpenAI) -> Any:
        task = asyncio.create_task(
            client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=2000, temperature=1)
        )
        stream = await client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=2000, stream=True)
        async for _ in stream:
            break
        await stream.close()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=2)

    assert in_loop(work).choices
