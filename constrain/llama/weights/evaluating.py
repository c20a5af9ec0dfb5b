"""Evaluates texts with a model and hands over the logits after each token: for importance and comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np
from llama_cpp._internals import LlamaContext

from constrain.errors import ModelError
from constrain.llama.contexts.batch import Batch, Piece
from constrain.llama.contexts.logits import LogitRows
from constrain.llama.threads.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Self

MAX_TEXT_TOKENS = 2048
"""Tokens of a text that are read to measure a copy of a model; the rest of a longer text is left out. Beyond: cut."""

_PIECE = 64
"""Tokens evaluated at once; llama.cpp keeps the logits of each, a megabyte for the largest vocabularies."""


class TextEvaluator:
    """A context on the weights of a loaded model. To be closed, by ``with`` or ``close``, before the model.

    Args:
        llama: the loaded model; the context has the same settings.
        observe: llama.cpp's callback for each tensor that is computed; the caller keeps it alive.

    Raises ``ModelError`` if llama.cpp cannot make the context.
    """

    def __init__(self, llama: llama_cpp.Llama, observe: Any = None) -> None:
        self._llama = llama
        parameters = llama_cpp.llama_context_params.from_buffer_copy(llama.context_params)
        parameters.n_ctx = MAX_TEXT_TOKENS
        parameters.n_batch = parameters.n_ubatch = parameters.n_outputs_max = _PIECE
        parameters.n_seq_max = 1
        if observe is not None:
            parameters.cb_eval = observe
        try:
            self._context = LlamaContext(model=llama._model, params=parameters, verbose=False)
        except ValueError as error:
            raise ModelError(f"{llama.model_path}: there is too little memory to read a text") from error
        pointer = self._context.ctx
        self._memory = llama_cpp.llama_get_memory(pointer)
        self._threads = Threads(pointer)
        self._rows = LogitRows(pointer, llama.n_vocab(), llama.model_path)
        self._batch = Batch(_PIECE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees the context."""
        self._context.close()  # type: ignore[no-untyped-call]

    def tokens(self, text: str) -> NDArray[np.intc]:
        """The token ids of a text, int32 of shape (n,): at most ``MAX_TEXT_TOKENS``."""
        found = self._llama.tokenize(text.encode(), add_bos=True, special=False)
        return np.asarray(found[:MAX_TEXT_TOKENS], dtype=np.intc)

    def logits(self, tokens: Sequence[int] | NDArray[np.intc]) -> Iterator[NDArray[np.float32]]:
        """Evaluates a text; yields the logits after each piece of its tokens, float32 of shape (n, n_vocab)."""
        llama_cpp.llama_memory_clear(self._memory, False)  # noqa: FBT003
        wanted = np.asarray(tokens, dtype=np.intc)
        for begin in range(0, len(wanted), _PIECE):
            piece = wanted[begin : begin + _PIECE]
            self._batch.fill([Piece(0, begin, piece, len(piece))])
            if status := self._threads.decode(self._batch.batch):
                raise ModelError(f"{self._llama.model_path}: evaluation failed: llama_decode returned {status}")
            yield np.stack([self._rows.at(row) for row in range(len(piece))])
