"""The client that all tests of this folder use, and the model that they ask."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from samples import QUESTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 240.0


@pytest.fixture(scope="session")
def model() -> str:
    return os.environ["CONSTRAIN_MODEL"]


@pytest.fixture(scope="session")
def client() -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(max_retries=0, timeout=SECONDS) as found:
        yield found


@pytest.fixture(scope="session")
def create(client: anthropic.Anthropic, model: str) -> Callable[..., anthropic.types.Message]:
    """Asks for a message. The package has no parameter for the temperature."""

    def ask(**fields: Any) -> anthropic.types.Message:
        body = {"temperature": 0, **fields.pop("extra_body", {})}
        found = client.messages.create(
            **{"model": model, "max_tokens": 100, "messages": QUESTION, "extra_body": body, **fields}
        )
        assert isinstance(found, anthropic.types.Message)
        # Types that are only constructed, as the package does it, are not checked.
        return anthropic.types.Message.model_validate(found.model_dump(), strict=True)

    return ask
