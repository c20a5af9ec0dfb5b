"""The tiny model that the tests of this folder share, and an application that serves it."""

from __future__ import annotations

import pytest

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.llama.transformer import tiny_file
from tests.support.server.asking import served_as


@pytest.fixture(scope="session")
def model() -> constrain.Model:
    return constrain.Model(tiny_file(), n_ctx=2048, n_threads=1)


@pytest.fixture(scope="session")
def application(model: constrain.Model) -> Application:
    return Application(served_as(model, "small"), Settings())
