"""Messages in OpenAI's shape, checked: calls have results, results have calls, and everything has its type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

ROLES = ("system", "developer", "user", "assistant", "tool")

_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")

_FIELDS = {
    "system": {"name"},
    "developer": {"name"},
    "user": {"name"},
    "assistant": {"name", "tool_calls", "reasoning_content", "reasoning", "refusal", "annotations"},
    "tool": {"name", "tool_call_id"},
}
"""Fields of messages beside ``role`` and ``content``. Others may be null: some clients send all fields."""


class MessageError(ValueError):
    """A message that cannot be used; ``param`` names the place: ``messages[2].tool_call_id``."""

    def __init__(self, param: str, problem: str) -> None:
        super().__init__(f"{param}: {problem}")
        self.param = param


@dataclass(frozen=True, slots=True)
class Call:
    """A call that an assistant wrote.

    Attributes:
        id: by which its result refers to it.
        name: of the tool.
        text: the arguments as JSON text, as the model wrote them.
        arguments: the same as a value. A custom tool's input is an object with the one member ``input``.
    """

    id: str
    name: str
    text: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """A checked message.

    Attributes:
        role: one of ``ROLES``.
        content: its text; ``""`` for none.
        calls: of tools, where the role is ``assistant``.
        reasoning: what the assistant thought first.
        call_id: which call this is the result of, where the role is ``tool``.
        name: the called tool's name, where the role is ``tool``.
    """

    role: str
    content: str
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    call_id: str = ""
    name: str = ""


def check_messages(messages: object) -> list[Message]:
    """Messages in OpenAI's shape (roles ``system``, ``developer``, ``user``, ``assistant`` and ``tool``), checked.

    Results stand behind the message with their calls, and come back in the order of the calls. Raises
    ``MessageError``.

    >>> check_messages([{"role": "user", "content": "Hello"}])
    [Message(role='user', content='Hello', calls=(), reasoning='', call_id='', name='')]
    """
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise MessageError("messages", f"must be a list, not {type(messages).__name__}")
    if not messages:
        raise MessageError("messages", "must not be empty")
    checked: list[Message] = []
    pending: dict[str, str] = {}
    results: dict[str, Message] = {}
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        part = _check(message, where)
        if part.role == "tool":
            if part.call_id in results:
                raise MessageError(f"{where}.tool_call_id", f"the call {part.call_id!r} has two results")
            if part.call_id not in pending:
                raise MessageError(f"{where}.tool_call_id", f"no call before it has the id {part.call_id!r}")
            results[part.call_id] = replace(part, name=pending[part.call_id])
            if len(results) == len(pending):
                checked += [results[call] for call in pending]
                pending, results = {}, {}
        elif pending:
            raise MessageError(where, _unanswered(pending, results))
        else:
            checked.append(part)
            pending = {call.id: call.name for call in part.calls}
    if pending:
        raise MessageError(f"messages[{len(messages) - 1}]", _unanswered(pending, results))
    return checked


def map_texts(message: Message, change: Callable[[str], str]) -> Message:
    """The message with every text in it changed that came from outside."""
    calls = tuple(
        Call(change(call.id), change(call.name), change(call.text), map_strings(call.arguments, change))
        for call in message.calls
    )
    return Message(
        message.role,
        change(message.content),
        calls,
        change(message.reasoning),
        change(message.call_id),
        change(message.name),
    )


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with every string and key in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): map_strings(member, change) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [map_strings(item, change) for item in value]
    return value


def to_json(value: Any) -> str:
    """A value as JSON on one line, the same every time."""
    return json.dumps(value, ensure_ascii=False)


def _unanswered(pending: dict[str, str], results: dict[str, Message]) -> str:
    missing = ", ".join(repr(call) for call in pending if call not in results)
    return f"calls have no result before it: {missing}; a message with role 'tool' must follow for each"


def _check(message: object, where: str) -> Message:
    if not isinstance(message, Mapping):
        raise MessageError(where, f"must be an object, not {type(message).__name__}")
    role = message.get("role")
    if role not in ROLES:
        raise MessageError(f"{where}.role", f"{role!r} is none of {', '.join(ROLES)}")
    for field, value in message.items():
        if field not in ("role", "content") and field not in _FIELDS[role] and value is not None:
            raise MessageError(f"{where}.{field}", f"messages of the role {role!r} have no such field")
    if role == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str) or not call_id:
            raise MessageError(f"{where}.tool_call_id", "must be the id of the call that this is the result of")
        return Message(role, _content(message, where), call_id=call_id)
    calls = tuple(_calls(message.get("tool_calls"), f"{where}.tool_calls"))
    if role != "assistant":
        return Message(role, _content(message, where))
    reasoning = [message[key] for key in ("reasoning_content", "reasoning") if message.get(key) is not None]
    if any(not isinstance(text, str) for text in reasoning) or len(set(reasoning)) > 1:
        raise MessageError(f"{where}.reasoning_content", "must be one text")
    if message.get("content") is None and (calls or reasoning):
        content = ""
    elif message.get("content") is None and isinstance(message.get("refusal"), str):
        content = message["refusal"]
    else:
        content = _content(message, where)
    return Message(role, content, calls, reasoning[0] if reasoning else "")


def _content(message: Mapping[str, Any], where: str) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        raise MessageError(f"{where}.content", f"must be a string or a list of text parts, not {_type_name(content)}")
    if not content:
        raise MessageError(f"{where}.content", "must not be an empty list")
    return "".join(_part(part, f"{where}.content[{index}]") for index, part in enumerate(content))


def _part(part: object, where: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or kind not in ("text", "refusal"):
        raise MessageError(where, f"only parts of the type 'text' can be used, not {kind or _type_name(part)!r}")
    text = part.get(kind)
    if not isinstance(text, str):
        raise MessageError(f"{where}.{kind}", f"must be a string, not {_type_name(text)}")
    return text


def _calls(calls: object, where: str) -> list[Call]:
    if calls is None:
        return []
    if not isinstance(calls, (list, tuple)):
        raise MessageError(where, f"must be a list, not {_type_name(calls)}")
    checked = [_call(call, f"{where}[{index}]") for index, call in enumerate(calls)]
    for index, call in enumerate(checked):
        if call.id in [other.id for other in checked[:index]]:
            raise MessageError(f"{where}[{index}].id", f"two calls have the id {call.id!r}")
    return checked


def _call(call: object, where: str) -> Call:
    if not isinstance(call, Mapping):
        raise MessageError(where, f"must be an object, not {_type_name(call)}")
    call_id, kind = call.get("id"), call.get("type", "function")
    if not isinstance(call_id, str) or not call_id:
        raise MessageError(f"{where}.id", "must be a text that is not empty")
    if kind not in ("function", "custom"):
        raise MessageError(f"{where}.type", f"{kind!r} is neither 'function' nor 'custom'")
    called = call.get(kind)
    if not isinstance(called, Mapping):
        raise MessageError(f"{where}.{kind}", f"must be an object, not {_type_name(called)}")
    name = called.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise MessageError(f"{where}.{kind}.name", f"{name!r} is no tool's name ({_NAME.pattern})")
    if kind == "custom":
        text = called.get("input")
        if not isinstance(text, str):
            raise MessageError(f"{where}.custom.input", f"must be a string, not {_type_name(text)}")
        return Call(call_id, name, to_json({"input": text}), {"input": text})
    text, arguments = _arguments(called.get("arguments"), f"{where}.function.arguments")
    return Call(call_id, name, text, arguments)


def _arguments(given: object, where: str) -> tuple[str, dict[str, Any]]:
    """Arguments as text and as a value. No text at all stands for no arguments, as some servers write it."""
    if isinstance(given, Mapping):
        return to_json(given), dict(given)
    if not isinstance(given, str):
        raise MessageError(where, f"must be JSON text, not {_type_name(given)}")
    text = given.strip() or "{}"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageError(where, f"is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise MessageError(where, f"must be a JSON object, not {_type_name(value)}")
    return text, value


def _type_name(value: object) -> str:
    return "null" if value is None else type(value).__name__
