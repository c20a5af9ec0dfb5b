"""The logits of the last evaluation of a llama.cpp context, as numpy arrays."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import llama_cpp
import numpy as np

from constrain.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LogitRows:
    """Views of the logits that llama.cpp holds. A view is made once for each address: making one takes microseconds.

    Args:
        context: pointer to the context.
        n_vocab: number of tokens in the vocabulary.
        path: path of the model, for errors.
    """

    def __init__(self, context: llama_cpp.llama_context_p, n_vocab: int, path: str) -> None:
        self._context = context
        self._n_vocab = n_vocab
        self._path = path
        self._views: dict[int, NDArray[np.float32]] = {}

    def at(self, index: int) -> NDArray[np.float32]:
        """Returns the logits after a token of the last evaluation, float32 of shape (n_vocab,).

        ``index``: number of the token in the evaluation; -1 for the last one whose logits were requested. The view is
        valid until the next evaluation. Raises ``ModelError`` if llama.cpp has no logits there.
        """
        pointer = llama_cpp.llama_get_logits_ith(self._context, index)
        if not pointer:
            raise ModelError(
                f"{self._path}: llama.cpp returned no logits for a token, although they were requested "
                f"(index {index}); this is a fault of this package or of the llama.cpp build, please report it"
            )
        address = ctypes.addressof(pointer.contents)
        view = self._views.get(address)
        if view is None:
            if len(self._views) >= _KEPT_VIEWS:  # llama.cpp has moved its buffer
                self._views.clear()
            view = self._views[address] = np.ctypeslib.as_array(pointer, shape=(self._n_vocab,))
        return view


_KEPT_VIEWS = 256
"""Views that are kept: at least one for each row that an evaluation usually has."""
