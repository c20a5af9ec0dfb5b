"""``tools`` and ``tool_choice`` of a request, in the shapes of both endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.chat.answers.choice import read_choice
from constrain.chat.tools.openai import tool_from_json
from constrain.errors import ConstrainError, ToolError
from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import array, mapping, missing, wrong_type, wrong_value
from constrain.server.requests.formats import refused_schema, require_flat, strict_complaint
from constrain.server.requests.places import Place, come_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.chat.tools.kinds import Tool
    from constrain.server.settings import StrictSubset

MAX_TOOLS = 128
"""OpenAI's limit."""

_KINDS = ("function", "custom")
_CHOICES = ("none", "auto", "required")


def read_tools(given: object, subset: StrictSubset) -> tuple[Tool, ...]:
    """The tools of a request, each compiled. Raises ``ApiError``, which names the place."""
    if given is None:
        return ()
    tools: list[Tool] = []
    for index, document in enumerate(array(given, "tools", MAX_TOOLS)):
        tool = _tool(mapping(document, f"tools[{index}]"), f"tools[{index}]", subset)
        if tool.name in [other.name for other in tools]:
            raise ApiError(
                f"Invalid 'tools[{index}]': another tool is called '{tool.name}', too.",
                param=f"tools[{index}]",
                code="invalid_value",
            )
        tools.append(tool)
    return tuple(tools)


def _tool(document: Mapping[str, Any], place: str, subset: StrictSubset) -> Tool:
    kind = document.get("type")
    if kind is None:
        raise missing(f"{place}.type")
    if kind not in _KINDS:
        raise wrong_value(f"{place}.type", kind, _KINDS)
    inner: Any = document.get(kind, document)
    where = f"{place}.{kind}" if kind in document else place
    if isinstance(inner, dict) and inner.get("name") is None:
        raise missing(f"{where}.name")
    if kind == "custom":
        come_to(Place(f"{where}.format", "invalid_grammar", "grammar"))
    else:
        name = inner.get("name") if isinstance(inner, dict) else None
        at = Place(f"{where}.parameters", "invalid_function_parameters", f"schema for function '{name!s:.64}'")
        require_flat(inner.get("parameters") if isinstance(inner, dict) else None, at)
        come_to(at)
    if kind == "function" and isinstance(inner, dict):
        document = _checked_function(document, inner, where, subset)
    try:
        return tool_from_json(document)
    except ToolError as error:
        param = place + (error.pointer or "").replace("/", ".")
        raise ApiError(f"Invalid '{param}': {error.message}", param=param, code="invalid_value") from error
    except ConstrainError as error:
        if kind == "custom":
            raise ApiError(f"Invalid grammar: {error}", param=f"{where}.format", code="invalid_grammar") from error
        reason = refused_schema(inner.get("parameters") or {}, error)
        raise ApiError(
            f"Invalid schema for function '{inner.get('name')}': {reason}",
            param=f"{where}.parameters",
            code="invalid_function_parameters",
        ) from error


def _checked_function(
    document: Mapping[str, Any], inner: Mapping[str, Any], where: str, subset: StrictSubset
) -> Mapping[str, Any]:
    """The tool without ``strict``, whose rules its schema keeps: what they are is for this server to say."""
    strict, parameters = inner.get("strict"), inner.get("parameters")
    if strict is not None and not isinstance(strict, bool):
        raise wrong_type(f"{where}.strict", "a boolean", strict)
    if strict and isinstance(parameters, dict):
        complaint = strict_complaint(parameters, str(inner.get("name")), "function", subset)
        if complaint:
            raise ApiError(complaint, param=f"{where}.parameters", code="invalid_function_parameters")
    lenient = {key: value for key, value in inner.items() if key != "strict"}
    return lenient if inner is document else {**document, "function": lenient}


def read_tool_choice(given: object, tools: Sequence[Tool]) -> object:
    """``tool_choice`` as it came, checked. Raises ``ApiError``."""
    if given is None:
        return None
    if isinstance(given, str) and given not in _CHOICES:
        raise wrong_value("tool_choice", given, _CHOICES)
    if not isinstance(given, str | dict):
        raise wrong_type("tool_choice", "a string or an object", given)
    try:
        read_choice(given, tools)
    except ValueError as error:
        raise ApiError(
            f"Invalid value for 'tool_choice': {error}", param="tool_choice", code="invalid_value"
        ) from error
    return given
