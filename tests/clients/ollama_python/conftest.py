"""The clients that all tests of this folder use, and the model that they ask."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import httpx
import ollama
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 240.0


@pytest.fixture(scope="session")
def model() -> str:
    return os.environ["CONSTRAIN_MODEL"]


@pytest.fixture(scope="session")
def client() -> Iterator[ollama.Client]:
    """Takes server and key from the environment, as the package does by itself."""
    with ollama.Client(timeout=SECONDS) as found:
        yield found


@pytest.fixture(scope="session")
def thinker() -> Iterator[ollama.Client]:
    """Asks the server whose model, ``thinker``, reasons."""
    with ollama.Client(host=os.environ["CONSTRAIN_THINKER_URL"], timeout=SECONDS) as found:
        yield found


@pytest.fixture(scope="session")
def raw() -> Iterator[httpx.Client]:
    """For what the client cannot express."""
    headers = {"Authorization": f"Bearer {os.environ['OLLAMA_API_KEY']}"}
    with httpx.Client(base_url=os.environ["OLLAMA_HOST"], headers=headers, timeout=SECONDS) as found:
        yield found
