"""Vectors for texts: those that llama.cpp makes itself, and what becomes of them when a model is closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import llama_cpp
import numpy as np
import pytest

import constrain
from constrain.llama.embedding import Embedder
from constrain.llama.loading import Llama

TEXT = "The quick brown fox jumps over the lazy dog. " * 4
"""More tokens than are evaluated at once."""


@pytest.fixture(scope="module")
def small(tiny: Path) -> Iterator[constrain.Model]:
    with constrain.Model(tiny, n_ctx=256, n_threads=1) as found:
        yield found


def with_pooling(model: constrain.Model, pooling: int) -> llama_cpp.Llama:
    """The same weights, as if the file said how vectors are made."""
    llama = model.llama
    metadata = {**llama.metadata, "llama.pooling_type": str(pooling)}
    parts = {"_model": llama._model, "context_params": llama.context_params, "model_path": llama.model_path}
    return cast("llama_cpp.Llama", SimpleNamespace(metadata=metadata, **parts))


def vector_of_llama(model: constrain.Model, pooling: int) -> Any:
    options: dict[str, Any] = {"n_ctx": 256, "n_batch": 256, "n_ubatch": 256, "n_threads": 1, "n_threads_batch": 1}
    llama = Llama(model.llama.model_path, embedding=True, pooling_type=pooling, verbose=False, **options)
    try:
        return np.array(llama.embed(TEXT, normalize=True))
    finally:
        llama.close()


@pytest.mark.parametrize("pooling", [llama_cpp.LLAMA_POOLING_TYPE_MEAN, llama_cpp.LLAMA_POOLING_TYPE_LAST])
def test_vectors_are_those_of_llama_cpp(small: constrain.Model, pooling: int) -> None:
    tokens = small.text_tokens(TEXT, whole=True)
    assert 128 < len(tokens) <= 256
    embedder = Embedder(with_pooling(small, pooling), 256)
    try:
        found = embedder.embed(tokens)
    finally:
        embedder.close()
    assert found == pytest.approx(vector_of_llama(small, pooling), abs=1e-5)
    is_default = pooling == llama_cpp.LLAMA_POOLING_TYPE_MEAN  # what a model means that says nothing
    assert (small.embedder.embed(tokens) == found).all() == is_default


def test_a_model_of_scores_makes_no_vectors(small: constrain.Model) -> None:
    with pytest.raises(constrain.ModelError, match="makes no vectors"):
        Embedder(with_pooling(small, llama_cpp.LLAMA_POOLING_TYPE_RANK), 256)


@pytest.mark.parametrize("count", [0, 257])
def test_texts_have_a_token_and_fit_into_the_context(small: constrain.Model, count: int) -> None:
    with pytest.raises(constrain.ModelError, match="1 to 256"):
        small.embedder.embed([1] * count)


def test_a_closed_model_makes_no_vectors(tiny: Path) -> None:
    model = constrain.Model(tiny, n_ctx=64, n_threads=1)
    embedder = model.embedder
    model.close()
    with pytest.raises(constrain.ModelError, match="closed"):
        embedder.embed([1])
    with pytest.raises(constrain.ModelError, match="closed"):
        _ = model.embedder
