"""The session with one MCP server: opened, listed again when its list changes, and opened again when it has broken."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import anyio
import httpx2
import mcp
import mcp_types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

from constrain.errors import ToolError
from constrain.mcp.listing import call_tool, list_tools
from constrain.mcp.results import CallError
from constrain.mcp.servers import Command

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import TaskStatus
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from constrain.mcp.servers import Server

LOG_BYTES = 2_000
"""Bytes at the end of what a server wrote to its standard error that a message shows."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a broken session is opened again: at first, and after several attempts that failed."""

LEAST_SILENCE = 300.0
"""Seconds for which a server over HTTP may be silent, at least: it may keep a stream of events open."""


class Session:
    """The session with one server.

    Attributes:
        name: name of the server.
        tools: its tools as it listed them last.
        list_error: why the latest list of tools could not be read; None if it could.
    """

    def __init__(self, name: str, server: Server, timeout: float, on_change: Callable[[], None]) -> None:
        self.name = name
        self.tools: list[mcp_types.Tool] = []
        self.list_error: ToolError | None = None
        self._server = server
        self._timeout = timeout
        self._on_change = on_change
        self._client: mcp.Client | None = None
        self._why = "it was not opened"
        self._closing = anyio.Event()
        self._ended = anyio.Event()

    @property
    def instructions(self) -> str | None:
        """What the server says about the use of its tools."""
        return None if self._client is None else self._client.instructions

    async def call(self, name: str, arguments: dict[str, Any]) -> mcp_types.CallToolResult:
        """Calls a tool. Raises ``CallError``."""
        if self._client is None:
            raise CallError(f"the MCP server {self.name!r} cannot be reached: {self._why}")
        try:
            return await call_tool(self._client, name, arguments, self._timeout)
        except CallError as error:
            if isinstance(error.__cause__, mcp.MCPError) and error.__cause__.code == mcp_types.CONNECTION_CLOSED:
                self._ended.set()
            raise

    def close(self) -> None:
        """Ends the session for good."""
        self._closing.set()
        self._ended.set()

    async def keep(self, *, task_status: TaskStatus[None]) -> None:
        """Keeps the session open until it is closed. Raises ``ToolError`` if it cannot be opened at first."""
        pause = FIRST_PAUSE
        was_open = False

        def opened() -> None:
            nonlocal was_open, pause
            if not was_open:
                was_open = True
                task_status.started()
            pause = FIRST_PAUSE

        while not self._closing.is_set():
            self._ended = anyio.Event()
            try:
                await self._hold(opened)
            except ToolError as error:
                if not was_open:
                    raise
                self._why = error.message
            self._client = None
            with anyio.move_on_after(pause):
                await self._closing.wait()
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _hold(self, opened: Callable[[], None]) -> None:
        """Opens the session and waits until it ends. Raises ``ToolError`` if it breaks."""
        changed, changes = anyio.create_memory_object_stream[None](1)

        async def on_message(message: Any) -> None:
            if isinstance(message, mcp_types.ToolListChangedNotification):
                _note(changed)

        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
            log = cast("TextIO", file)
            try:
                async with changed, changes, contextlib.AsyncExitStack() as stack:
                    transport = await self._transport(log, stack)
                    client = await stack.enter_async_context(mcp.Client(transport, message_handler=on_message))
                    self.tools = await list_tools(client, self._timeout)
                    self._client, self._why = client, "the server has ended the session"
                    opened()
                    self._on_change()
                    async with anyio.create_task_group() as watching:
                        watching.start_soon(_watch, client, changed)
                        watching.start_soon(self._list_again, client, changes)
                        await self._ended.wait()
                        watching.cancel_scope.cancel()
            except Exception as error:
                raise ToolError(_told(_reason(error), log)) from error

    async def _transport(self, log: TextIO, stack: contextlib.AsyncExitStack) -> Any:
        server = self._server
        if not isinstance(server, Command):
            limits = httpx2.Timeout(30, read=max(LEAST_SILENCE, self._timeout))
            client = httpx2.AsyncClient(headers=dict(server.headers), timeout=limits)
            return streamable_http_client(server.url, http_client=await stack.enter_async_context(client))
        if server.directory is not None and not Path(server.directory).is_dir():
            raise ToolError(f"there is no folder {server.directory!r} to start it in")
        arguments, environment = list(server.arguments), dict(server.environment)
        parameters = mcp.StdioServerParameters(
            command=server.program, args=arguments, env=environment, cwd=server.directory
        )
        return stdio_client(parameters, errlog=log)

    async def _list_again(self, client: mcp.Client, changes: MemoryObjectReceiveStream[None]) -> None:
        async for _ in changes:
            try:
                self.tools = await list_tools(client, self._timeout)
                self.list_error = None
            except ToolError as error:
                self.list_error = error
            self._on_change()


async def _watch(client: mcp.Client, changed: MemoryObjectSendStream[None]) -> None:
    """Notes changes of a list of tools by a subscription. Servers of older versions send notifications instead."""
    is_new = True
    with contextlib.suppress(ListenNotSupportedError):
        while True:
            with contextlib.suppress(SubscriptionLost, mcp.MCPError):
                async with client.listen(tools_list_changed=True) as events:
                    if not is_new:
                        _note(changed)  # it may have changed meanwhile
                    is_new = False
                    async for _ in events:
                        _note(changed)
            if is_new:  # the server has no subscriptions
                return
            await anyio.sleep(FIRST_PAUSE)


def _note(changed: MemoryObjectSendStream[None]) -> None:
    with contextlib.suppress(anyio.WouldBlock):  # one is noted already
        changed.send_nowait(None)


def _told(reason: str, log: TextIO) -> str:
    """Returns a reason with the end of what the server wrote."""
    log.seek(0, 2)
    log.seek(max(0, log.tell() - LOG_BYTES))
    written = log.read().strip()
    return f"{reason}; it wrote:\n{written}" if written else reason


def first_error(error: BaseException) -> BaseException:
    """Returns the first error in a group of groups. Python 3.10 has no name for such a group."""
    while members := getattr(error, "exceptions", None):
        error = members[0]
    return error


def _reason(error: Exception) -> str:
    first = first_error(error)
    if isinstance(first, ToolError):
        return first.message
    if isinstance(first, FileNotFoundError):
        return f"there is no program {first.filename!r}" if first.filename else "there is no such program"
    return f"{type(first).__name__}: {first}"
