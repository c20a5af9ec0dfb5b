"""A sampler of llama.cpp that forbids tokens, computed in the graph of the model.

    ids --rows of the table--> 0 or minus infinity for each token --added to--> logits

The mask of the next token is copied to the device before each evaluation, as one number for each 16 tokens: two bits a
token, where the logits would be 32. A number is the row of a table with the values for these 16 tokens. The table, four
megabytes, is copied to the device once for each answer.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np

from constrain.llama.ggml import F32, I32, InitParameters, TensorPointer, ggml

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_TOGETHER = 16
"""Tokens whose bits make up one number."""

_ROWS = 1 << _TOGETHER


class MaskSampler:
    """A sampler that llama.cpp runs after an evaluation. It must be the first one of a chain, which then owns it.

    Args:
        n_vocab: number of tokens.

    Attributes:
        pointer: the sampler, for ``llama_sampler_chain_add``. This object must live as long as the chain.
    """

    def __init__(self, n_vocab: int) -> None:
        self._bits = np.zeros(2 * -(-n_vocab // 32), np.int32)
        self._ids: Any = None  # the input of the present graph
        self._table: Any = None
        self._memory: int | None = None
        self._error: BaseException | None = None
        self._interface = llama_cpp.llama_sampler_i(
            name=llama_cpp.llama_sampler_i_name(lambda _: b"mask"),
            backend_init=llama_cpp.llama_sampler_i_backend_init(self._guarded(self._begin)),
            backend_apply=llama_cpp.llama_sampler_i_backend_apply(self._guarded(self._extend)),
            backend_set_input=llama_cpp.llama_sampler_i_backend_set_input(self._guarded(self._set_input)),
            backend_reset=llama_cpp.llama_sampler_i_backend_reset(self._guarded(self._reset)),
        )
        self.pointer = llama_cpp.llama_sampler_init(ctypes.byref(self._interface), None)

    def set_bits(self, mask: NDArray[np.uint32]) -> None:
        """Sets the allowed tokens of the next evaluation: uint32 of shape (ceil(n_vocab / 32),), a bit for each."""
        self._bits[:] = mask.view(np.uint16)

    def check(self) -> None:
        """Raises the error that occurred while llama.cpp called the sampler."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def close(self) -> None:
        """Frees the memory on the device; no evaluation may follow with the sampler."""
        if self._memory is not None:
            library = ggml()
            library.backend_buffer_free(self._memory)
            library.free(self._context)
            self._memory = None

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Keeps an error for ``check``: llama.cpp cannot pass it on."""

        def call(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except BaseException as error:  # noqa: BLE001 - raised by check
                self._error = error
                return False

        return call

    def _begin(self, _: Any, buffer_type: int, n_outputs: int) -> bool:
        """Copies the table to the device; returns whether the sampler works for so many outputs of a sequence."""
        if n_outputs != 1:
            return False  # a sequence has one mask at a time
        library = ggml()
        self._context = library.init(InitParameters(1 << 12, None, True))  # noqa: FBT003 - memory comes from the device
        table = library.new_tensor_2d(self._context, F32, _TOGETHER, _ROWS)
        self._memory = library.backend_alloc_ctx_tensors_from_buft(self._context, buffer_type)
        if not self._memory:
            library.free(self._context)
            self._memory = None
            return False
        values = _values()
        library.backend_tensor_set(table, values.ctypes.data, 0, values.nbytes)
        self._table = table
        return True

    def _extend(self, _: Any, context: int, __: int, data: Any) -> None:
        """Adds the mask to the graph."""
        library, data = ggml(), data.contents
        logits = ctypes.cast(data.logits, TensorPointer)
        count = logits.contents.ne[0]
        if self._ids is None:
            self._ids = library.new_tensor_1d(context, I32, 2 * -(-count // 32))
            library.set_name(self._ids, b"mask")
            library.set_input(self._ids)
        rows = library.get_rows(context, self._table, self._ids)
        flat = library.reshape_1d(context, rows, _TOGETHER * self._ids.contents.ne[0])
        mask = library.view_1d(context, flat, count, 0)
        data.logits = ctypes.cast(library.add(context, logits, mask), ctypes.c_void_p)

    def _set_input(self, _: Any) -> None:
        ggml().backend_tensor_set(self._ids, self._bits.ctypes.data, 0, self._bits.nbytes)

    def _reset(self, _: Any) -> None:
        self._ids = None


@cache
def _values() -> NDArray[np.float32]:
    """Float32 of shape (65536, 16): 0 where a bit of the row's number is set, minus infinity where it is not."""
    numbers = np.arange(_ROWS, dtype=np.uint16)
    bits = np.unpackbits(numbers.view(np.uint8).reshape(_ROWS, 2), axis=1, bitorder="little")
    values: NDArray[np.float32] = np.where(bits, np.float32(0), np.float32(-np.inf))
    return values
