"""The MCP servers of a conversation."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from constrain.errors import ToolError

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from constrain.chat.tools.kinds import FunctionTool
    from constrain.mcp.connection import Connection


class Servers:
    """Open connections to MCP servers, in a ``with`` statement."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._connections: list[Connection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def add(self, given: str) -> None:
        """Connects to servers: a file with a configuration, a command, or a URL.

        Raises ``ToolError`` for servers that cannot be reached, and for a tool whose name another one has.
        """
        try:
            from constrain.mcp.connection import connect
        except ModuleNotFoundError as error:
            raise ToolError(str(error)) from error

        path = Path(given).expanduser()
        connection = connect(path if path.is_file() else given)
        with ExitStack() as opening:
            opening.enter_context(connection)
            names = {tool.name for tool in self.tools()}
            twice = next((tool.name for tool in connection.tools if tool.name in names), None)
            if twice is not None:
                raise ToolError(f"there is a tool {twice!r} already; put all servers into one configuration")
            self._open.push(opening.pop_all())
        self._connections.append(connection)

    def tools(self) -> list[FunctionTool]:
        """Returns the tools that the servers have now."""
        return [tool for connection in self._connections for tool in connection.tools]
