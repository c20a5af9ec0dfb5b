"""``messages`` of a chat completion, checked; including those of the oldest clients.

Old clients send a ``function_call`` without an id, and its result in the next message, with the role ``function``. Both
are read as a tool call and its result, their successors; errors name the fields of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.chat.prompt.messages import check_function_call, check_messages, read_members, unread_members
from constrain.errors import MessageError
from constrain.fields.values import FieldError, array, optional_text, wrong_type
from constrain.server.http.account import warn
from constrain.server.requests.tools import omitted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CALL_ID = "call_0"
"""Id of a ``function_call``, which has none: its result follows at once, so all may share one id."""


def read_messages(given: object, name: str = "messages") -> list[dict[str, Any]]:
    """Returns the checked messages of a chat completion in today's form. Raises ``FieldError`` with the place."""
    written = [_with_readable_result(message) for message in array(given, name)]
    try:
        messages = convert_function_calls(written)
        check_messages(messages)
    except MessageError as error:
        raise wrong_message(error) from error
    for sentence in unread_members(messages):
        warn(sentence)
    known = [read_members(message) for message in messages]
    return [{**message, "role": "system"} if message["role"] == "developer" else message for message in known]


def wrong_message(error: MessageError) -> FieldError:
    """Returns the error for a wrong message."""
    return FieldError(f"Invalid value: {error}.", param=error.param)


def _with_readable_result(message: Any) -> Any:
    """Returns a message; in the result of a call, short texts stand for parts of other types, such as images."""
    if not isinstance(message, dict) or message.get("role") != "tool" or not isinstance(message.get("content"), list):
        return message
    parts = [
        {"type": "text", "text": part["text"]}
        if isinstance(part, dict) and part.get("type") != "refusal" and isinstance(part.get("text"), str)
        else {"type": "text", "text": omitted(part["type"].removesuffix("_url"))}
        if isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] not in ("text", "refusal")
        else part
        for part in message["content"]
    ]
    return {**message, "content": parts}


def convert_function_calls(messages: Sequence[Any]) -> list[Any]:
    """Returns messages with function calls as tool calls, and their results under the ids of these calls.

    All other messages stay unchanged. Raises ``FieldError`` for a call without a result and the result of
    another call, and ``MessageError`` for an invalid call.
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


def _caller(message: Mapping[str, Any], where: str) -> dict[str, Any]:
    call = message["function_call"]
    if not isinstance(call, dict):
        raise wrong_type(f"{where}.function_call", "an object", call)
    if message.get("tool_calls"):
        problem = f"{where}: 'function_call' and 'tool_calls' cannot be used together"
        raise FieldError(f"Invalid value: {problem}.", param=f"{where}.function_call")
    check_function_call(call, f"{where}.function_call", _CALL_ID)
    kept = {key: value for key, value in message.items() if key not in ("function_call", "tool_calls")}
    return {**kept, "tool_calls": [{"id": _CALL_ID, "type": "function", "function": call}]}


def _result(message: Mapping[str, Any], where: str, called: Mapping[str, Any] | None) -> dict[str, Any]:
    name, content = optional_text(message, "name", f"{where}."), message.get("content")
    result = {"role": "tool", "content": "" if content is None else content}
    if called is None:  # the call is gone
        return {**result, "name": name}
    if name not in (None, called.get("name")):
        raise FieldError(
            f"Invalid value: {where}: a message with role 'function' is the result of the call in the message before "
            f"it, which calls '{called.get('name')}'; this one is of '{name}'.",
            param=f"{where}.name",
        )
    return {**result, "tool_call_id": _CALL_ID}


def _require_result(called: Mapping[str, Any] | None, index: int) -> None:
    """Raises ``FieldError`` if a function call in the message before ``index`` has no result."""
    if called is not None:
        where = f"messages[{index - 1}].function_call"
        raise FieldError(
            f"Invalid value: {where}: the call has no result; a message with role 'function' must follow.",
            param=where,
        )
