"""Runs the functions of tools, including ``async`` ones."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from constrain.chat.tools.annotations import is_async
from constrain.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


def run(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Runs a function; starts an event loop if it is ``async``. Raises ``ToolError`` if a loop runs already."""
    result = function(*args, **kwargs)
    if not inspect.isawaitable(result):
        return result
    if _is_loop_running():
        if inspect.iscoroutine(result):
            result.close()
        raise ToolError(f"tool {name!r} is async, and an event loop runs here: await its acall(...)")
    return asyncio.run(_await_result(result))


async def run_async(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Returns the result of a call; a function that is not ``async`` runs in a thread."""
    result = function(*args, **kwargs) if is_async(function) else await asyncio.to_thread(function, *args, **kwargs)
    return await result if inspect.isawaitable(result) else result


async def _await_result(result: Awaitable[Any]) -> Any:
    return await result


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
