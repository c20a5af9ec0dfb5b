"""Log-probabilities of chat completions, and of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from openai import BadRequestError
from samples import MESSAGES, MOVE_SCHEMA, Person, json_schema

if TYPE_CHECKING:
    from openai import OpenAI


def test_of_a_text(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=4, logprobs=True)
    choice = completion.choices[0]
    assert choice.logprobs
    assert choice.logprobs.content
    assert len(choice.logprobs.content) == 4
    for token in choice.logprobs.content:
        assert token.logprob <= 0
        assert token.top_logprobs == []
    pieces = b"".join(bytes(token.bytes or ()) for token in choice.logprobs.content)
    assert pieces.decode() == choice.message.content


@pytest.mark.parametrize("count", [1, 5, 20])
def test_the_likeliest(client: OpenAI, model: str, count: int) -> None:
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=3, logprobs=True, top_logprobs=count, temperature=0
    )
    assert completion.choices[0].logprobs
    for token in completion.choices[0].logprobs.content or []:
        values = [each.logprob for each in token.top_logprobs]
        assert len(values) == count
        assert values == sorted(values, reverse=True)
        assert token.top_logprobs[0].token == token.token


def test_zero_of_the_likeliest(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=3, logprobs=True, top_logprobs=0
    )
    assert completion.choices[0].logprobs


def test_of_a_schema(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=60, logprobs=True, top_logprobs=2,
        response_format=json_schema(MOVE_SCHEMA),
    )  # fmt: skip
    choice = completion.choices[0]
    assert choice.logprobs
    pieces = b"".join(bytes(token.bytes or ()) for token in choice.logprobs.content or [])
    assert pieces.decode() == choice.message.content


def test_of_a_stream(client: OpenAI, model: str) -> None:
    chunks = list(
        client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=4, logprobs=True, stream=True)
    )
    tokens = [
        token
        for chunk in chunks
        for choice in chunk.choices
        if choice.logprobs
        for token in choice.logprobs.content or []
    ]
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert b"".join(bytes(token.bytes or ()) for token in tokens).decode() == text


def test_by_the_helper(client: OpenAI, model: str) -> None:
    with client.chat.completions.stream(
        model=model, messages=MESSAGES, response_format=Person, max_tokens=90, logprobs=True
    ) as events:
        kinds = {event.type for event in events}
        assert events.get_final_completion().choices[0].logprobs
    assert {"logprobs.content.delta", "logprobs.content.done"} <= kinds


def test_the_likeliest_alone_are_refused(client: OpenAI, model: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=MESSAGES, top_logprobs=3)
    assert caught.value.param == "top_logprobs"


def test_of_a_response(client: OpenAI, model: str) -> None:
    response = client.responses.create(
        model=model, input="Hi.", max_output_tokens=16, include=["message.output_text.logprobs"], top_logprobs=2
    )
    (message,) = response.output
    assert message.type == "message"
    part = message.content[0]
    assert part.type == "output_text"
    assert part.logprobs
    assert all(len(token.top_logprobs) == 2 for token in part.logprobs)
