"""Connections to MCP servers: started or reached, listed again when their lists change, and closed."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from typing import TYPE_CHECKING, Any, TextIO, cast

import anyio
import anyio.from_thread
import mcp
import mcp_types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

from constrain.errors import ToolError
from constrain.mcp.listing import CALL_SECONDS, Listed, call_tool, list_tools, make_tools
from constrain.mcp.results import CallError
from constrain.mcp.servers import Command, read_servers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from types import TracebackType

    from anyio.abc import TaskGroup, TaskStatus
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from typing_extensions import Self

    from constrain.chat.tools.kinds import FunctionTool
    from constrain.mcp.servers import Server, ServerSource

LOG_BYTES = 2_000
"""Bytes at the end of what a server wrote to its standard error that a message shows."""

AGAIN_SECONDS = 1.0
"""Seconds after which a lost subscription is opened again."""


def connect(*servers: ServerSource, exclude: Iterable[str] = (), timeout: float = CALL_SECONDS) -> Connection:
    """Connects to MCP servers; enter the result with ``with`` or ``async with``, and pass its ``tools`` on.

    Args:
        servers: commands (a text such as ``"uvx mcp-server-time"``, or a list of words), URLs of servers with
            streamable HTTP, configurations ``{"mcpServers": {name: {"command": ..., "args": ..., "env": ...}}}`` (or
            with ``"url"`` and ``"headers"``), or paths of files with such a configuration.
        exclude: names of tools to leave out.
        timeout: seconds in which a server must start, and answer each call.

    Raises ``ToolError`` for what is no server. Entering it raises ``ToolError`` for a server that cannot be reached,
    and for tools whose schemas cannot be enforced.
    """
    return Connection(read_servers(servers), exclude, timeout)


class Connection:
    """Open connections to MCP servers, made by ``connect``.

    Their sessions run in a thread of their own. So the tools can be called from any thread and any event loop.
    """

    def __init__(self, servers: Mapping[str, Server], exclude: Iterable[str], timeout: float) -> None:
        self._servers = dict(servers)
        self._exclude = [exclude] if isinstance(exclude, str) else list(exclude)
        self._timeout = timeout
        self._stack: contextlib.ExitStack | None = None
        self._portal: anyio.from_thread.BlockingPortal | None = None
        self._clients: dict[str, mcp.Client] = {}
        self._lists: dict[str, list[mcp_types.Tool]] = {}
        self._tools: tuple[FunctionTool, ...] = ()
        self._error: ToolError | None = None

    def __repr__(self) -> str:
        return f"Connection({', '.join(self._servers)})"

    @property
    def tools(self) -> tuple[FunctionTool, ...]:
        """The tools of all servers as they list them now; they are listed again when a server says that they changed.

        Raises ``ToolError`` if a changed list has tools whose schemas cannot be enforced, and if a session has broken.
        """
        if self._error is not None:
            raise self._error
        return self._tools

    @property
    def instructions(self) -> dict[str, str]:
        """What servers say about the use of their tools, by the name of the server; for a system message."""
        return {name: client.instructions for name, client in self._clients.items() if client.instructions}

    def __enter__(self) -> Self:
        if self._stack is not None:
            raise ToolError("the connection is open already")
        self._error = None
        with contextlib.ExitStack() as stack:
            self._portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
            stack.enter_context(self._portal.wrap_async_context_manager(self._open()))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Ends the sessions, and the servers that were started."""
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.close()

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        """Holds all sessions open. Raises ``ToolError`` that names all servers that cannot be reached."""
        closing = anyio.Event()
        failures: dict[str, ToolError] = {}
        try:
            async with anyio.create_task_group() as sessions:
                try:
                    async with anyio.create_task_group() as starting:
                        for name, server in self._servers.items():
                            starting.start_soon(self._start, sessions, name, server, closing, failures)
                    if failures:
                        raise _joined([failures[name] for name in self._servers if name in failures])
                    self._make_tools()
                    yield
                finally:
                    closing.set()
        except BaseException as error:
            first = _first(error)
            if first is error:
                raise
            raise first from None

    async def _start(
        self, sessions: TaskGroup, name: str, server: Server, closing: anyio.Event, failures: dict[str, ToolError]
    ) -> None:
        """Starts a session; a failure is noted, so that the other servers are started and closed in order."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
            log = cast("TextIO", file)
            try:
                with anyio.fail_after(self._timeout):
                    await sessions.start(self._keep, name, server, closing, log)
            except TimeoutError:
                failures[name] = self._not_reached(name, f"no answer within {self._timeout:g} seconds", log)
            except ToolError as error:
                failures[name] = error

    async def _keep(
        self, name: str, server: Server, closing: anyio.Event, log: TextIO, *, task_status: TaskStatus[None]
    ) -> None:
        """Keeps one session open until ``closing`` is set."""
        changed, changes = anyio.create_memory_object_stream[None](1)

        async def on_message(message: Any) -> None:
            if isinstance(message, mcp_types.ToolListChangedNotification):
                _note(changed)

        is_open = False
        try:
            async with changed, changes, contextlib.AsyncExitStack() as stack:
                client = mcp.Client(await _transport(server, log, stack), message_handler=on_message)
                self._clients[name] = await stack.enter_async_context(client)
                self._lists[name] = await list_tools(client)
                async with anyio.create_task_group() as watching:
                    is_open = True
                    task_status.started()
                    watching.start_soon(_watch, client, changed)
                    watching.start_soon(self._list_again, name, changes)
                    await closing.wait()
                    watching.cancel_scope.cancel()
        except Exception as error:
            if is_open:
                self._error = ToolError(f"the session with the MCP server {name!r} has ended: {_reason(error)}")
                return
            raise self._not_reached(name, _reason(error), log) from error

    def _not_reached(self, name: str, reason: str, log: TextIO) -> ToolError:
        log.seek(0, 2)
        log.seek(max(0, log.tell() - LOG_BYTES))
        written = log.read().strip()
        shown = f"; it wrote:\n{written}" if written else ""
        return ToolError(f"the MCP server {name!r} ({self._servers[name]}) cannot be reached: {reason}{shown}")

    async def _list_again(self, name: str, changes: MemoryObjectReceiveStream[None]) -> None:
        async for _ in changes:
            self._error = await self._change(name)

    async def _change(self, name: str) -> ToolError | None:
        try:
            self._lists[name] = await list_tools(self._clients[name])
            self._make_tools()
        except ToolError as error:
            return error
        except mcp.MCPError as error:
            return ToolError(f"the MCP server {name!r} cannot list its tools: {error.message}")
        return None

    def _make_tools(self) -> None:
        listed = [
            Listed(name, tool, self._caller(name)) for name in self._servers for tool in self._lists.get(name, ())
        ]
        self._tools = make_tools(listed, self._exclude)

    def _caller(self, server: str) -> Any:
        async def call(name: str, arguments: dict[str, Any]) -> mcp_types.CallToolResult:
            if self._stack is None or self._portal is None:
                raise CallError("the connection to the server is closed")
            calling = self._portal.start_task_soon(call_tool, self._clients[server], name, arguments, self._timeout)
            return await asyncio.wrap_future(calling)

        return call


async def _watch(client: mcp.Client, changed: MemoryObjectSendStream[None]) -> None:
    """Notes changes of a list of tools by a subscription. Servers of older versions send notifications instead."""
    with contextlib.suppress(ListenNotSupportedError, mcp.MCPError):
        while await _is_lost(client, changed):
            await anyio.sleep(AGAIN_SECONDS)
            _note(changed)


async def _is_lost(client: mcp.Client, changed: MemoryObjectSendStream[None]) -> bool:
    """Follows one subscription to its end. Returns whether it broke."""
    try:
        async with client.listen(tools_list_changed=True) as events:
            async for _ in events:
                _note(changed)
    except SubscriptionLost:
        return True
    return False


def _note(changed: MemoryObjectSendStream[None]) -> None:
    with contextlib.suppress(anyio.WouldBlock):  # one is noted already
        changed.send_nowait(None)


async def _transport(server: Server, log: TextIO, stack: contextlib.AsyncExitStack) -> Any:
    if isinstance(server, Command):
        arguments, environment = list(server.arguments), dict(server.environment) or None
        parameters = mcp.StdioServerParameters(
            command=server.program, args=arguments, env=environment, cwd=server.directory
        )
        return stdio_client(parameters, errlog=log)
    if not server.headers:
        return streamable_http_client(server.url)
    import httpx2

    client = await stack.enter_async_context(httpx2.AsyncClient(headers=dict(server.headers), follow_redirects=True))
    return streamable_http_client(server.url, http_client=client)


def _joined(errors: Sequence[ToolError]) -> ToolError:
    return errors[0] if len(errors) == 1 else ToolError("\n".join(f"- {error.message}" for error in errors))


def _first(error: BaseException) -> BaseException:
    """Returns the first error in a group of groups. Python 3.10 has no name for such a group."""
    while members := getattr(error, "exceptions", None):
        error = members[0]
    return error


def _reason(error: Exception) -> str:
    first = _first(error)
    if isinstance(first, FileNotFoundError):
        return f"there is no program {first.filename!r}" if first.filename else "there is no such program"
    return f"{type(first).__name__}: {first}"
