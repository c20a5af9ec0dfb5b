"""``tools`` and ``tool_choice`` of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.chat.prompt.messages import to_json
from constrain.fields.values import FieldError, array, boolean, mapping, missing, one_of, optional_text, required_text
from constrain.server.requests.tools import (
    MESSAGES_TOOL_NAME,
    Tools,
    is_only_for_code,
    name_hosted,
    places_of,
    read_tool,
    read_tool_choice,
    warn_of_hosted,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.chat.tools.kinds import Tool
    from constrain.generation.options import ChatOptions
    from constrain.server.config import StrictSubset
    from constrain.server.requests.places import Place

SEARCHES = ("tool_search_tool_regex", "tool_search_tool_bm25")
"""Names of Anthropic's searches for tools; their types begin with them."""

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
"""Values of ``tool_choice`` for chat completions, by ``type``."""


def read_message_tools(body: Mapping[str, Any], subset: StrictSubset) -> tuple[ChatOptions, dict[str, Place]]:
    """Returns the options for the tools of a request, and the place of each tool's schema, by name.

    Raises ``ApiError`` or ``FieldError`` with the place.
    """
    given = [] if body.get("tools") is None else array(body["tools"], "tools")
    read = (_read_tool(mapping(each, f"tools[{index}]"), f"tools[{index}]", subset) for index, each in enumerate(given))
    found = [each for each in read if each is not None]
    places, tools = places_of(found, "tools"), tuple(tool for tool, _ in found)
    choice, is_parallel = _read_choice(body, tools, [each.get("type") or "custom" for each in given])
    return Tools("tools", tools, places, choice, {}, {}).options(parallel=is_parallel), places


def _read_tool(given: Mapping[str, Any], place: str, subset: StrictSubset) -> tuple[Tool, Place] | None:
    """Returns a tool and the place of its schema; ``None`` for one that the model cannot call here.

    Those are tools of other types than ``custom``, which Anthropic's servers run or whose schemas only its models know,
    and tools that only code calls. A tool that is to be loaded later can be called at once, so that a search for it is
    left out in silence.
    """
    kind = optional_text(given, "type", f"{place}.") or "custom"
    if kind != "custom":
        if not kind.startswith(SEARCHES):
            warn_of_hosted(kind)
        return None
    name = required_text(given, "name", f"{place}.")
    if is_only_for_code(given, place):
        return None
    boolean(given, "strict", f"{place}.")  # schemas are enforced with and without it
    if given.get("input_schema") is None:
        raise missing(f"{place}.input_schema")
    definition = {
        "name": name,
        "description": _describe(given, place),
        "parameters": mapping(given["input_schema"], f"{place}.input_schema"),
    }
    return read_tool("function", definition, place, subset, "input_schema", MESSAGES_TOOL_NAME)


def _describe(given: Mapping[str, Any], place: str) -> str:
    """Returns the description of a tool, with the examples of its input, which the model has no other way to see."""
    description = optional_text(given, "description", f"{place}.") or ""
    if given.get("input_examples") is None:
        return description
    listed = enumerate(array(given["input_examples"], f"{place}.input_examples"))
    examples = [to_json(mapping(each, f"{place}.input_examples[{index}]")) for index, each in listed]
    return "\n".join(filter(None, (description, *(f"Example: {each}" for each in examples))))


def _read_choice(body: Mapping[str, Any], tools: tuple[Tool, ...], kinds: Sequence[str]) -> tuple[Any, bool]:
    """Returns ``tool_choice`` as chat completions have it, and whether there may be several calls.

    ``kinds``: types of all tools of the request.
    """
    if body.get("tool_choice") is None:
        return None, True
    given = mapping(body["tool_choice"], "tool_choice")
    kind = one_of(given.get("type"), (*_CHOICES, "tool"), "tool_choice.type")
    is_parallel = not boolean(given, "disable_parallel_tool_use", "tool_choice.")
    if kind == "tool":
        name = required_text(given, "name", "tool_choice.")
        return read_tool_choice({"type": "function", "function": {"name": name}}, tools, kinds=kinds), is_parallel
    if kind == "any" and not tools:
        raise FieldError(
            "Invalid value for 'tool_choice': it demands a call, but there are no tools that can be called."
            + name_hosted(kinds),
            param="tool_choice",
        )
    return _CHOICES[kind], is_parallel
