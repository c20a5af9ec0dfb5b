"""Applications and servers that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

import constrain
from constrain.server.app import Application
from constrain.server.http.account import Account, current
from constrain.server.settings import Settings
from tests.support.llama.small import write_small_model
from tests.support.server.asking import SECONDS, served_as, serving


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that answers at once: what it says means nothing."""
    return write_small_model(tmp_path_factory.mktemp("model") / "small.gguf")


@pytest.fixture(scope="session")
def model(model_file: Path) -> constrain.Model:
    return constrain.Model(model_file, n_ctx=1024, n_threads=1, parallel=4)


@pytest.fixture(scope="session")
def unending(model: constrain.Model) -> dict[str, int]:
    """A bias for the tokens with which the model ends a string or an answer: both come to their end by a limit."""
    texts = [model.vocabulary.token_bytes(token) for token in range(model.vocabulary.n_vocab)]
    ends = [token for token, text in enumerate(texts) if text.startswith(b'"') or token in model.vocabulary.eos]
    return dict.fromkeys(map(str, ends), -100)


@pytest.fixture(scope="session")
def application(model: constrain.Model) -> Application:
    return Application(served_as(model, "small", "other-name"), Settings())


@pytest.fixture(scope="session")
def url(model: constrain.Model) -> Iterator[str]:
    """Where a server listens, on a port of its own."""
    with serving(Application(served_as(model, "small"), Settings())) as found:
        yield found


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, timeout=SECONDS) as found:
        yield found


@pytest.fixture
def account() -> Iterator[Account]:
    """The record of a request that is being read, with its warnings."""
    made = Account(0.0)
    token = current.set(made)
    yield made
    current.reset(token)
