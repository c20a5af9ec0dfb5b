"""``messages`` of Ollama's chat, converted to OpenAI's form, and checked there.

A result names its call by ``tool_call_id``, or only the tool by ``tool_name``: then it belongs to the first call of
this tool that has no result yet. A result that names neither belongs to the first call without a result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import FieldError, array, mapping, optional_text, wrong_type
from constrain.server.requests.messages import read_messages
from constrain.server.requests.refusals import unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT_ONLY = "This server reads text only; describe the image in 'content', or leave it out."


def convert_messages(given: object) -> list[dict[str, Any]]:
    """Returns the checked messages of a conversation in OpenAI's form. Raises ``FieldError`` with the place."""
    converted: list[dict[str, Any]] = []
    waiting: dict[str, str] = {}
    for index, message in enumerate(array(given, "messages")):
        where = f"messages[{index}]"
        members = mapping(message, where)
        refuse_images(members, f"{where}.")
        if members.get("role") == "tool":
            converted.append(_convert_result(members, waiting, where))
            continue
        found = _convert_message(members, index, where)
        waiting = {call["id"]: call["function"]["name"] for call in found.get("tool_calls", ())}
        converted.append(found)
    return read_messages({"messages": converted})


def refuse_images(members: Mapping[str, Any], place: str = "") -> None:
    """Raises ``FieldError`` for an object with ``images``."""
    images = members.get("images")
    if images is not None and array(images, f"{place}images"):
        raise unsupported(f"{place}images", _TEXT_ONLY)


def _convert_message(members: Mapping[str, Any], index: int, where: str) -> dict[str, Any]:
    kept = {key: value for key, value in members.items() if key not in ("images", "thinking", "tool_calls")}
    thinking, calls = optional_text(members, "thinking", f"{where}."), members.get("tool_calls")
    if thinking:
        kept["reasoning_content"] = thinking
    if calls is not None and array(calls, f"{where}.tool_calls"):
        places = [(call, f"{where}.tool_calls[{number}]") for number, call in enumerate(calls)]
        kept["tool_calls"] = [_convert_call(*each, f"call_{index}_{number}") for number, each in enumerate(places)]
    elif kept.get("content") is None:
        kept["content"] = ""
    return kept


def _convert_call(call: object, where: str, default_id: str) -> dict[str, Any]:
    """Returns a call in OpenAI's form. ``default_id``: id of a call without one."""
    members = mapping(call, where)
    function = mapping(members.get("function"), f"{where}.function")
    mapping(function.get("arguments", {}), f"{where}.function.arguments")
    index = function.get("index")
    if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
        raise wrong_type(f"{where}.function.index", "an integer", index)
    called = {"name": function.get("name"), "arguments": function.get("arguments", {})}
    return {
        "id": optional_text(members, "id", f"{where}.") or default_id,
        "type": "function",
        "function": called,
    }


def _convert_result(members: Mapping[str, Any], waiting: dict[str, str], where: str) -> dict[str, Any]:
    """Returns a result in OpenAI's form, and removes its call from ``waiting``: names of called tools, by id."""
    name, call_id = (optional_text(members, key, f"{where}.") for key in ("tool_name", "tool_call_id"))
    if not call_id:
        call_id = next((known for known, called in waiting.items() if not name or called == name), None)
    if call_id not in waiting:
        field = "tool_call_id" if members.get("tool_call_id") else "tool_name"
        given = f" {members[field]!r:.80}" if members.get(field) else ""
        raise FieldError(
            f"Invalid '{where}': it is a result of a call{given}, and the message before has no such call without a "
            "result in its 'tool_calls'.",
            param=f"{where}.{field}",
            code="invalid_value",
        )
    del waiting[call_id]
    kept = {key: value for key, value in members.items() if key not in ("images", "tool_name")}
    content = members.get("content")
    return {**kept, "tool_call_id": call_id, "content": "" if content is None else content}
