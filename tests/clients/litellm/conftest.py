"""LiteLLM's providers for the server that the variables of the environment name."""

from __future__ import annotations

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # the list of prices is not fetched

from functools import partial
from typing import TYPE_CHECKING, Any

import litellm
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = os.environ["CONSTRAIN_MODEL"]
ROOT = os.environ["ANTHROPIC_BASE_URL"]

PROVIDERS = {
    "openai": {"model": f"openai/{MODEL}", "api_base": os.environ["OPENAI_BASE_URL"]},
    "anthropic": {"model": f"anthropic/{MODEL}", "api_base": ROOT},
    "ollama": {
        "model": f"ollama_chat/{MODEL}",
        "api_base": ROOT,
        "extra_headers": {"Content-Type": "application/json"},  # which LiteLLM leaves out
    },
}
"""How LiteLLM is told of the server, by each API that the server has."""

MAX_TOKENS = 80
"""Enough for every answer of these tests; the server ends each within it."""


def options_of(provider: str) -> dict[str, Any]:
    """What every call of a provider is given. Nothing is asked twice."""
    shared = {"api_key": os.environ["OPENAI_API_KEY"], "temperature": 0, "max_tokens": MAX_TOKENS}
    return {**PROVIDERS[provider], **shared, "num_retries": 0, "max_retries": 0, "timeout": 240}


@pytest.fixture
def connect() -> Callable[[str], Callable[..., Any]]:
    """Makes ``litellm.completion`` of a provider."""
    return lambda provider: partial(litellm.completion, **options_of(provider))


@pytest.fixture(params=PROVIDERS)
def ask(request: pytest.FixtureRequest, connect: Callable[[str], Callable[..., Any]]) -> Callable[..., Any]:
    """``litellm.completion`` by each of the providers."""
    return connect(request.param)


@pytest.fixture
def openai() -> dict[str, Any]:
    """The options of the provider that has every endpoint."""
    return options_of("openai")
