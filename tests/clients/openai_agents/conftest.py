"""The models that the agents of this folder use: one server by both of its endpoints."""

from __future__ import annotations

import os

import pytest
from agents import AsyncOpenAI, Model, OpenAIChatCompletionsModel, OpenAIResponsesModel, set_tracing_disabled

SECONDS = 240.0

KINDS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}

set_tracing_disabled(disabled=True)


def make(kind: str) -> Model:
    """A model with a client of its own."""
    client = AsyncOpenAI(max_retries=0, timeout=SECONDS)
    return KINDS[kind](model=os.environ["CONSTRAIN_MODEL"], openai_client=client)


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> Model:
    return make(request.param)


@pytest.fixture
def responses() -> Model:
    return make("responses")
