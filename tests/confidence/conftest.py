"""The model that the tests of this folder share."""

from __future__ import annotations

import pytest

import constrain


@pytest.fixture(scope="session")
def model() -> constrain.Model:
    return constrain.Model(n_ctx=1024, n_threads=1)
