"""Work for a client that may leave before it is done."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect

from constrain.server.http.account import current
from constrain.server.http.errors import timed_out

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from starlette.types import Receive


async def while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Does the work, and cancels it if the client leaves; then raises ``ClientDisconnect``.

    The work is also cancelled if the time of the request is up and no model has begun the answer; then ``ApiError`` is
    raised. ``receive``: channel of a request whose body was read.
    """
    account = current.get()
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_until_left(receive))
    try:
        left = max(0.0, account.until - time.monotonic())
        done, _ = await asyncio.wait((working, watching), timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if not done and not account.has_answer:
            raise timed_out()
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        working.result()
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
