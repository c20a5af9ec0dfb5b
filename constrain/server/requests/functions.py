"""``functions`` and ``function_call`` of chat completions, read as ``tools`` and ``tool_choice``, their successors.

Errors name the places in the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import array, mapping, refuse_together
from constrain.server.requests.limits import RANGES
from constrain.server.requests.tools import Tools, places_of, read_tool, read_tool_choice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.chat.tools.kinds import Tool
    from constrain.server.config import StrictSubset
    from constrain.server.requests.places import Place

_MODES = ("none", "auto")


def uses_functions(body: Mapping[str, Any]) -> bool:
    """Returns whether a request has functions instead of tools. Raises ``FieldError`` if it has both."""
    found = {name: body.get(name) is not None for name in ("functions", "function_call")}
    refuse_together(**found, **{name: body.get(name) not in (None, []) for name in ("tools", "tool_choice")})
    return any(found.values())


def read_functions(body: Mapping[str, Any], subset: StrictSubset) -> Tools:
    """Reads the functions of a request as compiled tools, and the choice between them. Raises ``FieldError``."""
    given = body.get("functions")
    found: list[tuple[Tool, Place]] = []
    for index, function in enumerate([] if given is None else array(given, "functions", RANGES["functions"][1])):
        place = f"functions[{index}]"
        found.append(read_tool("function", mapping(function, place), place, subset))
    places, tools = places_of(found, "functions"), tuple(tool for tool, _ in found)
    choice = body.get("function_call")
    if isinstance(choice, dict):
        choice = {"type": "function", "function": {"name": choice.get("name")}}
    return Tools("functions", tools, places, read_tool_choice(choice, tools, "function_call", modes=_MODES), {})
