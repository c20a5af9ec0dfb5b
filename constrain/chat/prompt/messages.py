"""Messages in OpenAI's form, checked: every call has a result, every result a call, every field its type."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from constrain.arguments import lone_surrogate, wrong_type
from constrain.chat.tools.checks import CALLED_NAME

Prompt: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A caller's prompt: a text (one message of the user), or messages in OpenAI's form."""

ROLES = ("system", "developer", "user", "assistant", "tool")

_DEEPEST = 64
"""Levels of nesting in a call's arguments in a message: few enough for recursive functions. Beyond: ValueError, or
status 400.
"""

_FIELDS = {
    "system": {"name"},
    "developer": {"name"},
    "user": {"name"},
    "assistant": {"name", "tool_calls", "reasoning_content", "reasoning", "refusal", "annotations"},
    "tool": {"name", "tool_call_id"},
}
"""Optional fields of messages by role. Other fields may be null: some clients send all fields."""


class MessageError(ValueError):
    """A wrong message. ``param`` names the place, such as ``messages[2].tool_call_id``."""

    def __init__(self, param: str, problem: str) -> None:
        super().__init__(f"{param}: {problem}")
        self.param = param


@dataclass(frozen=True, slots=True)
class Call:
    """A call in a message of the assistant.

    Attributes:
        id: name by which the result refers to the call.
        name: name of the tool.
        text: arguments as JSON text, as the model wrote them.
        arguments: arguments as a value. A custom tool's input is an object with the one member ``input``.
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
        content: text of the message; ``""`` for none.
        calls: calls of tools, if the role is ``assistant``.
        reasoning: reasoning of the assistant in front of the text.
        call_id: id of the call that this message is the result of, if the role is ``tool``.
        name: name of the called tool, if the role is ``tool``; otherwise the speaker's name, for templates that show
            it.
    """

    role: str
    content: str
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    call_id: str = ""
    name: str = ""


def conversation(prompt: object) -> list[Message]:
    """Returns the messages of a prompt (see ``Prompt``). Raises ``MessageError``, and ``TypeError`` for other types.

    >>> conversation("Hello") == conversation([{"role": "user", "content": "Hello"}])
    True
    """
    if isinstance(prompt, str):
        return [Message("user", _text(prompt, "prompt"))]
    if isinstance(prompt, (bytes, bytearray, Mapping)) or not isinstance(prompt, Iterable):
        raise wrong_type("prompt", "a text or a list of messages", prompt)
    return check_messages(list(prompt))


def check_messages(messages: object) -> list[Message]:
    """Checks messages in OpenAI's form, with roles ``system``, ``developer``, ``user``, ``assistant`` and ``tool``.

    The ``tool`` messages with results must come directly after the message with the calls, one for each call; they are
    returned in the order of the calls. Raises ``MessageError``.

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
            raise MessageError(where, _describe_unanswered(pending, results))
        else:
            checked.append(part)
            pending = {call.id: call.name for call in part.calls}
    if pending:
        raise MessageError(f"messages[{len(messages) - 1}]", _describe_unanswered(pending, results))
    return checked


def map_texts(message: Message, change: Callable[[str], str]) -> Message:
    """Applies a function to every text in a message that the caller wrote."""
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
    """Applies a function to every string and key in a JSON value."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): map_strings(member, change) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [map_strings(item, change) for item in value]
    return value


def to_json(value: Any) -> str:
    """Returns a value as JSON on one line; equal values give equal texts."""
    return json.dumps(value, ensure_ascii=False)


def _describe_unanswered(pending: dict[str, str], results: dict[str, Message]) -> str:
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
    name = "" if message.get("name") is None else _text(message["name"], f"{where}.name")
    if role == "tool":
        call_id = _text(message.get("tool_call_id"), f"{where}.tool_call_id")
        return Message(role, _content(message, where), call_id=call_id)
    if role == "assistant":
        return _check_answer(message, where, name)
    return Message(role, _content(message, where), name=name)


def _check_answer(message: Mapping[str, Any], where: str, name: str) -> Message:
    calls = tuple(_calls(message.get("tool_calls"), f"{where}.tool_calls"))
    thoughts = {
        _text(message[key], f"{where}.{key}")
        for key in ("reasoning_content", "reasoning")
        if message.get(key) is not None
    }
    if len(thoughts) > 1:
        raise MessageError(f"{where}.reasoning", "differs from reasoning_content")
    if message.get("content") is not None:
        content = _content(message, where)
    elif message.get("refusal") is not None:
        content = _text(message["refusal"], f"{where}.refusal")
    elif calls or thoughts:
        content = ""
    else:
        raise MessageError(f"{where}.content", "must not be null without tool_calls")
    return Message("assistant", content, calls, "".join(thoughts), name=name)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise MessageError(where, f"must be a string, not {_type_name(value)}")
    _require_unicode(value, where)
    return value


def _require_unicode(text: str, where: str) -> None:
    if surrogate := lone_surrogate(text):
        at, half = surrogate
        raise MessageError(where, f"holds {half} at character {at}")


def _content(message: Mapping[str, Any], where: str) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return _text(content, f"{where}.content")
    if not isinstance(content, (list, tuple)):
        raise MessageError(f"{where}.content", f"must be a string or a list of text parts, not {_type_name(content)}")
    if not content:
        raise MessageError(f"{where}.content", "must not be an empty list")
    return "".join(_part(part, f"{where}.content[{index}]") for index, part in enumerate(content))


def _part(part: object, where: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or kind not in ("text", "refusal"):
        raise MessageError(where, f"only parts of the type 'text' can be used, not {kind or _type_name(part)!r}")
    return _text(part.get(kind), f"{where}.{kind}")


def _calls(calls: object, where: str) -> list[Call]:
    if calls is None:
        return []
    if not isinstance(calls, (list, tuple)):
        raise MessageError(where, f"must be a list, not {_type_name(calls)}")
    checked = [_call(call, f"{where}[{index}]") for index, call in enumerate(calls)]
    known: set[str] = set()
    for index, call in enumerate(checked):
        if call.id in known:
            raise MessageError(f"{where}[{index}].id", f"two calls have the id {call.id!r}")
        known.add(call.id)
    return checked


def _call(call: object, where: str) -> Call:
    if not isinstance(call, Mapping):
        raise MessageError(where, f"must be an object, not {_type_name(call)}")
    call_id, kind = _text(call.get("id"), f"{where}.id"), call.get("type", "function")
    if not call_id:
        raise MessageError(f"{where}.id", "must not be empty")
    if kind not in ("function", "custom"):
        raise MessageError(f"{where}.type", f"{kind!r} is neither 'function' nor 'custom'")
    if kind == "custom":
        name, called = _called_name(call.get(kind), f"{where}.custom")
        text = _text(called.get("input"), f"{where}.custom.input")
        return Call(call_id, name, to_json({"input": text}), {"input": text})
    return check_function_call(call.get(kind), f"{where}.function", call_id)


def check_function_call(called: object, where: str, call_id: str, field: str = "arguments") -> Call:
    """Returns the checked call of a function, given as ``name`` and ``arguments``. Raises ``MessageError``.

    ``field``: name of the member with the arguments.
    """
    name, members = _called_name(called, where)
    text, arguments = _arguments(members.get(field), f"{where}.{field}")
    return Call(call_id, name, text, arguments)


def _called_name(called: object, where: str) -> tuple[str, Mapping[str, Any]]:
    """Returns the name of the tool that an object calls, and the object."""
    if not isinstance(called, Mapping):
        raise MessageError(where, f"must be an object, not {_type_name(called)}")
    name = called.get("name")
    if not isinstance(name, str) or not CALLED_NAME.fullmatch(name):
        raise MessageError(f"{where}.name", f"{name!r} is no tool's name ({CALLED_NAME.pattern})")
    return name, called


def _arguments(given: object, where: str) -> tuple[str, dict[str, Any]]:
    """Returns a call's arguments as text and as a value. Empty text means no arguments, as some servers write them."""
    if isinstance(given, Mapping):
        _require_shallow(given, where)
        text = _write_json(given, where)
    else:
        text = _text(given, where).strip() or "{}"
    value = _parse(text, where)
    _require_shallow(value, where)
    _require_unicode(to_json(value), where)
    return text, value


def _write_json(value: Mapping[str, Any], where: str) -> str:
    try:
        return to_json(dict(value))
    except (TypeError, ValueError) as error:
        raise MessageError(where, f"must be JSON: {error}") from error


def _parse(text: str, where: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON number")

    try:
        value = json.loads(text, parse_constant=refuse)
    except RecursionError as error:
        raise MessageError(where, f"must be JSON: it is nested more than {_DEEPEST} levels deep") from error
    except ValueError as error:
        raise MessageError(where, f"must be JSON: {error}") from error
    if not isinstance(value, dict):
        raise MessageError(where, f"must be a JSON object, not {_type_name(value)}")
    return value


def _require_shallow(value: object, where: str) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for part in level for inner in _members(part)]
        if not level:
            return
    raise MessageError(where, f"is nested more than {_DEEPEST} levels deep")


def _members(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def _type_name(value: object) -> str:
    return "null" if value is None else type(value).__name__
