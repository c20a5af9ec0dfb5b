"""Messages in OpenAI's form, checked: every call has a result, and every known member its type.

A conversation is history: its messages may have members that nobody reads here, and its calls may be ones that no tool
of today would allow. ``Call.arguments`` says how such calls are shown.
"""

from __future__ import annotations

import json
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeAlias

from constrain.arguments import lone_surrogate, wrong_type
from constrain.errors import MessageError
from constrain.suggestions import closest

Prompt: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A caller's prompt: a text (one message of the user), or messages in OpenAI's form."""

ROLES = ("system", "developer", "user", "assistant", "tool")

_MEMBERS = {
    "system": ("role", "content", "name"),
    "developer": ("role", "content", "name"),
    "user": ("role", "content", "name"),
    "assistant": ("role", "content", "name", "tool_calls", "reasoning_content", "reasoning", "refusal"),
    "tool": ("role", "content", "name", "tool_call_id"),
}
"""Members that are read, by role. All others are accepted, since they say nothing that the model is shown."""

_ELSEWHERE = frozenset(("tool_calls", "tool_call_id"))
"""Members that say something in a message of one role; in a message of another role, they are likely a mistake."""

_MOST_MEMBERS = 20_000
"""Members of the messages of one request that are compared with the known ones; later ones are accepted unseen."""

_MOST_TOLD = 20
"""Members of one request that are told to be misspelt; the others are accepted in silence."""

_LIKENESS = 0.8
"""Likeness (``difflib``) of two names, from which on one is taken for a misspelling of the other, which is missing."""

_LIKENESS_BESIDE = 0.9
"""The same if the other is not missing."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call in a message of the assistant.

    Attributes:
        id: name by which the result refers to the call.
        name: name of the tool.
        text: arguments as JSON text, as the model wrote them; ``{}`` for none and for ``null``.
        arguments: arguments as a value. A custom tool's input is an object with the one member ``input``; a text that
            is no JSON object (cut off, a list, too deep) is one with the member ``arguments``.
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
        is_null: whether the client sent no content, or null.
        is_orphan: whether the call of this result is not in the conversation (any more).
    """

    role: str
    content: str
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    call_id: str = ""
    name: str = ""
    is_null: bool = field(default=False, repr=False)
    is_orphan: bool = field(default=False, repr=False)


def conversation(prompt: object) -> list[Message]:
    """Returns the messages of a prompt (see ``Prompt``). Raises ``MessageError``, and ``TypeError`` for other types.

    >>> conversation("Hello") == conversation([{"role": "user", "content": "Hello"}])
    True
    """
    if isinstance(prompt, str):
        _warn_of_nothing([prompt])
        return [Message("user", _text(prompt, "prompt"))]
    if isinstance(prompt, (bytes, bytearray, Mapping)) or not isinstance(prompt, Iterable):
        raise wrong_type("prompt", "a text or a list of messages", prompt)
    messages = list(prompt)
    if messages and all(isinstance(each, str) for each in messages):
        raise TypeError(
            "prompt is a list of texts; several prompts go to generate_batch, and a message is an object such as "
            '{"role": "user", "content": "..."}'
        )
    checked = check_messages(messages)
    for sentence in unread_members(messages):
        warnings.warn(sentence, stacklevel=2)
    _warn_of_nothing(message.content for message in checked)
    return checked


def _warn_of_nothing(texts: Iterable[str]) -> None:
    if not any(map(str.strip, texts)):
        cure = "pass a question, or the text to read"
        warnings.warn(f"the prompt is empty, so that the model makes up its answer; {cure}", stacklevel=3)


def check_messages(messages: object) -> list[Message]:
    """Checks messages in OpenAI's form, with roles ``system``, ``developer``, ``user``, ``assistant`` and ``tool``.

    The ``tool`` messages with results must come directly after the message with the calls, one for each call; they are
    returned in the order of the calls, and results of other calls behind them. A result without an id belongs to the
    first call of the tool with its ``name``, or of any. Raises ``MessageError``.

    >>> check_messages([{"role": "user", "content": "Hello"}])
    [Message(role='user', content='Hello', calls=(), reasoning='', call_id='', name='')]
    """
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise MessageError("messages", f"must be a list, not {type(messages).__name__}")
    if not messages:
        raise MessageError("messages", "must not be empty")
    checked: list[Message] = []
    calls: tuple[Call, ...] = ()
    waiting = _Waiting()
    results: dict[str, Message] = {}
    orphans: list[Message] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        part = _check(message, where)
        if part.role != "tool":
            if waiting:
                raise MessageError(where, _describe_unanswered(waiting))
            checked.append(part)
            calls, waiting = part.calls, _Waiting(part.calls)
            continue
        call_id = part.call_id or waiting.first(part.name)
        if call_id in waiting:
            results[call_id] = replace(part, call_id=call_id, name=waiting.remove(call_id))
        else:
            orphans.append(replace(part, is_orphan=True))
        if not waiting:
            checked += [*(results[call.id] for call in calls), *orphans]
            calls, results, orphans = (), {}, []
    if waiting:
        raise MessageError(f"messages[{len(messages) - 1}]", _describe_unanswered(waiting))
    return checked


class _Waiting:
    """The calls of a message that have no result yet. Finding a call takes constant time on average.

    Args:
        calls: calls in the order of the message.
    """

    def __init__(self, calls: Iterable[Call] = ()) -> None:
        self._names: dict[str, str] = {}  # by id
        self._in_order: dict[str, deque[str]] = {"": deque()}  # by name of the tool; "": those of all tools
        for call in calls:
            self._names[call.id] = call.name
            self._in_order[""].append(call.id)
            self._in_order.setdefault(call.name, deque()).append(call.id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._names

    def __len__(self) -> int:
        return len(self._names)

    def first(self, name: str) -> str:
        """Returns the id of the first call of a tool, or of any for ``""``; ``""`` if there is none."""
        ids = self._in_order.get(name, deque())
        while ids and ids[0] not in self._names:
            ids.popleft()
        return ids[0] if ids else ""

    def remove(self, call_id: str) -> str:
        """Removes a call, which has its result; returns the name of its tool."""
        return self._names.pop(call_id)


def unread_members(messages: Iterable[object]) -> list[str]:
    """Returns a sentence for each member of a message that is not read but may say something: misspelt or misplaced.

    >>> unread_members([{"role": "user", "content": "Hello", "id": "1", "names": "Ann"}])
    ["messages[0].names is not read; is 'name' meant?"]
    """
    found: list[str] = []
    looked_at = 0
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if not isinstance(message, Mapping) or role not in _MEMBERS:
            continue
        looked_at += len(message)
        if looked_at > _MOST_MEMBERS:
            break
        where = f"messages[{index}]"
        found += misspelt_members(message, _MEMBERS[role], where)
        found += [
            f"{where}.{name} is not read: messages of the role {role!r} have no such member."
            for name in _ELSEWHERE - set(_MEMBERS[role])
            if message.get(name)
        ]
        calls = message.get("tool_calls")
        for number, call in enumerate(calls if isinstance(calls, (list, tuple)) else ()):
            function = call.get("function") if isinstance(call, Mapping) else None
            if isinstance(function, Mapping):
                found += misspelt_members(function, ("name", "arguments"), f"{where}.tool_calls[{number}].function")
    return found[:_MOST_TOLD]


def misspelt_members(members: Mapping[Any, Any], read: Collection[str], where: str) -> list[str]:
    """Returns a sentence for each member that is not read and has nearly the name of one that is."""
    missing = [name for name in read if members.get(name) in (None, "")]
    there = [name for name in read if name not in missing]
    return [
        f"{where}.{name} is not read; is {meant!r} meant?"
        for name, value in members.items()
        if value is not None
        and isinstance(name, str)
        and name not in read
        and (meant := closest(name, missing, _LIKENESS) or closest(name, there, _LIKENESS_BESIDE))
    ]


def read_members(message: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a message in OpenAI's form with the members that ``check_messages`` reads."""
    return {name: message[name] for name in _MEMBERS[message["role"]] if name in message}


def map_texts(message: Message, change: Callable[[str], str]) -> Message:
    """Applies a function to every text in a message that the caller wrote."""
    calls = tuple(
        Call(change(call.id), change(call.name), change(call.text), map_strings(call.arguments, change))
        for call in message.calls
    )
    return replace(
        message,
        content=change(message.content),
        calls=calls,
        reasoning=change(message.reasoning),
        call_id=change(message.call_id),
        name=change(message.name),
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


def _describe_unanswered(waiting: Iterable[str]) -> str:
    missing = ", ".join(map(repr, waiting))
    return f"calls have no result before it: {missing}; a message with role 'tool' must follow for each"


def _check(message: object, where: str) -> Message:
    if not isinstance(message, Mapping):
        raise MessageError(where, f"must be an object, not {type(message).__name__}")
    role = message.get("role")
    if role not in ROLES:
        raise MessageError(f"{where}.role", f"{role!r} is none of {', '.join(ROLES)}{_misspelt(message, 'role')}")
    name = "" if message.get("name") is None else _text(message["name"], f"{where}.name")
    if role == "tool":
        call_id = "" if message.get("tool_call_id") is None else _text(message["tool_call_id"], f"{where}.tool_call_id")
        content = "" if message.get("content") is None else _content(message, where)
        return Message(role, content, call_id=call_id, name=name)
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
    elif calls or thoughts or "content" in message:  # an earlier answer may be empty
        content = ""
    else:
        problem = f"is required in a message without tool_calls{_misspelt(message, 'content')}"
        raise MessageError(f"{where}.content", problem)
    return Message(
        "assistant",
        content,
        calls,
        "".join(thoughts),
        name=name,
        is_null=not content and message.get("content") is None,
    )


def _misspelt(message: Mapping[str, Any], name: str) -> str:
    """Returns a note on the member that seems to be a missing one with its name misspelt; empty if there is none."""
    others = [key for key in islice(message, _MOST_TOLD) if isinstance(key, str) and key != name]
    near = closest(name, others, _LIKENESS) if message.get(name) is None else None
    return "" if near is None else f" ({near!r:.80} is not read)"


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
        problem = f"must be a string or a list of text parts, not {_type_name(content)}"
        raise MessageError(f"{where}.content", problem + _misspelt(message, "content"))
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
    checked = [_call(call, f"{where}[{index}]", f"call_{index}") for index, call in enumerate(calls)]
    known: set[str] = set()
    for index, call in enumerate(checked):
        if call.id in known:
            raise MessageError(f"{where}[{index}].id", f"two calls have the id {call.id!r}")
        known.add(call.id)
    return checked


def _call(call: object, where: str, default_id: str) -> Call:
    if not isinstance(call, Mapping):
        raise MessageError(where, f"must be an object, not {_type_name(call)}")
    call_id = "" if call.get("id") is None else _text(call["id"], f"{where}.id")
    kind = "function" if call.get("type") is None else call["type"]
    if kind not in ("function", "custom"):
        raise MessageError(f"{where}.type", f"{kind!r} is neither 'function' nor 'custom'")
    if kind == "custom":
        name, called = _called_name(call.get(kind), f"{where}.custom")
        text = "" if called.get("input") is None else _text(called["input"], f"{where}.custom.input")
        return Call(call_id or default_id, name, to_json({"input": text}), {"input": text})
    return check_function_call(call.get(kind), f"{where}.function", call_id or default_id)


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
    name = _text(called.get("name"), f"{where}.name")
    if not name:
        raise MessageError(f"{where}.name", "must not be empty")
    return name, called


def _arguments(given: object, where: str) -> tuple[str, dict[str, Any]]:
    """Returns a call's arguments as text and as a value (see ``Call``)."""
    text = (_text(given, where) if isinstance(given, str) else _write_json(given, where)).strip()
    if text in ("", "null"):
        return "{}", {}
    value = _parse(text)
    return text, {"arguments": text} if value is None else value


def _write_json(value: object, where: str) -> str:
    try:
        text = to_json(dict(value) if isinstance(value, Mapping) else value)
    except RecursionError as error:
        raise MessageError(where, "is nested too deeply to be written as JSON") from error
    except (TypeError, ValueError) as error:
        raise MessageError(where, f"must be JSON: {error}") from error
    return _text(text, where)


def _parse(text: str) -> dict[str, Any] | None:
    """Returns the JSON object of a text; ``None`` if there is none that a template can be given."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON number")

    try:
        value = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    usable = isinstance(value, dict) and _is_shallow(value) and lone_surrogate(to_json(value)) is None
    return value if usable else None


def _is_shallow(value: object) -> bool:
    level = [value]
    for _ in range(64):  # levels, few enough for recursive functions
        level = [inner for part in level for inner in _members(part)]
        if not level:
            return True
    return False


def _members(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def _type_name(value: object) -> str:
    return "null" if value is None else type(value).__name__
