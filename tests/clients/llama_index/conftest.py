"""Models of LlamaIndex on the server that ``OPENAI_BASE_URL`` names."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import pytest
from llama_index.llms.openai_like import OpenAILike

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TOKENS = 80
"""Enough for every answer of these tests; the server ends each within it."""


@pytest.fixture
def connect() -> Callable[..., OpenAILike]:
    """Makes a model, with options of its own. It does not ask twice."""
    return partial(
        OpenAILike,
        model=os.environ["CONSTRAIN_MODEL"],
        api_base=os.environ["OPENAI_BASE_URL"],
        api_key=os.environ["OPENAI_API_KEY"],
        is_chat_model=True,
        is_function_calling_model=True,
        should_use_structured_outputs=True,
        context_window=4096,
        max_tokens=MAX_TOKENS,
        temperature=0,
        max_retries=0,
        timeout=240,
    )


@pytest.fixture
def llm(connect: Callable[..., OpenAILike]) -> OpenAILike:
    """A model with structured outputs and calls."""
    return connect()
