"""Tools of what MCP servers list: with names that differ, schemas as they are, and functions that call the server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import mcp
import mcp_types

from constrain.chat.tools.openai import function_from_json
from constrain.errors import ConstrainError, ToolError
from constrain.mcp.names import different_names
from constrain.mcp.results import CallError, result_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from constrain.chat.tools.kinds import FunctionTool

CALL_SECONDS = 60.0
"""Seconds in which a server must answer, unless ``timeout`` is given."""

Session = mcp.ClientSession | mcp.Client

Call = Callable[[str, dict[str, Any]], Awaitable[mcp_types.CallToolResult]]
"""Calls a tool of one server by its own name, from any event loop."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool as its server lists it, and how it is called."""

    server: str
    tool: mcp_types.Tool
    call: Call


async def tools(
    session: Session, *, exclude: Iterable[str] = (), timeout: float = CALL_SECONDS
) -> tuple[FunctionTool, ...]:
    """Returns the tools of an MCP server, for ``tools=`` of ``generate`` and ``run_tools``.

    Args:
        session: an open ``mcp.ClientSession`` or ``mcp.Client`` of the official SDK (version 2). Calls run in its event
            loop; so in the thread of that loop use ``arun_tools``, or ``await call.acall()``.
        exclude: names of tools to leave out.
        timeout: seconds in which the server must answer a call.

    They are the tools of this moment; call it again when the server says that its list has changed. Arguments match the
    schemas that the server gives. A call returns text, or raises ``constrain.mcp.CallError``. Raises ``ToolError`` that
    names all tools whose schemas cannot be enforced, with the reasons.
    """
    loop = asyncio.get_running_loop()

    async def call(name: str, arguments: dict[str, Any]) -> mcp_types.CallToolResult:
        calling = call_tool(session, name, arguments, timeout)
        if asyncio.get_running_loop() is loop:
            return await calling
        if not loop.is_running():
            calling.close()
            raise CallError("the event loop of the session has ended")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(calling, loop))

    about = session.server_info
    name = about.name if about else "server"
    listed = [Listed(name, tool, call) for tool in await list_tools(session, timeout)]
    excluded = [exclude] if isinstance(exclude, str) else list(exclude)
    require_known(excluded, listed)
    return make_tools(listed, excluded)


async def list_tools(session: Session, timeout: float) -> list[mcp_types.Tool]:
    """Returns all tools that a server lists now, on all pages. Raises ``ToolError``."""
    inner = session.session if isinstance(session, mcp.Client) else session
    offered = inner.server_capabilities
    if offered is not None and offered.tools is None:
        return []
    found: list[mcp_types.Tool] = []
    cursors: dict[str | None, None] = {}
    cursor: str | None = None
    try:
        with anyio.fail_after(timeout):
            while cursor not in cursors:
                cursors[cursor] = None
                page = await inner.list_tools(params=mcp_types.PaginatedRequestParams(cursor=cursor))
                found += page.tools
                cursor = page.next_cursor or None
                if cursor is None:
                    return found
    except TimeoutError as error:
        raise ToolError(f"the server did not list its tools within {timeout:g} seconds") from error
    except mcp.MCPError as error:
        raise ToolError(f"the server cannot list its tools: {error.message}") from error
    raise ToolError(f"the list of the server's tools has no end: page {cursor!r:.80} comes again")


async def call_tool(session: Session, name: str, arguments: dict[str, Any], timeout: float) -> mcp_types.CallToolResult:
    """Calls a tool. Raises ``CallError`` if there is no result."""
    try:
        with anyio.fail_after(timeout):
            result = await session.call_tool(name, arguments)
    except TimeoutError as error:
        raise CallError(f"no answer within {timeout:g} seconds") from error
    except mcp.MCPError as error:
        raise CallError(error.message) from error
    except Exception as error:  # such as a result that does not match the tool's own schema
        raise CallError(f"{type(error).__name__}: {error}") from error
    assert isinstance(result, mcp_types.CallToolResult)
    return result


def require_known(exclude: Iterable[str], listed: Sequence[Listed]) -> None:
    """Raises ``ToolError`` for excluded names that no tool has."""
    names = _names(listed)
    unknown = set(exclude) - set(names) - {each.tool.name for each in listed}
    if unknown:
        raise ToolError(f"no tool is named {', '.join(map(repr, sorted(unknown)))}; the tools are {', '.join(names)}")


def _names(listed: Sequence[Listed]) -> list[str]:
    return different_names([(each.server, each.tool.name) for each in listed])


def make_tools(listed: Sequence[Listed], exclude: Iterable[str] = ()) -> tuple[FunctionTool, ...]:
    """Returns a tool for each listed one, without those whose own or new name is excluded.

    Raises ``ToolError`` that names all tools whose schemas cannot be enforced.
    """
    excluded = set(exclude)
    made: list[FunctionTool] = []
    refused: list[str] = []
    for name, each in zip(_names(listed), listed, strict=True):
        if name in excluded or each.tool.name in excluded:
            continue
        try:
            made.append(_tool(name, each))
        except ConstrainError as error:
            refused.append(f"- {error}")
    if refused:
        raise ToolError(
            f"{len(refused)} of {len(listed)} tools cannot be enforced; leave them out with exclude=[...]:\n"
            + "\n".join(refused)
        )
    return tuple(made)


def _tool(name: str, listed: Listed) -> FunctionTool:
    async def run(**arguments: Any) -> str:
        return result_text(await listed.call(listed.tool.name, arguments))

    run.__name__ = name
    description = listed.tool.description or listed.tool.title or ""
    return function_from_json({"name": name, "description": description, "parameters": listed.tool.input_schema}, run)
