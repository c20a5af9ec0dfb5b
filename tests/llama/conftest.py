"""The model that the tests of this folder share: small random weights, whose tokens are single bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import constrain
from tests.support.llama.transformer import write_transformer


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_transformer(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(scope="session")
def model(tiny: Path) -> Iterator[constrain.Model]:
    with constrain.Model(tiny, n_ctx=1024, n_threads=1) as made:
        yield made
