"""Embeddings: which requests are refused, and what clients get for the others."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from openai.types import CreateEmbeddingResponse

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.llama.small import WIDTH
from tests.support.server.asking import SECONDS, ask, chat, error_of, served_as, serving
from tests.support.waiting import wait_until


def embed(application: Application, **fields: Any) -> httpx.Response:
    return ask(application, "POST", "/v1/embeddings", json={"model": "small", "input": "Hello", **fields})


def vectors_of(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    parsed = CreateEmbeddingResponse.model_validate_json(response.text)
    assert [one.index for one in parsed.data] == list(range(len(parsed.data)))
    return np.array([one.embedding for one in parsed.data])


def test_the_response_has_all_that_clients_require(application: Application, model: constrain.Model) -> None:
    body = embed(application, input=["Hello", "you"]).json()
    assert set(body) == {"object", "data", "model", "usage"}
    assert (body["object"], body["model"]) == ("list", "small")
    assert [set(one) for one in body["data"]] == [{"object", "index", "embedding"}] * 2
    assert {one["object"] for one in body["data"]} == {"embedding"}
    count = len(model.text_tokens("Hello")) + len(model.text_tokens("you"))
    assert body["usage"] == {"prompt_tokens": count, "total_tokens": count}


def test_tokens_stand_for_their_text(application: Application, model: constrain.Model) -> None:
    texts = ["Hello", "The sun is shining."]
    by_text = vectors_of(embed(application, input=texts))
    tokens = [model.text_tokens(text, whole=True) for text in texts]
    assert (vectors_of(embed(application, input=tokens)) == by_text).all()
    assert (vectors_of(embed(application, input=tokens[1])) == by_text[1:]).all()


def test_base64_holds_little_endian_floats(application: Application) -> None:
    numbers = vectors_of(embed(application))
    assert (numbers.shape, np.linalg.norm(numbers)) == ((1, WIDTH), pytest.approx(1))
    (encoded,) = embed(application, encoding_format="base64").json()["data"]
    assert (np.frombuffer(base64.b64decode(encoded["embedding"]), "<f4") == numbers[0].astype(np.float32)).all()


def test_the_openai_package_reads_them(client: openai.OpenAI, application: Application) -> None:
    response = client.embeddings.create(model="small", input="Hello")
    assert np.array([one.embedding for one in response.data]) == pytest.approx(vectors_of(embed(application)))


def test_the_dimensions_are_those_of_the_model(application: Application) -> None:
    assert vectors_of(embed(application, dimensions=WIDTH)).shape == (1, WIDTH)
    error = error_of(embed(application, dimensions=64))
    assert (error["param"], error["code"]) == ("dimensions", "invalid_value")
    assert str(WIDTH) in error["message"]


@pytest.mark.parametrize("size", [2_000, 200_000])
def test_an_input_that_overflows_the_context_is_refused(application: Application, size: int) -> None:
    error = error_of(embed(application, input=["a", "word " * size]))
    assert (error["param"], error["code"]) == ("input", "context_length_exceeded")
    assert "1024 tokens" in error["message"]


def test_too_many_inputs_are_refused(application: Application) -> None:
    assert error_of(embed(application, input=["a"] * 2049))["code"] == "array_above_max_length"


def test_an_unknown_token_is_refused(application: Application) -> None:
    error = error_of(embed(application, input=[[1], [999999]]))
    assert (error["param"], error["code"]) == ("input", "invalid_value")


def test_answers_are_the_same_after_embeddings(application: Application) -> None:
    chat(application, max_tokens=6)  # now the same of the prompt is known for both
    before = chat(application, max_tokens=6).json()["choices"]
    embed(application, input="Something else.")
    assert chat(application, max_tokens=6).json()["choices"] == before


@pytest.mark.slow
def test_nothing_is_read_any_more_for_a_client_that_has_left(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings())
    body = {"model": "small", "input": ["word " * 50] * 2048}
    with serving(application) as url:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/v1/embeddings", json=body, timeout=httpx.Timeout(SECONDS, read=0.2))
        wait_until(lambda: "constrain_requests_abandoned_total 1.0" in httpx.get(f"{url}/metrics").text)
    metrics = ask(application, "GET", "/metrics").text
    assert "constrain_answers_admitted 0.0" in metrics
    assert 'kind="embedded"' not in metrics
