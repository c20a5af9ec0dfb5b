"""Errors, keys, and the list of models."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import pytest
from anthropic.types import ModelInfo
from samples import QUESTION

if TYPE_CHECKING:
    from collections.abc import Callable

    from anthropic import Anthropic


def error_of(error: anthropic.APIStatusError, kind: str) -> str:
    """What an error says, checked for its form."""
    body: Any = error.body
    assert body["type"] == "error"
    assert body["error"]["type"] == kind
    assert body["request_id"] == error.request_id
    assert str(error.request_id).startswith("req_")
    return str(body["error"]["message"])


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}]},
         "messages[0].content[0]"),
        ({"tools": [{"name": "a b", "input_schema": {"type": "object"}}]}, "tools[0].name"),
        ({"messages": [*QUESTION, {"role": "assistant", "content": "I"}]}, "messages[1]"),
        ({"extra_body": {"temperature": 2}}, "temperature"),
        ({"messages": [{"role": "user", "content": "word " * 20_000}]}, "context"),
    ],
)  # fmt: skip
def test_a_wrong_request(create: Callable[..., Any], fields: dict[str, Any], says: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        create(**fields)
    assert says in error_of(caught.value, "invalid_request_error")


def test_an_unknown_model(create: Callable[..., Any]) -> None:
    with pytest.raises(anthropic.NotFoundError) as caught:
        create(model="other")
    assert "'other'" in error_of(caught.value, "not_found_error")


def test_a_wrong_key(model: str) -> None:
    with anthropic.Anthropic(api_key="wrong", max_retries=0) as client:
        with pytest.raises(anthropic.AuthenticationError) as caught:
            client.messages.create(model=model, max_tokens=1, messages=QUESTION)
        error_of(caught.value, "authentication_error")


def test_a_token_in_place_of_a_key(model: str) -> None:
    with anthropic.Anthropic(api_key=None, auth_token=os.environ["CONSTRAIN_OTHER_KEY"], max_retries=0) as client:
        assert client.messages.create(model=model, max_tokens=1, messages=QUESTION).content


def test_paths_that_are_not_there(client: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.messages.batches.list()
    error_of(caught.value, "not_found_error")


def test_another_method(client: Anthropic) -> None:
    with pytest.raises(anthropic.APIStatusError) as caught:
        client.get("/v1/messages", cast_to=httpx2.Response)
    assert caught.value.status_code == 405
    error_of(caught.value, "invalid_request_error")


def test_the_models(client: Anthropic, model: str) -> None:
    page = client.models.list(limit=5)
    assert [each.id for each in page] == [model]
    assert page.has_more is False
    found = client.models.retrieve(model)
    assert ModelInfo.model_validate(found.model_dump(), strict=True).display_name == model
    assert found.created_at.tzinfo is not None


def test_a_model_that_is_not_there(client: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.models.retrieve("other")
    error_of(caught.value, "not_found_error")
