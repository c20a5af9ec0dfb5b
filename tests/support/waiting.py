"""Waiting for conditions of which no event tells. Where there is an event, a queue or a future, wait for it instead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

SECONDS = 60.0
"""Seconds after which a condition is taken to stay false, on however slow a machine."""

PAUSE = 0.002
"""Seconds between two looks at a condition."""


def wait_until(holds: Callable[[], object], *, seconds: float = SECONDS, pause: float = PAUSE) -> None:
    """Returns as soon as a condition holds. Raises ``TimeoutError`` if it never does."""
    end = time.monotonic() + seconds
    while not holds():
        _require_before(end)
        time.sleep(pause)


async def wait_until_async(holds: Callable[[], object], *, seconds: float = SECONDS) -> None:
    """As ``wait_until``, while the other tasks of the loop go on."""
    end = time.monotonic() + seconds
    while not holds():
        _require_before(end)
        await asyncio.sleep(PAUSE)


def _require_before(end: float) -> None:
    if time.monotonic() > end:
        raise TimeoutError("the condition has not come true")
