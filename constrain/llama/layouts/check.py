"""Checks the layouts in which llama.cpp stores weights on this processor, before a model is loaded into them.

Some builds of llama.cpp end the process with a segmentation fault in the kernels of such a layout, and only on some
processors: where a compiler drops the configuration of AMX's tiles, or where threads do not ask the system for tiles
(llama.cpp's issue 20824). So a child process multiplies matrices in every layout with several threads and compares the
products with those of the plain layout. If it dies, or a product is wrong, models are loaded without these layouts.

``python -m constrain.llama.layouts.check`` is the child. Its result is kept in the cache directory.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import llama_cpp
import numpy as np

from constrain.errors import ModelError
from constrain.llama.ggml import ggml
from constrain.llama.layouts.products import Products
from constrain.llama.prebuilt.finding import library_version
from constrain.llama.processor import processor_name
from constrain.private_folders import find_directory, make_private, replace_file

_AMX = b"AMX_INT8 = 1"
"""llama.cpp's words for a build with AMX kernels, on a processor that has them."""

_FORMATS = ("q4_0", "q4_1", "q8_0", "q4_K", "q5_K", "q6_K", "iq4_nl", "iq4_xs")
"""Formats that have layouts of their own on some processor."""

_COLUMNS, _ROWS, _TOKENS = 512, 256, (1, 3, 16, 33)
"""Extents of the products: whole blocks and tiles, and numbers of tokens that leave incomplete tiles."""

_THREADS = 4
"""Threads of the check: several, because a fault may occur in worker threads only."""

_MOST_ERROR = 0.02
"""Greatest difference from the plain product, as a share of its root mean square. Rounding of activations to 8 bits
makes some 0.005; a wrong tile makes 1."""

_SECONDS = 60
"""Seconds that the child may take; it takes about one."""


def are_layouts_right(n_threads: int = _THREADS) -> bool:
    """Whether products in llama.cpp's own layouts equal those of the plain layout. May end the process."""
    random = np.random.default_rng(7)
    weights = random.normal(size=(_ROWS, _COLUMNS)).astype(np.float32)
    kinds = ggml().kinds
    with Products(n_threads) as own, Products(n_threads, extra_buffers=False) as plain:
        for form in _FORMATS:
            if form not in kinds or not own.is_repacked(kinds[form], _COLUMNS, _ROWS):
                continue
            data = _quantized(kinds[form], weights)
            for count in _TOKENS:
                activations = random.normal(size=(count, _COLUMNS)).astype(np.float32)
                found, expected = (
                    each.multiply(kinds[form], weights.shape, data, activations) for each in (own, plain)
                )
                error = np.sqrt(np.mean((found - expected) ** 2) / np.mean(expected**2))
                if not error <= _MOST_ERROR:
                    return False
    return True


def _quantized(kind: int, weights: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> bytes:
    """The bytes of a matrix, float32 of shape (rows, columns), in a format."""
    rows, columns = weights.shape
    data = (ctypes.c_uint8 * (int(ggml().row_size(kind, columns)) * rows))()
    importance = np.ones(columns, np.float32)
    ggml().quantize_chunk(kind, weights.ctypes.data, data, 0, rows, columns, importance.ctypes.data)
    return bytes(data)


def uses_extra_buffers() -> bool:
    """Whether models are loaded into llama.cpp's own layouts: always, but where an AMX build fails the check."""
    return _AMX not in llama_cpp.llama_print_system_info() or pass_the_check()


def pass_the_check() -> bool:
    """Whether the layouts are right on this processor, by the kept result of a child process, or by a new one."""
    record = _record()
    if record is not None:
        with contextlib.suppress(OSError, ValueError):
            return json.loads(record.read_bytes()) is True
    try:
        is_right = _ask_a_child()
    except (OSError, subprocess.TimeoutExpired):  # asked again next time
        return False
    if record is not None:
        with contextlib.suppress(OSError):  # checked again next time
            replace_file(record, json.dumps(is_right).encode())
    return is_right


@functools.cache
def _ask_a_child() -> bool:
    """Returns whether a child process finds the layouts right; asks once, as a processor does not change."""
    done = subprocess.run(  # noqa: S603 - this module
        [sys.executable, "-m", __name__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_SECONDS,
        check=False,
    )
    return done.returncode == 0


def _record() -> Path | None:
    """The file that keeps the result for this processor and build; ``None`` without a private cache directory."""
    directory = find_directory()
    if directory is None:
        return None
    try:
        folder = make_private(Path(directory) / "layouts")
    except OSError:
        return None
    facts = [processor_name(), library_version(), llama_cpp.llama_print_system_info().decode("utf-8", "replace")]
    return folder / hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


if __name__ == "__main__":
    try:
        sys.exit(0 if are_layouts_right() else 1)
    except ModelError:
        sys.exit(1)
