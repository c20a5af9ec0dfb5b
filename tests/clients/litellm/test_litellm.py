"""What LiteLLM alone asks for: the other endpoints, options, and fields of this server."""

from __future__ import annotations

from typing import Any

import litellm
import pytest
from adapter import WAYS, OpenAI, said
from shared import KEY, MODEL, PROMPT, URL, Plan

WHERE: Any = {"model": f"openai/{MODEL}", "api_base": URL, "api_key": KEY}


@pytest.mark.parametrize("name", ["openai", "ollama"])
def test_any_object_may_be_asked_for(name: str) -> None:
    """Not of Anthropic's API, which LiteLLM does not tell of it."""
    found = WAYS[name]().create(said(PROMPT), response_format={"type": "json_object"})
    assert found.choices[0].message.content.startswith("{")


def test_references_that_litellm_breaks_for_anthropic_are_refused() -> None:
    """It makes a path of ``#/$defs/Step``, which leads nowhere."""
    with pytest.raises(litellm.BadRequestError, match=r"/\$defs/Step"):
        WAYS["anthropic"]().value(Plan)


@pytest.mark.parametrize("way", WAYS.values())
def test_a_stream_has_its_usage_and_says_when_it_was_cut(way: Any) -> None:
    parts = list(way(max_tokens=4).create(said(PROMPT), stream=True, stream_options={"include_usage": True}))
    whole = litellm.stream_chunk_builder(parts)
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage.completion_tokens > 0


def test_options_and_fields_of_this_server_go_with_the_request() -> None:
    more = {"top_p": 0.9, "seed": 1, "stop": ["\n\n"], "presence_penalty": 0.1, "n": 2, "logprobs": True}
    answer = OpenAI(max_tokens=6).create(said(PROMPT), **more, temperature=1)
    assert len(answer.choices) == 2
    assert answer.choices[0].logprobs.content
    answer = OpenAI().create(said(PROMPT), extra_body={"regex": "(yes|no)"})
    assert answer.choices[0].message.content in ("yes", "no")


def test_the_other_endpoints_are_answered() -> None:
    text = {**WHERE, "model": f"text-completion-openai/{MODEL}", "max_tokens": 8}
    assert litellm.text_completion(prompt="One, two,", **text).choices[0].text
    assert litellm.responses(input=PROMPT, max_output_tokens=16, **WHERE).output_text
    first, second = litellm.embedding(input=["a cat", "Oslo"], **WHERE).data
    assert len(first["embedding"]) == len(second["embedding"]) > 1


def test_images_are_refused() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    with pytest.raises(litellm.BadRequestError, match="image"):
        OpenAI().create({"role": "user", "content": [part]})
