"""``messages`` of Ollama's chat, converted to OpenAI's form, and checked there.

A result names its call by ``tool_call_id``, or only the tool by ``tool_name``: then it belongs to the first call of
this tool that has no result yet. A result that names neither belongs to the first call without a result, and so does
one with an id where calls came without theirs, as LiteLLM sends them. A result whose call is gone is shown as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.fields.values import array, invalid, mapping, optional_text
from constrain.server.requests.messages import read_messages
from constrain.server.requests.refusals import unsupported
from constrain.server.requests.tools import omitted

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT_ONLY = "This server reads text only; describe the image in 'content', or leave it out."


def convert_messages(given: object) -> list[dict[str, Any]]:
    """Returns the checked messages of a conversation in OpenAI's form. Raises ``FieldError`` with the place."""
    converted: list[dict[str, Any]] = []
    ids: set[str] = set()
    are_made = False  # whether any of these ids is not the caller's
    for index, message in enumerate(array(given, "messages")):
        where = f"messages[{index}]"
        members = mapping(message, where)
        if members.get("role") == "tool":
            result = _convert_result(members, where)
            if are_made and optional_text(members, "tool_call_id", f"{where}.") not in ids:
                result.pop("tool_call_id", None)
            converted.append(result)
        else:
            refuse_images(members, f"{where}.")
            made = f"call_{index}_"
            converted.append(_convert_message(members, made, where))
            ids = {call["id"] for call in converted[-1].get("tool_calls", ())}
            are_made = any(each.startswith(made) for each in ids)
    return read_messages(converted)


def refuse_images(members: Mapping[str, Any], place: str = "") -> None:
    """Raises ``FieldError`` for an object with ``images``."""
    images = members.get("images")
    if images is not None and array(images, f"{place}images"):
        raise unsupported(f"{place}images", _TEXT_ONLY)


def _convert_message(members: Mapping[str, Any], made: str, where: str) -> dict[str, Any]:
    """Returns another message. ``made``: what the ids begin with that calls without one get."""
    kept = {key: value for key, value in members.items() if key not in ("images", "thinking", "tool_calls")}
    thinking, calls = optional_text(members, "thinking", f"{where}."), members.get("tool_calls")
    if thinking:
        _require_same(members, thinking, where)
        kept["reasoning_content"] = thinking
    if calls is not None and array(calls, f"{where}.tool_calls"):
        places = [(call, f"{where}.tool_calls[{number}]") for number, call in enumerate(calls)]
        kept["tool_calls"] = [_convert_call(*each, f"{made}{number}") for number, each in enumerate(places)]
    elif kept.get("content") is None:
        kept["content"] = ""
    return kept


def _require_same(members: Mapping[str, Any], thinking: str, where: str) -> None:
    """Raises ``FieldError`` for other reasoning in the field that other servers have for it."""
    other = optional_text(members, "reasoning_content", f"{where}.")
    if other and other != thinking:
        raise invalid(f"{where}.thinking", "it differs from 'reasoning_content'; send one of them.")


def _convert_call(call: object, where: str, default_id: str) -> dict[str, Any]:
    """Returns a call in OpenAI's form. ``default_id``: id of a call without one."""
    members = mapping(call, where)
    function = mapping(members.get("function"), f"{where}.function")
    return {"id": optional_text(members, "id", f"{where}.") or default_id, "type": "function", "function": function}


def _convert_result(members: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Returns a result in OpenAI's form: there, the tool's ``name`` finds the call of a result without an id."""
    name = optional_text(members, "tool_name", f"{where}.")
    kept = {key: value for key, value in members.items() if key not in ("images", "tool_name")}
    content = "" if members.get("content") is None else members["content"]
    if members.get("images") and isinstance(content, str):
        content = "\n".join(filter(None, (content, omitted("image"))))
    return {**kept, **({"name": name} if name else {}), "content": content}
