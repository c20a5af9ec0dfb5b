"""The time of matrix products, by the format of the weights: what ggml does with most of the time of a decode.

Weights are stored as llama.cpp would store them: in a layout of its own where it has one for the format on this
processor ("repacked"), otherwise as they are in the file. Their values do not matter for the time, so they are zero.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import time
from typing import TYPE_CHECKING

import numpy as np

from constrain.errors import ModelError
from constrain.llama.ggml import CPU, F32, InitParameters, ggml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Self

_WORKING_SET = 64 << 20
"""Bytes of weights that take turns, so that no product finds its weights in a processor cache, as in a decode."""

_MAX_COPIES = 256
"""Matrices that take turns: enough for the working set, unless matrices are tiny."""

_RUNS = 3
"""Least number of runs, of which the fastest counts."""

_SECONDS = 0.02
"""Seconds that runs of one product take at least together."""


class Products:
    """Times products on the processor, with a number of threads. To be closed, by ``with`` or ``close``.

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

    def seconds(self, kind: int, columns: int, rows: int, tokens: Sequence[int], working_set: int) -> list[float]:
        """Returns how long one product takes, for each number of tokens.

        Args:
            kind: number of the format of the weights, whose blocks must divide ``columns``.
            columns: columns of the matrix of weights.
            rows: rows of the matrix of weights.
            tokens: numbers of tokens that are multiplied at once.
            working_set: bytes of all weights that a decode reads; small models stay in processor caches.
        """
        library = self._ggml
        size = library.row_size(kind, columns) * rows
        copies = max(1, min(_MAX_COPIES, math.ceil(min(working_set, _WORKING_SET) / size)))
        context = library.init(InitParameters((copies + 1) * library.tensor_overhead(), None, True))  # noqa: FBT003
        buffer = None
        try:
            weights = [library.new_tensor_2d(context, kind, columns, rows) for _ in range(copies)]
            buffer = library.backend_alloc_ctx_tensors_from_buft(context, self._buffer_type(kind, columns, rows))
            if not buffer:
                raise ModelError(f"there is too little memory for {copies * size} bytes of weights")
            zeros = (ctypes.c_uint8 * size)()
            for each in weights:
                library.backend_tensor_set(each, zeros, 0, size)
            return [self._time(weights, columns, count) / copies for count in tokens]
        finally:
            if buffer:
                library.backend_buffer_free(buffer)
            library.free(context)

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

    def _time(self, weights: Sequence[ctypes._Pointer[ctypes.Structure]], columns: int, count: int) -> float:
        """Returns the seconds of the products of all weights with the same activations, of shape (count, columns)."""
        values = np.random.default_rng(0).normal(size=(count, columns)).astype(np.float32)
        with self._product(weights, values) as (graph, _):
            self._compute(graph)
            times: list[float] = []
            while len(times) < _RUNS or sum(times) < _SECONDS:
                started = time.perf_counter()
                self._compute(graph)
                times.append(time.perf_counter() - started)
        return min(times)

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
