"""The clients that all tests of this folder use, and the model that they ask."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import httpx2
import openai
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 240.0


@pytest.fixture(scope="session")
def model() -> str:
    return os.environ["CONSTRAIN_MODEL"]


@pytest.fixture(scope="session")
def client() -> Iterator[openai.OpenAI]:
    with openai.OpenAI(max_retries=0, timeout=SECONDS) as found:
        yield found


@pytest.fixture(scope="session")
def raw() -> Iterator[httpx2.Client]:
    """For what the client cannot express."""
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    with httpx2.Client(base_url=os.environ["OPENAI_BASE_URL"], headers=headers, timeout=SECONDS) as found:
        yield found
