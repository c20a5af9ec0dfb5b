"""Functions for a process that compiles: most end it, as a mistake in the kernel or the system would."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from typing import Any

from constrain.chat.tools.compiled import compile_arguments
from constrain.server.sandbox import worker


def end_by(number: int, *_: Any) -> None:
    """Ends this process by a signal."""
    os.kill(os.getpid(), number)


def read_nothing(*_: Any) -> None:
    """Reads from where there is no memory."""
    ctypes.string_at(0)


def answer_without_memory() -> None:
    """Leaves this process no memory to send what became of the call."""

    class Full:
        def pack(self, _: int) -> bytes:
            raise MemoryError

    worker.LENGTH = Full()  # type: ignore[assignment]


class Large:
    """Cannot be pickled: that takes too much memory."""

    def __reduce__(self) -> Any:
        raise MemoryError


def not_imported(names: Iterable[str]) -> list[str]:
    """Those of some modules that this process would have to import."""
    return [name for name in names if name not in sys.modules]


def compiled_tools() -> int:
    """How many tools this process has compiled, or inherited."""
    return len(compile_arguments.memory)  # type: ignore[attr-defined]


def exit_with(status: int, *_: Any) -> None:
    """Ends this process without a word."""
    os._exit(status)
