"""Known numbers of the demo model: a library that calls or computes wrongly gives others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from constrain.errors import ModelError
from constrain.llama.model import default_model_path
from constrain.llama.prebuilt.finding import library_version

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.llama.model import Model

_TEXT = "Ada is 36 years old, and she lives in Zürich."

_TOKENS = [4503, 81, 314, 216, 35, 38, 929, 1573, 28, 284, 1041, 2397, 281, 1777, 7170, 5130, 30]

_LOGPROBS = [
    *(-11.2, -3.9, -4.8, -2.5, -3.9, -3.1, -0.1, -0.7),
    *(-2.1, -1.7, -5.5, -0.7, -7.2, -3.5, -0.7, -0.9),
]
"""Log-probabilities, in nats, of the second and later tokens."""

_TOLERANCE = 0.5
"""Nats by which one may differ: processors and layouts of weights round differently."""


def prove_forward(model: Model) -> None:
    """Tokenizes and evaluates a text with the demo model. Raises ``ModelError`` unless the numbers are the known ones.

    Takes less than a second.
    """
    path = Path(model.llama.model_path)
    if path.resolve() != default_model_path().resolve():
        raise ValueError(f"{path} is not the demo model, whose numbers are known")
    tokens = model.text_tokens(_TEXT)
    if tokens != _TOKENS:
        raise ModelError(f"llama-cpp-python {library_version()} divides a text wrongly: {tokens} instead of {_TOKENS}")
    rows: list[NDArray[np.float64]] = []
    with model.turn() as context:
        context.prefill(tokens, n_forced=len(tokens) - 1, read=lambda row: rows.append(row.astype(np.float64)))
        context.clear()
    logits = np.stack(rows)
    logits -= logits.max(axis=1, keepdims=True)
    chosen = logits[np.arange(len(logits)), tokens[1:]] - np.log(np.exp(logits).sum(axis=1))
    if not np.abs(chosen - _LOGPROBS).max() <= _TOLERANCE:  # not a number, either
        raise ModelError(
            f"llama-cpp-python {library_version()} computes wrongly: log-probabilities {chosen.round(1).tolist()} "
            f"instead of {_LOGPROBS}"
        )
