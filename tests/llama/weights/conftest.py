"""A tiny model in a file, and loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from constrain.llama.loading import load
from tests.support.llama.transformer import write_transformer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import llama_cpp


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_transformer(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture(scope="module")
def llama(tiny: Path) -> Iterator[llama_cpp.Llama]:
    loaded = load(tiny, 2048, 0, 1, verbose=False)
    yield loaded
    loaded.close()
