"""What surrounds the endpoints: keys, raw responses, retries, timeouts, asynchronous code, models and completions."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import openai
import pytest
from adapter import said
from shared import MAX_TOKENS, MODEL, PROMPT, SECONDS, Person, Weather

CLIENT = openai.OpenAI(max_retries=0, timeout=SECONDS)
ASKED: Any = {"model": MODEL, "messages": [said(PROMPT)], "max_tokens": 2}


def test_the_models() -> None:
    assert [each.id for each in CLIENT.models.list()] == [MODEL]
    assert CLIENT.models.retrieve(MODEL).owned_by
    with pytest.raises(openai.NotFoundError) as caught:
        CLIENT.models.retrieve("no-such-model")
    assert caught.value.code == "model_not_found"


def test_another_key_of_the_server() -> None:
    with openai.OpenAI(api_key=os.environ["CONSTRAIN_OTHER_KEY"], max_retries=0) as client:
        assert client.models.retrieve(MODEL).id == MODEL


def test_what_is_not_there() -> None:
    for ask in (CLIENT.conversations.create, CLIENT.files.list):
        with pytest.raises(openai.NotFoundError):
            ask()


def test_completions() -> None:
    asked: Any = {"model": MODEL, "prompt": ["One, two,", "A, b,"], "max_tokens": 3, "temperature": 0}
    whole = [choice.text for choice in CLIENT.completions.create(**asked).choices]
    assert len(whole) == 2
    pieces = {0: "", 1: ""}
    for chunk in CLIENT.completions.create(**asked, stream=True):
        for choice in chunk.choices:
            pieces[choice.index] += choice.text
    assert [*pieces.values()] == whole


@pytest.mark.parametrize("form", ["float", "base64"])
def test_vectors_in_both_forms(form: Any) -> None:
    found = CLIENT.embeddings.create(model=MODEL, input=["a cat"], encoding_format=form)
    assert found.usage.total_tokens > 0
    assert found.data[0].embedding


def test_raw_and_streamed_responses() -> None:
    completions = CLIENT.chat.completions
    raw = completions.with_raw_response.create(**ASKED)
    assert (raw.http_response.status_code, raw.headers["content-type"]) == (200, "application/json")
    assert raw.request_id
    assert raw.parse().choices
    with completions.with_streaming_response.create(**ASKED, stream=True) as response:
        lines = [line for line in response.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    assert json.loads(lines[0].removeprefix("data: "))["object"] == "chat.completion.chunk"


def test_a_timeout() -> None:
    with openai.OpenAI(max_retries=0, timeout=0.05) as client, pytest.raises(openai.APITimeoutError):
        client.chat.completions.create(**{**ASKED, "max_tokens": 1000})


def test_a_bad_request_is_not_sent_again() -> None:
    sent: list[Any] = []
    transport = openai.DefaultHttpxClient(event_hooks={"request": [sent.append]})
    with openai.OpenAI(max_retries=3, http_client=transport) as client, pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model=MODEL, messages=[])
    assert len(sent) == 1


def test_a_busy_server_says_when_to_come_back() -> None:
    asked: Any = {**ASKED, "n": 40, "max_tokens": 100, "stream": True}
    with CLIENT.chat.completions.create(**asked) as chunks:
        next(iter(chunks))
        with pytest.raises(openai.RateLimitError) as caught:
            CLIENT.chat.completions.create(**asked)
    assert caught.value.code == "rate_limit_exceeded"
    assert int(caught.value.response.headers["retry-after"]) > 0


def test_many_asynchronous_requests_and_one_that_is_cancelled() -> None:
    async def work() -> list[Any]:
        async with openai.AsyncOpenAI(max_retries=0, timeout=SECONDS) as client:
            left = asyncio.create_task(client.chat.completions.create(**{**ASKED, "max_tokens": 2000}))
            stream = await client.chat.completions.create(**{**ASKED, "max_tokens": 2000}, stream=True)
            async for _ in stream:
                break
            await stream.close()
            left.cancel()
            with pytest.raises(asyncio.CancelledError):
                await left
            asked: Any = {**ASKED, "max_tokens": MAX_TOKENS}
            kinds = [Person, Weather] * 4
            return await asyncio.gather(
                *(client.chat.completions.parse(**asked, response_format=kind) for kind in kinds)
            )

    kinds = [type(completion.choices[0].message.parsed) for completion in asyncio.run(work())]
    assert kinds == [Person, Weather] * 4
