"""Tools for a model: their kinds, the calls that a model asks for, and the loop that runs them.

``constrain.tool`` makes a tool of a function; this module has the rest.
"""

from __future__ import annotations

from constrain.chat.reading.reply import Reply
from constrain.chat.tools.annotations import ToolContext
from constrain.chat.tools.arguments import Arguments
from constrain.chat.tools.calls import CustomCall, FunctionCall, ToolCall
from constrain.chat.tools.kinds import CustomTool, FunctionTool
from constrain.chat.tools.openai import tool_from_json, tool_to_json
from constrain.generation.tool_loop import ToolRun, arun_tools, run_tools

__all__ = [
    "Arguments",
    "CustomCall",
    "CustomTool",
    "FunctionCall",
    "FunctionTool",
    "Reply",
    "ToolCall",
    "ToolContext",
    "ToolRun",
    "arun_tools",
    "run_tools",
    "tool_from_json",
    "tool_to_json",
]
