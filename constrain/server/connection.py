"""Work for a client that may leave before it is done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from starlette.types import Receive


async def while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Does the work; cancels it when the client leaves, and raises ``ClientDisconnect`` then.

    ``receive``: of a request whose body was read.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_until_left(receive))
    try:
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
