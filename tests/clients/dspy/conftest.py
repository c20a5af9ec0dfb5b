"""DSPy's models of the server that ``OPENAI_BASE_URL`` names."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import dspy
import pytest
from dspy.lm15 import AccessPolicy, EndpointSupport, ModelSupport, OpenAIChatCompat, ProviderDefinition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_TOKENS = 100
"""Enough for every answer of these tests; the server ends each within it."""


@pytest.fixture(scope="session")
def provider() -> str:
    """The name under which DSPy knows the server, and that it enforces schemas and calls."""
    policy = AccessPolicy(
        provider="constrain",
        supports=EndpointSupport(complete=True, stream=True, models=True),
        auth_modes=("bearer",),
        env_keys=("OPENAI_API_KEY",),
        base_url=os.environ["OPENAI_BASE_URL"],
    )
    definition = ProviderDefinition.chat(policy, compat=OpenAIChatCompat(max_tokens_field="max_tokens"))
    dspy.lm15.register_provider(definition, supports=ModelSupport(function_calling=True, response_schema=True))
    return policy.provider


@pytest.fixture
def connect(provider: str) -> Callable[..., dspy.LM]:
    """Makes a model, with options of its own. It neither remembers answers nor asks twice."""
    name = f"{provider}/{os.environ['CONSTRAIN_MODEL']}"
    return partial(dspy.LM, name, cache=False, num_retries=0, temperature=0, max_tokens=MAX_TOKENS)


@pytest.fixture
def lm(connect: Callable[..., dspy.LM]) -> Iterator[dspy.LM]:
    """The model that all programs of a test ask, through the adapter that sends schemas."""
    found = connect()
    with dspy.context(lm=found, adapter=dspy.JSONAdapter()):
        yield found
