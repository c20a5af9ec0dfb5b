"""An MCP server made with the official SDK: results of all kinds, over standard input and output or over HTTP.

python official.py            speaks through standard input and output
python official.py PORT       speaks streamable HTTP at 127.0.0.1
"""

from __future__ import annotations

import sys

from mcp.server.mcpserver import Context, Image, MCPServer
from pydantic import BaseModel

server = MCPServer("official", instructions="Measure twice.")


class Size(BaseModel):
    width: int
    height: int


@server.tool()
def area(size: Size, scale: float = 1.0) -> float:
    """The area of a size."""
    return size.width * size.height * scale


@server.tool()
def halves(size: Size) -> list[Size]:
    """Two sizes."""
    return [Size(width=size.width // 2, height=size.height)] * 2


@server.tool()
def picture() -> Image:
    """A picture of one point."""
    return Image(data=b"GIF89a", format="gif")


@server.tool()
def wrong() -> str:
    """Always fails."""
    raise ValueError("the ruler is lost")


@server.tool()
def header(name: str, context: Context) -> str:  # type: ignore[type-arg]
    """A header of the request."""
    request = context.request_context.request
    return "" if request is None else request.headers.get(name, "")


@server.tool()
async def more(context: Context) -> str:  # type: ignore[type-arg]
    """Offers one tool more."""
    server.add_tool(lambda: "less", name="less", description="Another tool.")
    await context.notify_tools_changed()
    return "there is more"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
