"""llama.cpp's own quantizer: writes a copy of a model with other formats."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import uuid
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np

from constrain.errors import ModelError
from constrain.llama.ggml import ggml
from constrain.llama.loading import llama_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_FILE_TYPES = {
    "q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0,
    "q4_1": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_1,
    "q5_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_0,
    "q5_1": llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_1,
    "q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
    "q4_K": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_S,
    "q5_K": llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_K_S,
    "q6_K": llama_cpp.LLAMA_FTYPE_MOSTLY_Q6_K,
    "iq4_nl": llama_cpp.LLAMA_FTYPE_MOSTLY_IQ4_NL,
}
"""The file type that llama.cpp writes into the metadata of a file that has mostly one format."""

FORMATS = tuple(_FILE_TYPES)
"""Formats that a copy may have."""

_PROGRESS = re.compile(r"\[\s*(\d+)/\s*(\d+)\]")
"""The beginning of the quantizer's message about a tensor: its number, and how many there are."""


class _Override(ctypes.Structure):
    _fields_ = (("pattern", ctypes.c_char_p), ("type", ctypes.c_int))


class _Importance(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("data", ctypes.POINTER(ctypes.c_float)), ("size", ctypes.c_size_t))


def quantize(
    source: Path,
    target: Path,
    formats: Mapping[str, str],
    *,
    importance: Mapping[str, NDArray[np.float32]],
    n_threads: int,
    report: Callable[[float], None],
) -> None:
    """Writes a copy of a model to ``target``, which appears only when it is complete.

    Args:
        source: the model, or the first of its files; the copy is one file.
        target: the file to write; an older one is replaced.
        formats: name of the format of each matrix; other tensors stay as they are.
        importance: mean squared activations of the columns of matrices; matrices without are rounded evenly.
        n_threads: threads to compute with.
        report: called with the share that is done, 0 to 1.

    Raises ``ModelError`` if llama.cpp fails, and ``OSError`` if the file cannot be written.
    """
    if target.exists() and target.samefile(source):
        raise ModelError(f"{target} is the original; give another path for the copy")
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.nthread = n_threads
    parameters.allow_requantize = True
    most = max(FORMATS, key=list(formats.values()).count)
    parameters.ftype = _FILE_TYPES[most]
    kinds = ggml().kinds
    overrides = (_Override * (len(formats) + 1))(
        *(_Override(f"^{re.escape(name)}$".encode(), kinds[form]) for name, form in formats.items())
    )
    weighted = {name: np.ascontiguousarray(each, np.float32) for name, each in importance.items()}
    entries = (_Importance * (len(weighted) + 1))(
        *(
            _Importance(name.encode(), each.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), each.size)
            for name, each in weighted.items()
        )
    )
    _set_pointer(parameters, "tt_overrides", overrides)
    if weighted:
        _set_pointer(parameters, "imatrix", entries)
    draft = target.with_name(f".{uuid.uuid4().hex}.tmp")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _require_room(source, target)
        with _collected_progress(report) as errors:
            status = llama_cpp.llama_model_quantize(os.fsencode(source), os.fsencode(draft), ctypes.byref(parameters))
        if status:
            reason = " ".join("".join(errors).split()) or f"status {status}"
            raise ModelError(f"{source}: llama.cpp cannot quantize it: {reason}")
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _set_pointer(parameters: Any, name: str, entries: Any) -> None:
    """Sets a pointer field to an array; llama-cpp-python declares other types for these fields."""
    kind = dict(parameters._fields_)[name]
    setattr(parameters, name, ctypes.cast(entries, kind))


def _require_room(source: Path, target: Path) -> None:
    """Raises ``OSError`` if the disk has no room for a file as large as the original."""
    needed, free = source.stat().st_size, shutil.disk_usage(target.parent).free
    if free < needed:
        raise OSError(f"{target.parent} has {free >> 20} MiB left, and the copy may take {needed >> 20} MiB")


@contextlib.contextmanager
def _collected_progress(report: Callable[[float], None]) -> Iterator[list[str]]:
    """Reports the progress that llama.cpp logs; yields a list of its errors."""

    def receive(text: str) -> None:
        if found := _PROGRESS.match(text):
            report(int(found[1]) / max(1, int(found[2])))

    with llama_log(receive) as errors:
        yield errors
