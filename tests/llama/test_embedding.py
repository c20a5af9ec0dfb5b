"""Vectors for texts: those that llama.cpp makes itself, and what becomes of them when a model is closed."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import llama_cpp
import numpy as np
import pytest

import constrain
from constrain.llama.embedding import Embedder
from constrain.llama.loading import Llama

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = "The quick brown fox jumps over the lazy dog. " * 15
"""More tokens than are evaluated at once."""


@pytest.fixture(scope="module")
def small() -> Iterator[constrain.Model]:
    with constrain.Model(n_ctx=256, n_threads=1) as found:
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


@pytest.mark.slow
@pytest.mark.parametrize("pooling", [llama_cpp.LLAMA_POOLING_TYPE_MEAN, llama_cpp.LLAMA_POOLING_TYPE_LAST])
def test_vectors_are_those_of_llama_cpp(small: constrain.Model, pooling: int) -> None:
    tokens = small.text_tokens(TEXT, whole=True)
    assert 128 < len(tokens) <= 256
    embedder = Embedder(with_pooling(small, pooling), 256)
    try:
        assert embedder.embed(tokens) == pytest.approx(vector_of_llama(small, pooling), abs=1e-5)
    finally:
        embedder.close()


def test_a_model_that_says_nothing_means_all_tokens(small: constrain.Model) -> None:
    tokens = small.text_tokens("The sun is shining.", whole=True)
    embedder = Embedder(with_pooling(small, llama_cpp.LLAMA_POOLING_TYPE_MEAN), 256)
    try:
        assert (small.embedder.embed(tokens) == embedder.embed(tokens)).all()
    finally:
        embedder.close()


def test_a_text_is_read_without_those_before(small: constrain.Model) -> None:
    first, other = small.text_tokens("The sun is shining."), small.text_tokens("It rains.")
    alone = small.embedder.embed(first)
    small.embedder.embed(other)
    assert (small.embedder.embed(first) == alone).all()


def test_a_model_of_scores_makes_no_vectors(small: constrain.Model) -> None:
    with pytest.raises(constrain.ModelError, match="makes no vectors"):
        Embedder(with_pooling(small, llama_cpp.LLAMA_POOLING_TYPE_RANK), 256)


@pytest.mark.parametrize("count", [0, 257])
def test_texts_have_a_token_and_fit_into_the_context(small: constrain.Model, count: int) -> None:
    with pytest.raises(constrain.ModelError, match="1 to 256"):
        small.embedder.embed([1] * count)


@pytest.mark.slow
def test_an_answer_is_the_same_while_embeddings_are_made(small: constrain.Model) -> None:
    options: Any = {"schema": {"type": "string", "maxLength": 40}, "temperature": 0, "max_tokens": 30}
    (alone,) = constrain.generate_batch(small, ["Say hello."], **options)
    tokens = small.text_tokens(TEXT)
    embedding = threading.Thread(target=lambda: [small.embedder.embed(tokens[:40]) for _ in range(4)])
    embedding.start()
    (beside,) = constrain.generate_batch(small, ["Say hello."], **options)
    embedding.join()
    assert beside == alone


def test_a_closed_model_makes_no_vectors() -> None:
    model = constrain.Model(n_ctx=64, n_threads=1)
    embedder = model.embedder
    model.close()
    with pytest.raises(constrain.ModelError, match="closed"):
        embedder.embed([1])
    with pytest.raises(constrain.ModelError, match="closed"):
        _ = model.embedder
