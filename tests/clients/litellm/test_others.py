"""Plain answers, streams, options, the other endpoints, and errors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import litellm
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Tell me about Oslo."}]


def test_an_answer_has_text_and_usage(ask: Callable[..., Any]) -> None:
    answer = ask(messages=MESSAGES, max_tokens=12)
    assert answer.choices[0].message.content
    assert answer.usage.total_tokens > answer.usage.completion_tokens > 0


def test_a_text_that_is_cut_says_so(ask: Callable[..., Any]) -> None:
    assert ask(messages=MESSAGES, max_tokens=4).choices[0].finish_reason == "length"


def test_an_answer_is_streamed(ask: Callable[..., Any]) -> None:
    parts = list(ask(messages=MESSAGES, max_tokens=12, stream=True, stream_options={"include_usage": True}))
    whole = litellm.stream_chunk_builder(parts)
    assert len(parts) > 2
    assert whole.choices[0].message.content
    assert whole.usage.completion_tokens > 0


def test_asynchronous_code_is_answered(openai: dict[str, Any]) -> None:
    async def read() -> str:
        parts = await litellm.acompletion(**{**openai, "max_tokens": 12}, messages=MESSAGES, stream=True)
        return "".join([part.choices[0].delta.content or "" async for part in parts])

    assert asyncio.run(read())


def test_options_go_with_the_request(openai: dict[str, Any]) -> None:
    more = {"top_p": 0.9, "seed": 1, "stop": ["\n\n"], "presence_penalty": 0.1, "n": 2, "logprobs": True}
    answer = litellm.completion(**{**openai, "max_tokens": 6, "temperature": 1}, messages=MESSAGES, **more)
    assert len(answer.choices) == 2
    assert answer.choices[0].logprobs.content


def test_fields_of_this_server_go_with_the_request(openai: dict[str, Any]) -> None:
    answer = litellm.completion(**openai, messages=MESSAGES, extra_body={"regex": "(yes|no)"})
    assert answer.choices[0].message.content in ("yes", "no")


def test_texts_are_completed(openai: dict[str, Any]) -> None:
    text = {**openai, "model": openai["model"].replace("openai/", "text-completion-openai/"), "max_tokens": 8}
    assert litellm.text_completion(prompt="One, two,", **text).choices[0].text


def test_texts_are_embedded(openai: dict[str, Any]) -> None:
    where = {name: openai[name] for name in ("model", "api_base", "api_key")}
    vectors = litellm.embedding(input=["a cat", "Oslo"], **where).data
    assert len(vectors) == 2
    assert len(vectors[0]["embedding"]) == len(vectors[1]["embedding"]) > 1


def test_responses_are_made(openai: dict[str, Any]) -> None:
    where = {name: openai[name] for name in ("model", "api_base", "api_key")}
    answer = litellm.responses(input="Tell me about Oslo.", max_output_tokens=16, **where)
    assert answer.output_text


def test_an_unknown_model_is_not_found(ask: Callable[..., Any]) -> None:
    provider = ask.keywords["model"].partition("/")[0]
    with pytest.raises(litellm.NotFoundError):
        ask(model=f"{provider}/no-such-model", messages=MESSAGES)


def test_a_wrong_key_is_refused(ask: Callable[..., Any]) -> None:
    with pytest.raises(litellm.AuthenticationError):
        ask(api_key="wrong", messages=MESSAGES)


def test_images_are_refused(openai: dict[str, Any]) -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    with pytest.raises(litellm.BadRequestError, match="image"):
        litellm.completion(**openai, messages=[{"role": "user", "content": [part]}])
