"""The processor, by the name that the system has for it."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


@cache
def processor_name() -> str:
    """The name of the processor, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.processor()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor()
