"""The canary: known numbers of the demo model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from constrain.errors import ModelError
from constrain.llama import canary

if TYPE_CHECKING:
    import constrain


@pytest.mark.slow  # each evaluates a text
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("_TEXT", canary._TEXT, None),
        ("_TEXT", canary._TEXT[1:], "divides a text wrongly"),
        ("_LOGPROBS", [*canary._LOGPROBS[1:], -9.0], "computes wrongly"),
    ],
)
def test_other_numbers_are_told(
    model: constrain.Model, monkeypatch: pytest.MonkeyPatch, name: str, value: Any, sentence: str | None
) -> None:
    monkeypatch.setattr(canary, name, value)
    if sentence is None:
        canary.prove_forward(model)
    else:
        with pytest.raises(ModelError, match=sentence):
            canary.prove_forward(model)


def test_another_model_has_no_known_numbers() -> None:
    model: Any = SimpleNamespace(llama=SimpleNamespace(model_path="other.gguf"))
    with pytest.raises(ValueError, match=r"other\.gguf is not the demo model"):
        canary.prove_forward(model)
