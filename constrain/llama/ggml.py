"""ggml, the library below llama.cpp: its tensors, and the functions of it that this package calls.

llama-cpp-python declares no functions of ggml. The declarations here follow ggml's headers ``ggml.h`` and
``ggml-backend.h``. The layout of a tensor is checked against the library before its first use.
"""

from __future__ import annotations

import ctypes
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import llama_cpp

from constrain.errors import ModelError
from constrain.llama.prebuilt.finding import library_version

if TYPE_CHECKING:
    from collections.abc import Mapping

Pointer = ctypes.c_void_p

F32 = 0
"""Number of the format with 32-bit floats."""

CPU = 0
"""Number of the device type that computes with processor and main memory."""

_MAX_EXTRAS = 16
"""Buffer types of a processor with layouts of their own that are looked at; ggml has up to four."""


class Tensor(ctypes.Structure):
    """A tensor of ggml: ``ne`` are the extents (columns first), ``src`` the operands of its operation ``op``."""


TensorPointer = ctypes.POINTER(Tensor)

Tensor._fields_ = [
    ("type", ctypes.c_int),
    ("buffer", Pointer),
    ("ne", ctypes.c_int64 * 4),
    ("nb", ctypes.c_size_t * 4),
    ("op", ctypes.c_int),
    ("op_params", ctypes.c_int32 * 16),
    ("flags", ctypes.c_int32),
    ("src", TensorPointer * 10),
    ("view_src", Pointer),
    ("view_offs", ctypes.c_size_t),
    ("data", Pointer),
    ("name", ctypes.c_char * 64),
    ("extra", Pointer),
    ("padding", ctypes.c_char * 8),
]


class InitParameters(ctypes.Structure):
    """The arguments of ``ggml_init``."""

    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", Pointer), ("no_alloc", ctypes.c_bool))


_SIZE, _NAME = ctypes.c_size_t, ctypes.c_char_p

_DECLARED: Mapping[str, tuple[Any, ...]] = {
    "ggml_init": (Pointer, InitParameters),
    "ggml_free": (None, Pointer),
    "ggml_new_tensor_2d": (TensorPointer, Pointer, ctypes.c_int, ctypes.c_int64, ctypes.c_int64),
    "ggml_set_name": (TensorPointer, TensorPointer, _NAME),
    "ggml_mul_mat": (TensorPointer, Pointer, TensorPointer, TensorPointer),
    "ggml_new_graph_custom": (Pointer, Pointer, _SIZE, ctypes.c_bool),
    "ggml_build_forward_expand": (None, Pointer, TensorPointer),
    "ggml_graph_overhead_custom": (_SIZE, _SIZE, ctypes.c_bool),
    "ggml_tensor_overhead": (_SIZE,),
    "ggml_row_size": (_SIZE, ctypes.c_int, ctypes.c_int64),
    "ggml_blck_size": (ctypes.c_int64, ctypes.c_int),
    "ggml_quantize_chunk": (_SIZE, ctypes.c_int, Pointer, Pointer, *(ctypes.c_int64,) * 3, Pointer),
    "ggml_type_name": (_NAME, ctypes.c_int),
    "ggml_op_name": (_NAME, ctypes.c_int),
    "ggml_backend_dev_by_type": (Pointer, ctypes.c_int),
    "ggml_backend_dev_init": (Pointer, Pointer, _NAME),
    "ggml_backend_dev_buffer_type": (Pointer, Pointer),
    "ggml_backend_dev_backend_reg": (Pointer, Pointer),
    "ggml_backend_dev_supports_op": (ctypes.c_bool, Pointer, TensorPointer),
    "ggml_backend_reg_get_proc_address": (Pointer, Pointer, _NAME),
    "ggml_backend_buft_alloc_buffer": (Pointer, Pointer, _SIZE),
    "ggml_backend_alloc_ctx_tensors_from_buft": (Pointer, Pointer, Pointer),
    "ggml_backend_buffer_free": (None, Pointer),
    "ggml_backend_tensor_set": (None, TensorPointer, Pointer, _SIZE, _SIZE),
    "ggml_backend_tensor_get": (None, TensorPointer, Pointer, _SIZE, _SIZE),
    "ggml_backend_graph_compute": (ctypes.c_int, Pointer, Pointer),
    "ggml_backend_free": (None, Pointer),
}
"""Result and arguments of each function."""


class Ggml:
    """The functions of ggml, as attributes without the prefix ``ggml_``. Raises ``ModelError`` if one is missing."""

    def __init__(self) -> None:
        library = llama_cpp.llama_cpp._lib  # the system looks up names in the libraries that it needs, too
        for name, (result, *arguments) in _DECLARED.items():
            function = getattr(library, name, None)
            if function is None:
                raise ModelError(f"llama-cpp-python {library_version()} has no {name}; install another version")
            function.restype, function.argtypes = result, arguments
            setattr(self, name.removeprefix("ggml_"), function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)  # for type checkers: __init__ sets the attributes

    @cached_property
    def kinds(self) -> Mapping[str, int]:
        """The number of each format of tensors by its name."""
        # The quantizer's default, "as the format says", is the number after the last format.
        count = llama_cpp.llama_model_quantize_default_params().token_embedding_type
        named = {(self.type_name(kind) or b"").decode(): kind for kind in range(count) if self.blck_size(kind)}
        return {name: kind for name, kind in named.items() if name}

    def extra_buffer_types(self, device: int) -> list[int]:
        """The buffer types in which a processor keeps weights in layouts of its own, best first."""
        found = self.backend_reg_get_proc_address(
            self.backend_dev_backend_reg(device), b"ggml_backend_dev_get_extra_bufts"
        )
        if not found:
            return []
        listed = ctypes.CFUNCTYPE(ctypes.POINTER(Pointer), Pointer)(found)(device)
        extras: list[int] = []
        while listed and len(extras) < _MAX_EXTRAS and listed[len(extras)]:
            extras.append(listed[len(extras)])
        return extras

    def set_n_threads(self, device: int, backend: int, n_threads: int) -> None:
        """Sets the number of threads with which a processor computes."""
        registry = self.backend_dev_backend_reg(device)
        found = self.backend_reg_get_proc_address(registry, b"ggml_backend_set_n_threads")
        if found:
            ctypes.CFUNCTYPE(None, Pointer, ctypes.c_int)(found)(backend, n_threads)


@cache
def ggml() -> Ggml:
    """The library, once its layout of tensors is known to be the one declared here. Raises ``ModelError``."""
    library = Ggml()
    context = library.init(InitParameters(1 << 16, None, True))  # noqa: FBT003
    try:
        tensor = library.new_tensor_2d(context, F32, 3, 5)
        library.set_name(tensor, b"weight")
        product = library.mul_mat(context, tensor, library.new_tensor_2d(context, F32, 3, 2)).contents
        agrees = (
            list(tensor.contents.ne) == [3, 5, 1, 1]
            and tensor.contents.name == b"weight"
            and product.src[0].contents.name == b"weight"
            and list(product.ne) == [5, 2, 1, 1]
            and library.op_name(product.op) == b"MUL_MAT"
        )
    finally:
        library.free(context)
    if not agrees:
        raise ModelError(
            f"llama-cpp-python {library_version()} lays out its tensors in a way that this version of constrain "
            "does not know; install another version of one of the two"
        )
    return library
