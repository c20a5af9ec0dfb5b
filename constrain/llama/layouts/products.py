"""Matrix products as a decode computes them, by the format of the weights.

Weights are stored as llama.cpp would store them: in a layout of its own where it has one for the format on this
processor ("repacked"), otherwise as they are in the file.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from constrain.errors import ModelError
from constrain.llama.ggml import CPU, F32, InitParameters, ggml

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Self


class Products:
    """Multiplies on the processor, with a number of threads. To be closed, by ``with`` or ``close``.

    ``extra_buffers``: whether weights may be stored in layouts of their own, as llama.cpp does by default.
    Raises ``ModelError`` if ggml cannot compute.
    """

    def __init__(self, n_threads: int, *, extra_buffers: bool = True) -> None:
        self._ggml = ggml()
        self._device = self._ggml.backend_dev_by_type(CPU)
        self._backend = self._ggml.backend_dev_init(self._device, None) if self._device else None
        if not self._backend:
            raise ModelError("llama.cpp cannot compute on this processor: ggml has no device for it")
        self._ggml.set_n_threads(self._device, self._backend, n_threads)
        self._plain = self._ggml.backend_dev_buffer_type(self._device)
        self._extras = self._ggml.extra_buffer_types(self._device) if extra_buffers else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees what ggml computes with."""
        if self._backend:
            self._ggml.backend_free(self._backend)
            self._backend = None

    def is_repacked(self, kind: int, columns: int, rows: int) -> bool:
        """Whether llama.cpp stores a matrix of a format in a layout of its own on this processor."""
        return self._buffer_type(kind, columns, rows) != int(self._plain)

    def multiply(
        self, kind: int, shape: tuple[int, int], data: bytes, activations: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Returns the product of activations with a matrix, float32 of shape (n, rows).

        Args:
            kind: number of the format of the matrix.
            shape: its rows and columns.
            data: its bytes.
            activations: float32 of shape (n, columns).
        """
        library = self._ggml
        rows, columns = shape
        context = library.init(InitParameters(library.tensor_overhead(), None, True))  # noqa: FBT003
        buffer = None
        try:
            weight = library.new_tensor_2d(context, kind, columns, rows)
            buffer = library.backend_alloc_ctx_tensors_from_buft(context, self._buffer_type(kind, columns, rows))
            if not buffer:
                raise ModelError(f"there is too little memory for {len(data)} bytes of weights")
            library.backend_tensor_set(weight, data, 0, len(data))
            with self._product([weight], activations) as (graph, products):
                self._compute(graph)
                result = np.empty((len(activations), rows), np.float32)
                library.backend_tensor_get(products[0], result.ctypes.data, 0, result.nbytes)
            return result
        finally:
            if buffer:
                library.backend_buffer_free(buffer)
            library.free(context)

    @contextlib.contextmanager
    def _product(
        self, weights: Sequence[ctypes._Pointer[ctypes.Structure]], values: NDArray[np.float32]
    ) -> Iterator[tuple[int, list[ctypes._Pointer[ctypes.Structure]]]]:
        """Yields a graph of products, and the products of weights with activations, float32 of shape (n, columns)."""
        library = self._ggml
        count, columns = values.shape
        nodes = 2 * len(weights) + 8
        room = (nodes + 1) * library.tensor_overhead() + library.graph_overhead_custom(nodes, False)  # noqa: FBT003
        context = library.init(InitParameters(room, None, True))  # noqa: FBT003
        buffer = None
        try:
            activations = library.new_tensor_2d(context, F32, columns, count)
            graph = library.new_graph_custom(context, nodes, False)  # noqa: FBT003
            products = [library.mul_mat(context, each, activations) for each in weights]
            for each in products:
                library.build_forward_expand(graph, each)
            buffer = library.backend_alloc_ctx_tensors_from_buft(context, self._plain)
            if not buffer:
                raise ModelError(f"there is too little memory for the products of {count} tokens")
            library.backend_tensor_set(activations, values.ctypes.data, 0, values.nbytes)
            yield graph, products
        finally:
            if buffer:
                library.backend_buffer_free(buffer)
            library.free(context)

    def _compute(self, graph: int) -> None:
        if status := self._ggml.backend_graph_compute(self._backend, graph):
            raise ModelError(f"ggml cannot compute a product: status {status}")

    def _buffer_type(self, kind: int, columns: int, rows: int) -> int:
        """The buffer type in which llama.cpp would store a matrix: the first that can multiply it."""
        library = self._ggml
        context = library.init(InitParameters(4 * library.tensor_overhead(), None, True))  # noqa: FBT003
        try:
            weight = library.new_tensor_2d(context, kind, columns, rows)
            product = library.mul_mat(context, weight, library.new_tensor_2d(context, F32, columns, 512))
            for extra in self._extras:
                buffer = library.backend_buft_alloc_buffer(extra, 0)
                weight.contents.buffer = buffer
                fits = library.backend_dev_supports_op(self._device, product)
                weight.contents.buffer = None
                library.backend_buffer_free(buffer)
                if fits:
                    return extra
        finally:
            library.free(context)
        return int(self._plain)
