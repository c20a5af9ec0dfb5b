"""The canary: known numbers of the demo model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import constrain
from constrain.errors import ModelError
from constrain.llama import canary


@pytest.fixture(scope="module")
def demo() -> Iterator[constrain.Model]:
    with constrain.Model(n_ctx=1024, n_threads=1) as model:
        yield model


@pytest.mark.slow  # each evaluates a text
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("_TEXT", canary._TEXT[1:], "divides a text wrongly"),
        ("_LOGPROBS", [*canary._LOGPROBS[1:], -9.0], "computes wrongly"),
    ],
)
def test_other_numbers_are_told(
    demo: constrain.Model, monkeypatch: pytest.MonkeyPatch, name: str, value: Any, sentence: str
) -> None:
    canary.prove_forward(demo)
    monkeypatch.setattr(canary, name, value)
    with pytest.raises(ModelError, match=sentence):
        canary.prove_forward(demo)
