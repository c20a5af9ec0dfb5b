"""Applications with models that reason, beside those of the other tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import served_as
from tests.support.server.ollama import ALWAYS_THINKING, THINKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def thinker(model_file: Path) -> Iterator[Application]:
    """A model whose template turns reasoning on and off."""
    with constrain.Model(model_file, n_ctx=512, n_threads=1, parallel=1, chat_template=THINKING) as model:
        yield Application(served_as(model, "thinker"), Settings())


@pytest.fixture(scope="module")
def always_thinker(model_file: Path) -> Iterator[Application]:
    """A model whose template begins every answer with reasoning."""
    with constrain.Model(model_file, n_ctx=512, n_threads=1, parallel=1, chat_template=ALWAYS_THINKING) as model:
        yield Application(served_as(model, "always"), Settings())
