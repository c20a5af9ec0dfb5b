"""Functions for a process that compiles: each ends it, as a mistake in the kernel or the system would."""

from __future__ import annotations

import ctypes
import os
from typing import Any


def end_by(number: int, *_: Any) -> None:
    """Ends this process by a signal."""
    os.kill(os.getpid(), number)


def read_nothing(*_: Any) -> None:
    """Reads from where there is no memory."""
    ctypes.string_at(0)


def exit_with(status: int, *_: Any) -> None:
    """Ends this process without a word."""
    os._exit(status)
