"""Waiting in the event loop for futures of other threads."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Future


async def any_done(*futures: Future[Any], until: float | None = None) -> bool:
    """Waits until one of the futures is done, without cancelling them if the waiting task is cancelled.

    ``until``: deadline (``time.monotonic()``). Returns whether one is done.
    """
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: Any) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed, and no task waits any more.
            loop.call_soon_threadsafe(done.set)

    for future in futures:
        future.add_done_callback(tell)
    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):  # two separate classes before Python 3.11
        await asyncio.wait_for(done.wait(), None if until is None else max(0.0, until - time.monotonic()))
    return any(future.done() for future in futures)
