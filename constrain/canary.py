"""A canary for masks: a model may choose only between two tokens that it would never choose, and one of them must come.

``constrain doctor`` runs it, and the server with each model that it loads. It finds samplers of llama.cpp that ignore
their mask, and logits that are read wrongly, before any answer is trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from constrain.errors import ModelError
from constrain.generation.planning import add_constraint, plan_continuation
from constrain.generation.running import Run
from constrain.lark.source import Lark

if TYPE_CHECKING:
    from constrain.generation.options import Options
    from constrain.llama.model import Model

_PROMPT = "The"

_TEMPERATURES = (0.0, 1.0)
"""Temperatures of the two answers: one takes the likelier token, the other goes through all samplers of the chain."""

_GAP = 1.0
"""Difference of the logits of the two tokens, at least: so large that rounding cannot swap them."""

_CURE = (
    "answers would not match their schemas; install another build: "
    'pip install --force-reinstall --no-cache-dir --no-deps "llama-cpp-python>=0.3.36"'
)


def run_canary(model: Model) -> str:
    """Writes one token at each of two temperatures, on the model's scheduler; returns a description.

    Raises ``ModelError`` if a mask fails.
    """
    tokens = model.text_tokens(_PROMPT)
    with model.turn() as context:
        context.prefill(tokens)
        logits = context.logits().copy()
        context.clear()
    *order, wanted = np.argsort(logits, kind="stable").tolist()
    rarest = next(token for token in order if _text(model, token))
    apart = (token for token in order if logits[token] > logits[rarest] + _GAP and _text(model, token))
    rare = next(apart, wanted)
    allowed = _text(model, rare), _text(model, rarest)
    runs = []
    for temperature in _TEMPERATURES:
        options: Options = {"max_tokens": 1, "temperature": temperature, "cache_prompt": False}
        plan = plan_continuation(model, tokens, Lark(f"start: <[{rarest},{rare}]>"), options)
        assert plan.language is not None
        runs.append(
            Run(add_constraint(plan, plan.language.compile(model.vocabulary, cache=False), 0.0), partition="canary")
        )
    try:
        for run in runs:
            run.submit()
        chosen = [run.finish()[1].tokens for run in runs if run.request.done.result() is None]
    except ModelError as error:
        raise ModelError(f"{model.llama.model_path}: the canary of masks failed: {error}; {_CURE}") from error
    if chosen[0] != (rare,) or chosen[1] not in ((rare,), (rarest,)):
        raise ModelError(
            f"{model.llama.model_path}: the canary of masks failed: the mask allows {allowed[0]!r} and the less likely "
            f"{allowed[1]!r}, and llama.cpp chose {[*map(model.tokenizer.show, chosen)]}; {_CURE}"
        )
    return f"wanted {model.tokenizer.show([wanted])!r}, might write {allowed[0]!r} or {allowed[1]!r}, and did"


def _text(model: Model, token: int) -> str:
    """Returns the text of a token of printable ASCII; empty for other tokens."""
    text = model.vocabulary.token_bytes(token).decode("latin-1")
    return text if text.isascii() and text.isprintable() else ""
