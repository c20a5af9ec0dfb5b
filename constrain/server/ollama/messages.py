"""``messages`` of Ollama's chat, converted to OpenAI's form, and checked there.

A result names its call by ``tool_call_id``, or only the tool by ``tool_name``: then it belongs to the first call of
this tool that has no result yet. A result that names neither belongs to the first call without a result.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from constrain.fields.values import FieldError, array, mapping, optional_text, wrong_type
from constrain.server.requests.messages import read_messages
from constrain.server.requests.refusals import unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TEXT_ONLY = "This server reads text only; describe the image in 'content', or leave it out."


class _Waiting:
    """The calls of a message that have no result yet. Finding a call takes constant time on average.

    Args:
        calls: ids of the calls with the names of their tools, in the order of the message. What is no text is no name;
            it is refused later.
    """

    def __init__(self, calls: Iterable[tuple[str, object]]) -> None:
        self._without_result: set[str] = set()
        self._in_order: dict[str | None, deque[str]] = {None: deque()}  # by name of the tool; None: those of all tools
        for call_id, name in calls:
            self._without_result.add(call_id)
            self._in_order[None].append(call_id)
            if isinstance(name, str):
                self._in_order.setdefault(name, deque()).append(call_id)

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._without_result

    def first(self, name: str | None) -> str | None:
        """Returns the id of the first call of a tool, or of any; ``None`` if there is none."""
        ids = self._in_order.get(name, deque())
        while ids and ids[0] not in self._without_result:
            ids.popleft()
        return ids[0] if ids else None

    def remove(self, call_id: str) -> None:
        """Removes a call, which has its result."""
        self._without_result.remove(call_id)


def convert_messages(given: object) -> list[dict[str, Any]]:
    """Returns the checked messages of a conversation in OpenAI's form. Raises ``FieldError`` with the place."""
    converted: list[dict[str, Any]] = []
    waiting = _Waiting(())
    for index, message in enumerate(array(given, "messages")):
        where = f"messages[{index}]"
        members = mapping(message, where)
        refuse_images(members, f"{where}.")
        if members.get("role") == "tool":
            converted.append(_convert_result(members, waiting, where))
            continue
        found = _convert_message(members, index, where)
        waiting = _Waiting((call["id"], call["function"]["name"]) for call in found.get("tool_calls", ()))
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
        _require_same(members, thinking, where)
        kept["reasoning_content"] = thinking
    if calls is not None and array(calls, f"{where}.tool_calls"):
        places = [(call, f"{where}.tool_calls[{number}]") for number, call in enumerate(calls)]
        kept["tool_calls"] = [_convert_call(*each, f"call_{index}_{number}") for number, each in enumerate(places)]
    elif kept.get("content") is None:
        kept["content"] = ""
    return kept


def _require_same(members: Mapping[str, Any], thinking: str, where: str) -> None:
    """Raises ``FieldError`` for other reasoning in the field that other servers have for it."""
    other = optional_text(members, "reasoning_content", f"{where}.")
    if other and other != thinking:
        raise FieldError(
            f"Invalid '{where}.thinking': it differs from 'reasoning_content'; send one of them.",
            param=f"{where}.thinking",
            code="invalid_value",
        )


def _convert_call(call: object, where: str, default_id: str) -> dict[str, Any]:
    """Returns a call in OpenAI's form. ``default_id``: id of a call without one."""
    members = mapping(call, where)
    function = mapping(members.get("function"), f"{where}.function")
    index = function.get("index")
    if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
        raise wrong_type(f"{where}.function.index", "an integer", index)
    called = {"name": function.get("name"), "arguments": function.get("arguments", {})}
    return {
        "id": optional_text(members, "id", f"{where}.") or default_id,
        "type": "function",
        "function": called,
    }


def _convert_result(members: Mapping[str, Any], waiting: _Waiting, where: str) -> dict[str, Any]:
    """Returns a result in OpenAI's form, and removes its call from ``waiting``."""
    name, call_id = (optional_text(members, key, f"{where}.") for key in ("tool_name", "tool_call_id"))
    if not call_id:
        call_id = waiting.first(name or None)
    if call_id is None or call_id not in waiting:
        field = "tool_call_id" if members.get("tool_call_id") else "tool_name"
        given = f" {members[field]!r:.80}" if members.get(field) else ""
        raise FieldError(
            f"Invalid '{where}': it is a result of a call{given}, and the message before has no such call without a "
            "result in its 'tool_calls'.",
            param=f"{where}.{field}",
            code="invalid_value",
        )
    waiting.remove(call_id)
    kept = {key: value for key, value in members.items() if key not in ("images", "tool_name")}
    content = members.get("content")
    return {**kept, "tool_call_id": call_id, "content": "" if content is None else content}
