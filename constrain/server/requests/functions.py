"""``functions`` and ``function_call`` of chat completions: read as the tools and the calls that took their place.

A request names functions and says which one is called; a message holds one call without an id, and the next message
is its result. Errors name the places where the request has them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import array, wrong_type, wrong_value
from constrain.server.requests.tools import read_tool_choice, read_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.chat.tools.kinds import Tool
    from constrain.server.settings import StrictSubset

_CHOICES = ("none", "auto")

_CALL_ID = "call_0"
"""Of a call that has none: its result follows at once, so all may have the same."""

_OLD_NAMES = (
    (re.compile(r"^tools\b"), "functions"),
    (re.compile(r"^tool_choice\b"), "function_call"),
    (re.compile(r"(?<=\])\.function\b"), ""),
    (re.compile(r"\.tool_calls\b(\[0\](\.function\b)?)?"), ".function_call"),
)


def names_functions(body: Mapping[str, Any]) -> bool:
    """Whether a request has functions in place of tools. Raises ``ApiError`` if it has both."""
    found = [name for name in ("functions", "function_call") if body.get(name) is not None]
    for name in ("tools", "tool_choice"):
        if found and body.get(name) not in (None, []):
            raise ApiError(
                f"Invalid request: '{found[0]}' and '{name}' cannot be used together. Use 'tools' and 'tool_choice'.",
                param=found[0],
                code="invalid_value",
            )
    return bool(found)


def read_functions(body: Mapping[str, Any], subset: StrictSubset) -> tuple[tuple[Tool, ...], object]:
    """The functions of a request as tools, each compiled, and its ``tool_choice``. Raises ``ApiError``."""
    given = body.get("functions")
    functions = [] if given is None else array(given, "functions")
    for index, function in enumerate(functions):
        if not isinstance(function, dict):
            raise wrong_type(f"functions[{index}]", "an object", function)
    choice = body.get("function_call")
    if isinstance(choice, str) and choice not in _CHOICES:
        raise wrong_value("function_call", choice, _CHOICES)
    if isinstance(choice, dict):
        choice = {"type": "function", "function": {"name": choice.get("name")}}
    try:
        tools = read_tools([{"type": "function", "function": function} for function in functions], subset)
        return tools, read_tool_choice(choice, tools)
    except ApiError as error:
        raise with_old_names(error) from error


def with_tool_calls(messages: Sequence[Any]) -> list[Any]:
    """Messages with the calls of functions as those of tools, and their results under the ids of these.

    Whatever is no such call or result stays as it is. Raises ``ApiError`` where one of them is without the other.
    """
    found: list[Any] = []
    called: Mapping[str, Any] | None = None
    for index, message in enumerate(messages):
        given = message if isinstance(message, dict) else {}
        where = f"messages[{index}]"
        if given.get("role") == "function":
            found.append(_result(given, where, called))
            called = None
            continue
        _require_result(called, index)
        called = given.get("function_call") if given.get("role") == "assistant" else None
        found.append(message if called is None else _caller(given, where))
    _require_result(called, len(messages))
    return found


def with_old_names(error: ApiError) -> ApiError:
    """An error about tools that speaks of functions."""
    place = param = error.param or ""
    for pattern, old in _OLD_NAMES:
        param = pattern.sub(old, param)
    message = error.message.replace(place, param) if place else error.message
    return ApiError(
        message, status=error.status, kind=error.kind, param=param or None, code=error.code, headers=error.headers
    )


def _caller(message: Mapping[str, Any], where: str) -> dict[str, Any]:
    call = message["function_call"]
    if not isinstance(call, dict):
        raise wrong_type(f"{where}.function_call", "an object", call)
    if message.get("tool_calls"):
        raise ApiError(
            f"Invalid value: {where}: 'function_call' and 'tool_calls' cannot be used together.",
            param=f"{where}.function_call",
            code="invalid_value",
        )
    kept = {key: value for key, value in message.items() if key not in ("function_call", "tool_calls")}
    return {**kept, "tool_calls": [{"id": _CALL_ID, "type": "function", "function": call}]}


def _result(message: Mapping[str, Any], where: str, called: Mapping[str, Any] | None) -> dict[str, Any]:
    name = message.get("name")
    if not isinstance(name, str):
        raise wrong_type(f"{where}.name", "a string", name)
    if called is None or called.get("name") != name:
        before = "has no 'function_call'" if called is None else f"calls '{called.get('name')}'"
        raise ApiError(
            f"Invalid value: {where}: a message with role 'function' is the result of the call in the message before "
            f"it, which {before}; this one is of '{name}'.",
            param=f"{where}.name",
            code="invalid_value",
        )
    kept = {key: value for key, value in message.items() if key not in ("role", "name", "content")}
    content = message.get("content")
    return {**kept, "role": "tool", "tool_call_id": _CALL_ID, "content": "" if content is None else content}


def _require_result(called: Mapping[str, Any] | None, index: int) -> None:
    """Raises ``ApiError`` where a call of the message before this ``index`` has no result."""
    if called is not None:
        where = f"messages[{index - 1}].function_call"
        raise ApiError(
            f"Invalid value: {where}: the call has no result; a message with role 'function' must follow.",
            param=where,
            code="invalid_value",
        )
