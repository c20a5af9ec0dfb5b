"""The model that the tests of this folder share."""

from __future__ import annotations

import pytest

import constrain
from tests.support.llama.babbler import shared_babbler


@pytest.fixture(scope="session")
def model() -> constrain.Model:
    return shared_babbler()
