"""Tools of MCP servers (Model Context Protocol), for ``generate`` and ``run_tools``. Needs the extra ``mcp``.

``connect`` starts or reaches servers; ``tools`` takes a session that is open already. Read ``servers`` first: which
servers, by command, URL or configuration. ``connection`` has all of them, and ``sessions`` keeps each one open;
``listing`` makes tools of what they list, with ``names`` that differ; ``results`` turns what a call returns into text.
"""

from __future__ import annotations

from constrain.arguments import needs_extra

with needs_extra("mcp"):
    from constrain.mcp.connection import Connection, connect
    from constrain.mcp.listing import tools
    from constrain.mcp.results import CallError

__all__ = ["CallError", "Connection", "connect", "tools"]
