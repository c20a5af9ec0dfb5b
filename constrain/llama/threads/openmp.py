"""Ends the worker threads of llama.cpp after an evaluation, if it uses GNU OpenMP.

Each thread that evaluates has workers of its own, and they would stay after the evaluation. If a process has more
workers than cores, libgomp lets none of them wait actively for the next operation, and evaluations take up to twice as
long. Starting new workers takes about 0.1 ms.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import llama_cpp  # noqa: F401 - whose libraries load libgomp

from constrain.system import find_loaded

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE_SOFT = 1
"""``omp_pause_soft``: ends workers, but may keep thread-local data."""


def release_workers() -> None:
    """Ends the OpenMP workers of this thread, if it has any; the next evaluation starts new ones."""
    if (pause := _pause()) is not None:
        pause(_PAUSE_SOFT)


@cache
def _pause() -> Callable[[int], int] | None:
    """Returns the function ``omp_pause_resource_all``; ``None`` if llama.cpp has not loaded libgomp."""
    function: Callable[[int], int] | None = getattr(find_loaded("libgomp.so.1"), "omp_pause_resource_all", None)
    return function
