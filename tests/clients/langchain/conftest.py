"""Models of LangChain on the server that ``OPENAI_BASE_URL`` names."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from langchain_openai import ChatOpenAI

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_TOKENS = 64
"""Enough for every answer of these tests; the server ends each within it."""


@pytest.fixture
def connect() -> Callable[..., ChatOpenAI]:
    """Makes a chat model, with options of its own."""
    return partial(
        ChatOpenAI,
        model=os.environ["CONSTRAIN_MODEL"],
        temperature=0,
        max_retries=0,
        timeout=120,
        max_tokens=MAX_TOKENS,
        stream_usage=True,
    )


@pytest.fixture(params=[False, True], ids=["chat", "responses"])
def model(request: pytest.FixtureRequest, connect: Callable[..., ChatOpenAI]) -> ChatOpenAI:
    """The model by each of the two endpoints."""
    return connect(use_responses_api=request.param)


@pytest.fixture
def chat(connect: Callable[..., ChatOpenAI]) -> Any:
    """The model by the endpoint for chats."""
    return connect()


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """The one event loop of all tests: LangChain's models share connections."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()
