"""The importance of the columns of each matrix: how large the activations are that it multiplies.

llama.cpp's quantizer rounds weights so that the error of products is small, and needs for that the mean of the squared
activations of each column. A callback of llama.cpp collects them while texts are evaluated.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np
from llama_cpp import llama_cpp as binding

from constrain.llama.ggml import F32, TensorPointer, ggml
from constrain.llama.weights.evaluating import TextEvaluator

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray


def measure_importance(llama: llama_cpp.Llama, texts: Iterable[str]) -> Mapping[str, NDArray[np.float32]]:
    """Returns the mean squared activation of each column of each matrix, float32 of shape (columns,), by its name.

    Matrices of experts are left out: each sees only some of the tokens. Raises ``ModelError`` as ``TextEvaluator``.
    """
    collector = _Collector()
    callback = binding.ggml_backend_sched_eval_callback(collector.observe)
    with TextEvaluator(llama, callback) as evaluator:
        for text in texts:
            for _ in evaluator.logits(evaluator.tokens(text)):
                pass
    if collector.error is not None:
        raise collector.error
    return collector.means()


class _Collector:
    """The sums of squared activations; ``observe`` is llama.cpp's callback. ``error``: the first one that it met."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._sums: dict[str, NDArray[np.float64]] = {}
        self._counts: dict[str, int] = {}
        self._wanted: dict[int, bool] = {}  # by operation

    def observe(self, pointer: int, asks: bool, _: Any) -> bool:  # noqa: FBT001 - llama.cpp's signature
        """Answers whether a tensor is wanted if llama.cpp ``asks``; otherwise reads it, as it is computed now."""
        try:
            tensor = ctypes.cast(pointer, TensorPointer).contents
            if not self._is_product(tensor.op):
                return False
            name = tensor.src[0].contents.name.decode("utf-8", "replace")
            if not name.endswith(".weight") or tensor.src[1].contents.type != F32:
                return False
            if not asks:
                self._add(name, tensor.src[1])
        except BaseException as error:  # noqa: BLE001 - an error cannot pass through llama.cpp
            self.error = self.error or error
        return True

    def means(self) -> dict[str, NDArray[np.float32]]:
        """The mean squared activations of all texts so far."""
        return {name: (each / self._counts[name]).astype(np.float32) for name, each in self._sums.items()}

    def _is_product(self, operation: int) -> bool:
        if operation not in self._wanted:
            self._wanted[operation] = ggml().op_name(operation) == b"MUL_MAT"
        return self._wanted[operation]

    def _add(self, name: str, activations: ctypes._Pointer[ctypes.Structure]) -> None:
        columns, *others = activations.contents.ne
        values = np.empty((int(np.prod(others)), columns), np.float32)
        ggml().backend_tensor_get(activations, values.ctypes.data, 0, values.nbytes)
        np.square(values, out=values)
        self._sums[name] = self._sums.get(name, 0.0) + values.sum(0, dtype=np.float64)
        self._counts[name] = self._counts.get(name, 0) + len(values)
