"""The structures shared with llama.cpp: taken from the installed llama_cpp, and checked at import.

The kernel writes candidates directly into the array that llama.cpp's samplers read. So their layout must be the one
that the kernel was built for: a 32-bit id, a 32-bit float logit, a 32-bit float probability.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp
import numpy as np

from constrain.errors import ModelError

CANDIDATE = np.dtype(llama_cpp.llama_token_data)
"""One candidate token: ``id``, ``logit``, ``p``."""

_EXPECTED = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


PROCESSOR = 0
"""Number of the device type that computes with processor and main memory; llama.cpp's system info has its features."""

GPUS = (1, 2)
"""Numbers of the device types of GPUs: with memory of their own, and with main memory."""


class Candidates:
    """A buffer for the candidates of one step, as wide as the vocabulary, and llama.cpp's view of the same memory."""

    def __init__(self, n_vocab: int) -> None:
        self._memory = (llama_cpp.llama_token_data * n_vocab)()
        self.buffer = np.ctypeslib.as_array(self._memory)
        self._data = ctypes.cast(self._memory, llama_cpp.llama_token_data_p)
        self._array = llama_cpp.llama_token_data_array()
        self.reference = ctypes.byref(self._array)

    def present(self, count: int) -> None:
        """Presents the first ``count`` candidates, in order of their ids, to the samplers."""
        array = self._array
        array.data = self._data  # type: ignore[assignment]  # llama_cpp types this pointer as an array
        array.size = count
        array.selected = -1
        array.sorted = False

    def first(self) -> int:
        """The id of the first candidate."""
        return int(self._data[0].id)

    def selected(self) -> int:
        """The id of the candidate that the samplers chose."""
        array = self._array
        if not 0 <= array.selected < array.size:
            raise ModelError("llama.cpp's samplers chose no token")
        return int(array.data[array.selected].id)


def devices() -> list[tuple[str, str, int]]:
    """The devices on which llama.cpp may compute: name, description, and number of the type of each."""
    library: Any = llama_cpp.llama_cpp._lib
    try:
        count, get = library.ggml_backend_dev_count, library.ggml_backend_dev_get
        texts = library.ggml_backend_dev_name, library.ggml_backend_dev_description
        kind = library.ggml_backend_dev_type
    except AttributeError:  # a build that does not tell
        return []
    count.restype, get.restype, get.argtypes = ctypes.c_size_t, ctypes.c_void_p, [ctypes.c_size_t]
    for of in texts:
        of.restype, of.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    kind.restype, kind.argtypes = ctypes.c_int, [ctypes.c_void_p]
    listed = [get(index) for index in range(count())]
    return [(*(of(each).decode(errors="replace") for of in texts), kind(each)) for each in listed]


def gpus() -> list[str]:
    """Descriptions of the GPUs that llama.cpp has found."""
    return [about for _, about, kind in devices() if kind in GPUS]


def _check() -> None:
    """Raises ``ModelError`` if this package does not know how to call the installed llama_cpp."""
    missing = [name for name in ("llama_n_ctx_seq", "llama_log_get") if not hasattr(llama_cpp, name)]
    if missing or len(llama_cpp.llama_sampler_init_penalties.argtypes) != _PENALTY_ARGUMENTS:
        raise ModelError(f"llama-cpp-python {llama_cpp.__version__} is too old; 0.3.36 or newer is needed")
    names = [field[0] for field in llama_cpp.llama_token_data_array._fields_]
    if CANDIDATE != _EXPECTED or names != ["data", "size", "selected", "sorted"] or not _library_agrees():
        raise ModelError(
            f"llama-cpp-python {llama_cpp.__version__} lays out its candidate tokens as {CANDIDATE} in {names}, "
            f"which this version of constrain does not know; install another version of one of the two"
        )


def _library_agrees() -> bool:
    """Whether llama.cpp reads candidates correctly: it must find the largest logit."""
    candidates = Candidates(3)
    candidates.buffer[:] = [(5, 0.0, 0.0), (6, 2.0, 0.0), (7, 1.0, 0.0)]
    candidates.present(3)
    sampler = llama_cpp.llama_sampler_init_greedy()
    llama_cpp.llama_sampler_apply(sampler, candidates.reference)
    llama_cpp.llama_sampler_free(sampler)
    return candidates.selected() == 6


_PENALTY_ARGUMENTS = 5
"""Arguments of llama.cpp's penalties sampler since it takes the size of the vocabulary."""

_check()
