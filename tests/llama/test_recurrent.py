"""Recurrent models: one state for each sequence, that after its last token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import constrain
from tests.llama.recurrent import write_mamba

if TYPE_CHECKING:
    from pathlib import Path

PROMPTS = [f"A long prompt of many words about {what}" for what in ("cats", "the sea", "kings", "cats", "c")]


@pytest.fixture(scope="module")
def mamba(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "mamba.gguf"
    write_mamba(path)
    return path


@pytest.mark.parametrize("options", [{}, {"schema": {"type": "array", "items": {"type": "boolean"}, "maxItems": 5}}])
def test_a_batch_gives_the_answers_of_one_at_a_time(mamba: Path, options: Any) -> None:
    options = {"max_tokens": 24, "temperature": 0, **options}
    with constrain.Model(mamba, n_ctx=256, n_threads=1, parallel=3) as model:
        alone = [constrain.complete(model, prompt, **options) for prompt in PROMPTS]
        together = constrain.complete_batch(model, PROMPTS, **options)
        assert [one.tokens for one in together] == [one.tokens for one in alone]
        assert len({one.tokens for one in alone}) > 1 or "schema" in options


def test_samples_share_their_prompt(mamba: Path) -> None:
    with constrain.Model(mamba, n_ctx=256, n_threads=1, parallel=4) as model:
        constrain.generate_batch(model, ["x"], max_tokens=1)
        [samples] = constrain.complete_batch(model, PROMPTS[:1], n=3, max_tokens=8, seed=1)
        length = samples[0].usage.prompt_tokens
        assert max(one.usage.cached_tokens for one in samples) == length - 1
        for number, sample in enumerate(samples):
            assert sample.tokens == constrain.complete(model, PROMPTS[0], max_tokens=8, seed=1 + number).tokens


def test_sequences_that_alternate_go_on_where_they_were(mamba: Path) -> None:
    with constrain.Model(mamba, n_ctx=256, n_threads=1) as model:
        first, second = (model.prompt_tokens(prompt) for prompt in PROMPTS[:2])
        context = model.context
        assert context.prefill(first) == 0
        assert context.prefill(second) == 0
        assert context.prefill([*first, 40, 41]) == len(first)
        after = context.logits().copy()
        assert context.prefill([*second, 50]) == len(second)
        assert context.prefill(first) == 0, "a state cannot be taken back"
        with constrain.Model(mamba, n_ctx=256, n_threads=1) as fresh:
            fresh.context.prefill([*first, 40, 41])
            np.testing.assert_allclose(fresh.context.logits(), after, rtol=1e-4, atol=1e-4)
