"""``client.completions`` and ``client.embeddings``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from openai import BadRequestError, NotFoundError

if TYPE_CHECKING:
    from httpx2 import Client
    from openai import OpenAI


def test_a_completion(client: OpenAI, model: str) -> None:
    completion = client.completions.create(model=model, prompt="Once upon a time", max_tokens=5, temperature=0)
    assert completion.object == "text_completion"
    assert completion.id.startswith("cmpl-")
    (choice,) = completion.choices
    assert (choice.index, choice.finish_reason) == (0, "length")
    assert choice.text
    assert completion.usage
    assert completion.usage.completion_tokens == 5


def test_completions_of_several_prompts(client: OpenAI, model: str) -> None:
    completion = client.completions.create(model=model, prompt=["One", "Two"], max_tokens=3, n=2)
    assert [choice.index for choice in completion.choices] == [0, 1, 2, 3]


def test_a_completion_ends_at_a_stop(client: OpenAI, model: str) -> None:
    completion = client.completions.create(model=model, prompt="a b c d", max_tokens=20, stop=[" "], temperature=0)
    assert " " not in completion.choices[0].text


def test_an_echo(client: OpenAI, model: str) -> None:
    completion = client.completions.create(model=model, prompt="Once upon", max_tokens=2, echo=True)
    assert completion.choices[0].text.startswith("Once upon")


def test_a_completion_in_a_stream(client: OpenAI, model: str) -> None:
    asked: Any = {"model": model, "prompt": "Once upon a time", "max_tokens": 6, "temperature": 0}
    chunks = list(client.completions.create(**asked, stream=True))
    whole = client.completions.create(**asked)
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
    assert chunks[-1].choices[0].finish_reason == "length"


def test_a_completion_of_an_unknown_model(client: OpenAI) -> None:
    with pytest.raises(NotFoundError):
        client.completions.create(model="none", prompt="Hi")


def test_a_completion_out_of_range(client: OpenAI, model: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        client.completions.create(model=model, prompt="Hi", temperature=3)
    assert caught.value.param == "temperature"


def test_an_embedding(client: OpenAI, model: str) -> None:
    response = client.embeddings.create(model=model, input="Hello")
    assert response.object == "list"
    (found,) = response.data
    assert (found.object, found.index) == ("embedding", 0)
    assert len(found.embedding) > 100
    assert math.isclose(math.hypot(*found.embedding), 1, rel_tol=1e-3)
    assert response.usage.total_tokens == response.usage.prompt_tokens > 0


def test_embeddings_of_several_texts(client: OpenAI, model: str) -> None:
    response = client.embeddings.create(model=model, input=["Hello", "Goodbye", "Hello"])
    first, second, third = (found.embedding for found in response.data)
    assert [found.index for found in response.data] == [0, 1, 2]
    assert first != second
    assert all(math.isclose(one, other, abs_tol=1e-3) for one, other in zip(first, third, strict=True))


def test_embeddings_as_floats(client: OpenAI, model: str) -> None:
    plain = client.embeddings.create(model=model, input="Hello", encoding_format="float").data[0].embedding
    packed = client.embeddings.create(model=model, input="Hello").data[0].embedding
    assert all(math.isclose(one, other, abs_tol=1e-3) for one, other in zip(plain, packed, strict=True))


def test_embeddings_in_base64_on_the_wire(raw: Client, model: str) -> None:
    body = {"model": model, "input": "Hello", "encoding_format": "base64"}
    assert isinstance(raw.post("embeddings", json=body).json()["data"][0]["embedding"], str)


@pytest.mark.parametrize("given", ["", []])
def test_an_embedding_of_nothing(client: OpenAI, model: str, given: Any) -> None:
    with pytest.raises(BadRequestError) as caught:
        client.embeddings.create(model=model, input=given)
    assert caught.value.param == "input"
