"""Models of pydantic-ai on the server that ``OPENAI_BASE_URL`` names."""

from __future__ import annotations

import os

import pytest
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

MAX_TOKENS = 64
"""Enough for every answer of these tests; the server ends each within it."""


@pytest.fixture
def provider() -> OpenAIProvider:
    return OpenAIProvider(base_url=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])


@pytest.fixture
def chat_model(provider: OpenAIProvider) -> OpenAIChatModel:
    return OpenAIChatModel(os.environ["CONSTRAIN_MODEL"], provider=provider, settings={"max_tokens": MAX_TOKENS})


@pytest.fixture
def responses_model(provider: OpenAIProvider) -> OpenAIResponsesModel:
    return OpenAIResponsesModel(os.environ["CONSTRAIN_MODEL"], provider=provider, settings={"max_tokens": MAX_TOKENS})


@pytest.fixture(params=["chat", "responses"])
def model(
    request: pytest.FixtureRequest, chat_model: OpenAIChatModel, responses_model: OpenAIResponsesModel
) -> OpenAIChatModel | OpenAIResponsesModel:
    """The model by each of the two endpoints."""
    return chat_model if request.param == "chat" else responses_model
