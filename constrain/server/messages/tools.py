"""``tools`` and ``tool_choice`` of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.chat.prompt.messages import to_json
from constrain.fields.values import FieldError, array, boolean, mapping, missing, one_of, optional_text, required_text
from constrain.server.requests.limits import MAX_TOOLS
from constrain.server.requests.refusals import unsupported
from constrain.server.requests.tools import Tools, places_of, read_tool, read_tool_choice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.chat.tools.kinds import Tool
    from constrain.generation.options import ChatOptions
    from constrain.server.requests.places import Place
    from constrain.server.settings import StrictSubset

_SERVER_TOOLS = ("web_search", "web_fetch", "code_execution", "tool_search", "mcp_toolset", "advisor")
"""Beginnings of the types of tools that Anthropic's servers run themselves."""

_KNOWN_TOOLS = ("bash", "text_editor", "computer", "browser", "memory")
"""Beginnings of the types of tools whose schemas Anthropic's models know without being told."""

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
"""Values of ``tool_choice`` for chat completions, by ``type``."""


def read_message_tools(body: Mapping[str, Any], subset: StrictSubset) -> tuple[ChatOptions, dict[str, Place]]:
    """Returns the options for the tools of a request, and the place of each tool's schema, by name.

    Raises ``ApiError`` or ``FieldError`` with the place.
    """
    given = [] if body.get("tools") is None else array(body["tools"], "tools", MAX_TOOLS)
    found = [
        _read_tool(mapping(each, f"tools[{index}]"), f"tools[{index}]", subset) for index, each in enumerate(given)
    ]
    places, tools = places_of(found, "tools"), tuple(tool for tool, _ in found)
    choice, is_parallel = _read_choice(body, tools)
    return Tools("tools", tools, places, choice).options(parallel=is_parallel), places


def _read_tool(given: Mapping[str, Any], place: str, subset: StrictSubset) -> tuple[Tool, Place]:
    _require_client_tool(given, place)
    boolean(given, "strict", f"{place}.")  # schemas are enforced with and without it
    if boolean(given, "defer_loading", f"{place}."):
        raise unsupported(f"{place}.defer_loading", "The model reads all tools of a request; leave out the others.")
    callers = given.get("allowed_callers")
    if callers is not None and array(callers, f"{place}.allowed_callers") != ["direct"]:
        raise unsupported(f"{place}.allowed_callers", "Only the model calls tools: use ['direct'], or leave it out.")
    if given.get("input_schema") is None:
        raise missing(f"{place}.input_schema")
    definition = {
        "name": required_text(given, "name", f"{place}."),
        "description": _describe(given, place),
        "parameters": mapping(given["input_schema"], f"{place}.input_schema"),
    }
    return read_tool("function", definition, place, subset, "input_schema")


def _require_client_tool(given: Mapping[str, Any], place: str) -> None:
    """Raises ``FieldError`` for a tool of another type than those that a request defines."""
    kind = "custom" if given.get("type") is None else required_text(given, "type", f"{place}.")
    if kind.startswith(_SERVER_TOOLS):
        raise unsupported(
            f"{place}.type",
            f"This server runs no tools, so there is no '{kind:.80}'. Define a tool with an 'input_schema', and run it "
            "in your program.",
        )
    if kind.startswith(_KNOWN_TOOLS):
        raise unsupported(
            f"{place}.type",
            f"The model does not know the schema of '{kind:.80}'. Define a tool with a 'description' and an "
            "'input_schema'.",
        )
    one_of(kind, ("custom",), f"{place}.type")


def _describe(given: Mapping[str, Any], place: str) -> str:
    """Returns the description of a tool, with the examples of its input, which the model has no other way to see."""
    description = optional_text(given, "description", f"{place}.") or ""
    if given.get("input_examples") is None:
        return description
    listed = enumerate(array(given["input_examples"], f"{place}.input_examples"))
    examples = [to_json(mapping(each, f"{place}.input_examples[{index}]")) for index, each in listed]
    return "\n".join(filter(None, (description, *(f"Example: {each}" for each in examples))))


def _read_choice(body: Mapping[str, Any], tools: tuple[Tool, ...]) -> tuple[Any, bool]:
    """Returns ``tool_choice`` as chat completions have it, and whether there may be several calls."""
    if body.get("parallel_tool_calls") is not None:
        raise unsupported("parallel_tool_calls", "Use 'tool_choice.disable_parallel_tool_use'.")
    if body.get("tool_choice") is None:
        return None, True
    given = mapping(body["tool_choice"], "tool_choice")
    kind = one_of(given.get("type"), (*_CHOICES, "tool"), "tool_choice.type")
    is_parallel = not boolean(given, "disable_parallel_tool_use", "tool_choice.")
    if kind == "tool":
        name = required_text(given, "name", "tool_choice.")
        return read_tool_choice({"type": "function", "function": {"name": name}}, tools), is_parallel
    if kind == "any" and not tools:
        raise FieldError(
            "Invalid value for 'tool_choice': it demands a call, but there are no 'tools'.",
            param="tool_choice",
            code="invalid_value",
        )
    return _CHOICES[kind], is_parallel
