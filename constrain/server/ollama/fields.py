"""Fields of chat and generate outside ``options``: format, tools, and the fields that are refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from constrain.chat.tools.checks import ANY_TOOL_NAME
from constrain.fields.values import array, invalid, mapping
from constrain.llama.decoding.sampling import LISTS, OPTIONS
from constrain.server.requests.formats import ANY_OBJECT, Format, format_of
from constrain.server.requests.places import Place
from constrain.server.requests.refusals import ON_ALL_ENDPOINTS, advise, unsupported
from constrain.server.requests.tools import Tools, read_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.server.config import StrictSubset

_ASK_CHAT = "Ask /v1/chat/completions."

_OPTIONS = (*OPTIONS, *LISTS, "stop", "num_ctx", "num_predict")

EVERYWHERE = {
    **{name: why for name, why in ON_ALL_ENDPOINTS.items() if name not in ("format", "n_predict", "max_new_tokens")},
    "function_call": "Use 'tool_choice' of /api/chat.",
    "input": "Use 'messages' of /api/chat, or 'prompt' of /api/generate.",
    "instructions": "Use a message with the role 'system' of /api/chat, or 'system' of /api/generate.",
    "max_output_tokens": "Use 'options.num_predict'.",
    "output_config.format": "Use 'format'.",
    "output_format": "Use 'format'.",
    "stop_sequences": "Use 'options.stop'.",
    "text.format": "Use 'format'.",
    **{name: f"Use 'options.{name}'." for name in _OPTIONS},
    **advise("max_tokens max_completion_tokens max_new_tokens n_predict", "Use 'options.num_predict'."),
    **advise("response_format response_schema schema", "Use 'format'."),
    **advise("best_of confidence draft functions logit_bias n show_schema sources unbias vote", _ASK_CHAT),
    "_debug_render_only": "This server has no such output.",
    **advise("height steps width", "This server makes no images."),
}
"""Fields that both refuse, with the alternative."""

CHAT_REFUSED = {
    **EVERYWHERE,
    "context": "Send the whole conversation as 'messages'.",
    "prompt": "Use 'messages', or ask /api/generate.",
    "raw": "Ask /api/generate.",
    "suffix": "This server writes what follows the messages, not what stands between two texts.",
    "system": "Use a message with the role 'system'.",
    "template": "Use 'chat_template' in the server's configuration.",
}
"""Fields that chat refuses, with the alternative."""

GENERATE_REFUSED = {
    **EVERYWHERE,
    "context": "Send the whole conversation as 'messages' to /api/chat.",
    "messages": "Use 'prompt', or ask /api/chat.",
    "suffix": "This server writes what follows a prompt, not what stands between two texts.",
    "template": "Use 'raw' and a prompt in its final form, or 'chat_template' in the server's configuration.",
    "parallel_tool_calls": "Ask /api/chat.",
    "tool_choice": "Ask /api/chat.",
    **advise("tools tools_shown", "Ask /api/chat."),
}
"""Fields that generate refuses, with the alternative."""

_NO_TIME = re.compile(r"[+-]?(0+(\.0*)?|\.0+)([a-zµ]+)?")
"""Pattern of a duration of zero, such as ``"0"``, ``"0s"`` and ``"0.0m"``."""


def read_shape(given: object, name: str) -> Format | None:
    """Reads what the content is; ``None`` for any text. Raises ``ApiError`` or ``FieldError``."""
    if given == "":
        return None
    place = Place(name, "invalid_json_schema", f"schema in '{name}'")
    if given == "json":
        return format_of(ANY_OBJECT, place)
    if not isinstance(given, dict):
        what = f"{given!r:.80}" if isinstance(given, str) else f"of the type {type(given).__name__}"
        raise invalid(name, f'it is {what}; it must be "json" or a JSON Schema, which is an object.')
    return format_of(given, place)


def read_functions(body: Mapping[str, Any], subset: StrictSubset) -> Tools:
    """Reads ``tools``, which are functions, and ``tool_choice``, which Ollama does not have.

    Raises ``ApiError`` or ``FieldError`` with the place.
    """
    given = body.get("tools")
    found = [
        _read_function(tool, f"tools[{index}]")
        for index, tool in enumerate([] if given is None else array(given, "tools"))
    ]
    members = {"tools": found, "tool_choice": body.get("tool_choice")}
    return read_tools(members, subset, is_flat=False, names=ANY_TOOL_NAME)


def _read_function(given: object, place: str) -> dict[str, Any]:
    """Returns a function in OpenAI's form: with a type, and with types of arguments that JSON Schema knows."""
    tool: dict[str, Any] = {**mapping(given, place)}
    if tool.get("type") is None:
        tool["type"] = "function"
    if tool["type"] == "custom":
        raise unsupported(f"{place}.type", f"A tool's type is 'function' here. For custom tools: {_ASK_CHAT}")
    if tool["type"] != "function":
        return tool
    function = mapping(tool.get("function"), f"{place}.function")
    parameters = function.get("parameters")
    if not isinstance(parameters, dict) or not isinstance(parameters.get("properties"), dict):
        return tool
    properties = {name: _split_types(schema) for name, schema in parameters["properties"].items()}
    return {**tool, "function": {**function, "parameters": {**parameters, "properties": properties}}}


def _split_types(schema: Any) -> Any:
    """Returns the schema of an argument with a list of types where one text names several.

    The ``ollama`` package writes ``int | str`` as ``"integer, string"``.
    """
    if not isinstance(schema, dict) or not isinstance(schema.get("type"), str) or "," not in schema["type"]:
        return schema
    return {**schema, "type": sorted(each.strip() for each in schema["type"].split(","))}


def read_keep_alive(given: object, _: str) -> bool:
    """Reads how long the model stays loaded, in seconds or as a duration; returns whether it is zero."""
    return _NO_TIME.fullmatch(given) is not None if isinstance(given, str) else given == 0 and given is not False
