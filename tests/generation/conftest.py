"""The model that the tests of this folder share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.llama.babbler import shared_babbler

if TYPE_CHECKING:
    import constrain


@pytest.fixture(scope="session")
def model() -> constrain.Model:
    return shared_babbler()
