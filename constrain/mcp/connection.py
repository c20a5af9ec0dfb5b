"""Connections to MCP servers, and the tools of all of them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread

from constrain.errors import ToolError
from constrain.mcp.listing import CALL_SECONDS, Listed, make_tools, require_known
from constrain.mcp.results import CallError
from constrain.mcp.servers import read_servers
from constrain.mcp.sessions import Session, first_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from types import TracebackType

    import mcp_types
    from anyio.abc import TaskGroup
    from typing_extensions import Self

    from constrain.chat.tools.kinds import FunctionTool
    from constrain.mcp.listing import Call
    from constrain.mcp.servers import Server, ServerSource

START_SECONDS = 60.0
"""Seconds in which a server must start and list its tools, unless ``start_timeout`` is given."""


def connect(
    *servers: ServerSource,
    exclude: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    timeout: float = CALL_SECONDS,
    start_timeout: float = START_SECONDS,
) -> Connection:
    """Connects to MCP servers; enter the result with ``with`` or ``async with``, and pass its ``tools`` on.

    Args:
        servers: commands (a text such as ``"uvx mcp-server-time"``, or a list of words), URLs of servers with
            streamable HTTP, configurations ``{"mcpServers": {name: {"command": ..., "args": ..., "env": ...}}}`` (or
            with ``"url"`` and ``"headers"``), or paths of files with such a configuration.
        exclude: names of tools to leave out.
        env: environment variables for all commands. Without it, a command sees ``PATH``, ``HOME`` and few others.
        timeout: seconds in which a server must answer a call.
        start_timeout: seconds in which a server must start and list its tools.

    Raises ``ToolError`` for what is no server. Entering it raises ``ToolError`` for servers that cannot be reached, and
    for tools whose schemas cannot be enforced.
    """
    return Connection(read_servers(servers, env or {}), exclude, timeout, start_timeout)


class Connection:
    """Open connections to MCP servers, made by ``connect``.

    Their sessions run in a thread of their own. So the tools can be called from any thread and any event loop. A
    session that breaks is opened again; until then, calls raise ``CallError`` with the reason.
    """

    def __init__(
        self, servers: Mapping[str, Server], exclude: Iterable[str], timeout: float, start_timeout: float
    ) -> None:
        self._servers = dict(servers)
        self._exclude = [exclude] if isinstance(exclude, str) else list(exclude)
        self._timeout, self._start_timeout = timeout, start_timeout
        self._stack: contextlib.ExitStack | None = None
        self._portal: anyio.from_thread.BlockingPortal | None = None
        self._sessions: dict[str, Session] = {}
        self._is_listed = False  # all servers have listed their tools
        self._tools: tuple[FunctionTool, ...] = ()
        self._error: ToolError | None = None

    def __repr__(self) -> str:
        return f"Connection({', '.join(self._servers)})"

    @property
    def tools(self) -> tuple[FunctionTool, ...]:
        """The tools of all servers as they list them now; they are listed again when a server says that they changed.

        Raises ``ToolError`` if the connection is not open, and if a changed list cannot be read or has tools whose
        schemas cannot be enforced.
        """
        if self._stack is None:
            raise ToolError("the connection is not open; enter it with `with` or `async with`")
        for error in (self._error, *(session.list_error for session in self._sessions.values())):
            if error is not None:
                raise error
        return self._tools

    @property
    def instructions(self) -> dict[str, str]:
        """What servers say about the use of their tools, by the name of the server; for a system message."""
        found = {name: session.instructions for name, session in self._sessions.items()}
        return {name: text for name, text in found.items() if text}

    def __enter__(self) -> Self:
        if self._stack is not None:
            raise ToolError("the connection is open already")
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
        entering = asyncio.ensure_future(asyncio.to_thread(self.__enter__))
        try:
            return await asyncio.shield(entering)
        except asyncio.CancelledError:  # the thread goes on; what it opens is closed again
            with contextlib.suppress(Exception):
                await entering
            await asyncio.to_thread(self.close)
            raise

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
        self._is_listed = False
        self._sessions = {
            name: Session(name, server, self._timeout, self._make_tools) for name, server in self._servers.items()
        }
        failures: dict[str, ToolError] = {}
        try:
            async with anyio.create_task_group() as kept:
                try:
                    async with anyio.create_task_group() as starting:
                        for session in self._sessions.values():
                            starting.start_soon(self._start, kept, session, failures)
                    if failures:
                        raise _joined([failures[name] for name in self._servers if name in failures])
                    self._is_listed = True
                    require_known(self._exclude, self._listed())
                    self._make_tools()
                    if self._error is not None:
                        raise self._error
                    yield
                finally:
                    for session in self._sessions.values():
                        session.close()
        except BaseException as error:
            first = first_error(error)
            if first is error:
                raise
            raise first from None

    async def _start(self, kept: TaskGroup, session: Session, failures: dict[str, ToolError]) -> None:
        """Starts a session; a failure is noted, so that the other servers are started and closed in order."""
        reason = None
        try:
            with anyio.fail_after(self._start_timeout):
                await kept.start(session.keep)
        except TimeoutError:
            reason = f"no answer within {self._start_timeout:g} seconds"
        except ToolError as error:
            reason = error.message
        if reason is not None:
            told = f"the MCP server {session.name!r} ({self._servers[session.name]}) cannot be reached: {reason}"
            failures[session.name] = ToolError(told)

    def _listed(self) -> list[Listed]:
        return [
            Listed(name, tool, self._caller(session))
            for name, session in self._sessions.items()
            for tool in session.tools
        ]

    def _make_tools(self) -> None:
        if not self._is_listed:
            return
        try:
            self._tools, self._error = make_tools(self._listed(), self._exclude), None
        except ToolError as error:
            self._error = error

    def _caller(self, session: Session) -> Call:
        async def call(name: str, arguments: dict[str, Any]) -> mcp_types.CallToolResult:
            if self._stack is None or self._portal is None:
                raise CallError("the connection to the server is closed")
            try:
                calling = self._portal.start_task_soon(session.call, name, arguments)
            except RuntimeError as error:  # it has been closed meanwhile
                raise CallError("the connection to the server is closed") from error
            return await asyncio.wrap_future(calling)

        return call


def _joined(errors: Sequence[ToolError]) -> ToolError:
    return errors[0] if len(errors) == 1 else ToolError("\n".join(f"- {error.message}" for error in errors))
