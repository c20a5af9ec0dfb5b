"""Vectors for texts: the vectors of a text's tokens, pooled into one vector of length 1.

llama.cpp can pool only tokens that it evaluates at once, and keeps the logits of all of them in memory. So this module
asks for the vectors of single tokens, a piece of the text at a time, and pools them itself.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

import llama_cpp
import numpy as np
from llama_cpp._internals import LlamaContext

from constrain.errors import ModelError
from constrain.llama.threads.openmp import release_workers
from constrain.llama.threads.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_PIECE = 128
"""Tokens evaluated at once; llama.cpp keeps the logits of each, a megabyte for the largest vocabularies."""

_KEPT = {
    llama_cpp.LLAMA_POOLING_TYPE_NONE: slice(None),
    llama_cpp.LLAMA_POOLING_TYPE_MEAN: slice(None),
    llama_cpp.LLAMA_POOLING_TYPE_CLS: slice(0, 1),
    llama_cpp.LLAMA_POOLING_TYPE_LAST: slice(-1, None),
}
"""Tokens whose mean is the vector of a text, by the pooling type in the model's file; all tokens if it has none."""


class Embedder:
    """A context for vectors, on the weights of a loaded model. Any thread may use it; texts are read one at a time.

    Args:
        llama: the loaded model; the context has the same settings.
        n_ctx: the most tokens of a text.

    Attributes:
        size: numbers in a vector.

    Raises ``ModelError`` if llama.cpp cannot make the context, or if the model makes scores instead of vectors.
    """

    def __init__(self, llama: llama_cpp.Llama, n_ctx: int) -> None:
        self._path: str = llama.model_path
        self._kept = _kept_tokens(llama)
        self._n_ctx = n_ctx
        self._piece = min(_PIECE, n_ctx)
        self._all = np.ones(self._piece, np.int8)  # output is wanted for every token
        self._in_use = threading.Lock()
        self._is_closed = False
        self.size: int = llama_cpp.llama_model_n_embd_out(llama._model.model)
        self._context = _make_context(llama, n_ctx, self._piece)
        self._memory = llama_cpp.llama_get_memory(self._context.ctx)
        self._threads = Threads(self._context.ctx)

    def close(self) -> None:
        """Frees the context once no thread uses it; after that, ``embed`` raises ``ModelError``."""
        with self._in_use:
            self._is_closed = True
            self._context.close()  # type: ignore[no-untyped-call]

    def embed(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """The vector of a text: float32 of shape (size,), of length 1.

        ``tokens``: 1 to ``n_ctx`` token ids. Raises ``ModelError`` if llama.cpp fails.
        """
        if not 1 <= len(tokens) <= self._n_ctx:
            raise ModelError(f"{self._path}: {len(tokens)} tokens; there must be 1 to {self._n_ctx}")
        with self._in_use:
            if self._is_closed:
                raise ModelError(f"the model {self._path} is closed")
            try:
                vectors = np.concatenate(list(self._vectors(np.array(tokens, np.intc))))
            finally:
                llama_cpp.llama_memory_clear(self._memory, False)  # noqa: FBT003 - the data may stay
                release_workers()
        pooled = vectors[self._kept].mean(axis=0, dtype=np.float64)
        length = float(np.linalg.norm(pooled))
        if not 0 < length < np.inf:
            raise ModelError(f"{self._path}: the vector of a text has the length {length}, so it cannot be scaled to 1")
        return np.asarray(pooled / length, np.float32)

    def _vectors(self, tokens: NDArray[np.intc]) -> Iterator[NDArray[np.float32]]:
        """The vectors of all tokens, in pieces: float32 of shape (n, size)."""
        for start in range(0, len(tokens), self._piece):
            piece = tokens[start : start + self._piece]
            batch = llama_cpp.llama_batch_get_one(piece.ctypes.data_as(llama_cpp.llama_token_p), len(piece))
            batch.logits = self._all.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))
            status = self._threads.decode(batch)
            pointer = None if status else llama_cpp.llama_get_embeddings(self._context.ctx)
            if not pointer:
                raise ModelError(f"{self._path}: evaluation failed: llama_decode returned {status}, without vectors")
            yield np.ctypeslib.as_array(pointer, shape=(len(piece), self.size)).copy()


def can_pool(pooling: int) -> bool:
    """Whether a model with a pooling type makes vectors of texts."""
    return pooling in _KEPT


def _kept_tokens(llama: llama_cpp.Llama) -> slice:
    architecture = llama.metadata.get("general.architecture", "")
    pooling = int(llama.metadata.get(f"{architecture}.pooling_type", llama_cpp.LLAMA_POOLING_TYPE_NONE))
    if not can_pool(pooling):
        raise ModelError(
            f"{llama.model_path}: this model makes no vectors of texts (its pooling type is {pooling}); take a text "
            "generation model, or an embedding model with mean, cls or last pooling"
        )
    return _KEPT[pooling]


def _make_context(llama: llama_cpp.Llama, n_ctx: int, piece: int) -> LlamaContext:
    """A context with the settings of the ``Llama``, for vectors of tokens. Freed with the model at the latest."""
    parameters = llama_cpp.llama_context_params.from_buffer_copy(llama.context_params)
    parameters.n_ctx = n_ctx
    parameters.n_batch = parameters.n_ubatch = parameters.n_outputs_max = piece
    parameters.n_seq_max = 1
    parameters.embeddings = True
    parameters.pooling_type = llama_cpp.LLAMA_POOLING_TYPE_NONE
    try:
        return LlamaContext(model=llama._model, params=parameters, verbose=False)
    except ValueError as error:
        raise ModelError(
            f"{llama.model_path}: llama.cpp cannot make a context of {n_ctx} tokens for embeddings; if there is too "
            "little memory, load the model with a smaller n_ctx"
        ) from error
