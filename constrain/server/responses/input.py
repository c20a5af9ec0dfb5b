"""Input items of responses, checked, and their conversion to chat messages.

A conversation is a list of items. The items of one answer of the model (reasoning, text and calls) are adjacent and
become one message. The results of its calls follow this message, wherever they are in the list.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrain.chat.prompt.messages import check_messages, misspelt_members, to_json
from constrain.errors import MessageError
from constrain.fields.values import (
    array,
    invalid,
    mapping,
    missing,
    one_of,
    optional_text,
    required_text,
    wrong_type,
    wrong_value,
)
from constrain.server.http.account import warn
from constrain.server.http.errors import ApiError
from constrain.server.requests.tools import KINDS, NAMESPACE, SEARCH, name_in, omitted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROLES = ("user", "assistant", "system", "developer")

REFERENCE = "item_reference"
"""Type of an item that stands for a kept one, by its id."""

PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "additional_tools": "at",
    "reasoning": "rs",
}
"""Prefixes of the ids of items."""

_RESULTS = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
    "tool_search_output": "tool_search_call",
}
CALLS = {"function_call": "arguments", "custom_tool_call": "input", "tool_search_call": "arguments"}
"""Name of a call's text, by the type of its item."""

SEARCH_ITEMS = ("tool_search_call", "tool_search_output", "additional_tools")
"""Types of the items by which tools are found while a conversation goes on."""

_WITH_TOOLS = ("tool_search_output", "additional_tools")
"""Types of items with tools that can be called from there on; here, they can be called in the whole request."""

_MEMBERS = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "namespace", "arguments"),
    "function_call_output": ("call_id", "name", "namespace", "output"),
    "custom_tool_call": ("call_id", "name", "namespace", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "tool_search_call": ("call_id", "arguments", "execution"),
    "tool_search_output": ("call_id", "tools", "execution"),
    "additional_tools": ("role", "tools"),
    "reasoning": ("summary", "content"),
}
"""Members that say something, by type of the item; the others are accepted."""

Item = dict[str, Any]


def read_items(given: object) -> list[Item]:
    """Reads the field ``input`` as items, as ``GET /v1/responses/{id}/input_items`` lists them, except for missing ids.

    Items of types that the model cannot read are left out, with a warning. Raises ``ApiError`` for values that are not
    items, and for items that this server cannot use.
    """
    if isinstance(given, str):
        return [_message({"role": "user", "content": given}, "input")]
    if not isinstance(given, list):
        raise wrong_type("input", "a string or an array", given)
    read = (_item(mapping(item, f"input[{index}]"), f"input[{index}]") for index, item in enumerate(given))
    return [item for item in read if item is not None]


def tools_of_items(items: object) -> list[tuple[object, str]]:
    """Returns the lists of tools in the field ``input``, or in items, with their places."""
    listed = enumerate(items if isinstance(items, list | tuple) else ())
    found = [(each, f"input[{index}].tools") for index, each in listed if isinstance(each, dict)]
    return [(each.get("tools"), place) for each, place in found if each.get("type") in _WITH_TOOLS]


def add_ids(items: Sequence[Item], response_id: str) -> list[Item]:
    """Returns the items; items without an id get one that is derived from the response's id."""
    unique = response_id.partition("_")[2]
    return [
        item
        if item.get("id") or item["type"] == REFERENCE
        else {**item, "id": f"{PREFIXES[item['type']]}_{unique}i{index:04x}"}
        for index, item in enumerate(items)
    ]


def _item(item: Mapping[str, Any], place: str) -> Item | None:
    """Returns a checked item; ``None`` for one that the model cannot read. Raises ``ApiError`` or ``FieldError``."""
    kind = optional_text(item, "type", f"{place}.")
    if kind is None:
        kind = "message" if "role" in item else REFERENCE if set(item) <= {"id", "type"} else None
    if kind in _MEMBERS:
        for sentence in misspelt_members(item, ("type", *_MEMBERS[kind]), place):
            warn(sentence)
    match kind:
        case None:
            raise wrong_value(f"{place}.type", None, tuple(PREFIXES))
        case "message":
            return _message(item, place)
        case "reasoning":
            return _read_reasoning(item, place)
        case "item_reference":
            return {"type": kind, "id": required_text(item, "id", f"{place}.")}
        case "function_call" | "custom_tool_call":
            texts = {key: required_text(item, key, f"{place}.") for key in ("call_id", "name")}
            texts[CALLS[kind]] = _called_with(item, CALLS[kind], place)
            namespace = optional_text(item, "namespace", f"{place}.")
            inside = {} if namespace is None else {"namespace": namespace}
            return {**_identity(item, place), "type": kind, **texts, **inside, "status": _status(item)}
        case "function_call_output" | "custom_tool_call_output":
            origin = _origin(item, place)
            output = _text_or_array(item, "output", f"{place}.")
            if not isinstance(output, str):
                output = _result_parts(output, f"{place}.output")
            entry = {"type": kind, **origin, "output": output, "status": _status(item)}
            return {**_identity(item, place), **entry}
        case "tool_search_call" | "tool_search_output":
            key = "tools" if kind in _WITH_TOOLS else CALLS[kind]
            if key not in item:
                raise missing(f"{place}.{key}")
            by_client = item.get("execution") == "client"
            named = required_text(item, "call_id", f"{place}.") if by_client else None
            about = {"type": kind, "call_id": named, "execution": "client" if by_client else "server"}
            return {**_identity(item, place), **about, key: item[key], "status": _status(item)}
        case "additional_tools":
            return {**_identity(item, place), "type": kind, "role": "developer", "tools": item.get("tools")}
    warn(f"Items of the type '{kind:.80}' are left out of the input: the model cannot read them here.")
    return None


def _called_with(item: Mapping[str, Any], key: str, place: str) -> str:
    """Returns what a tool was called with, as text: an old call may have any arguments, or none."""
    given = item.get(key)
    if given is None:
        return ""
    return required_text(item, key, f"{place}.") if isinstance(given, str) or key != "arguments" else to_json(given)


def _origin(item: Mapping[str, Any], place: str) -> dict[str, str]:
    """Returns the call that an output belongs to, or the tool whose output it is if the model did not ask for it."""
    if item.get("type") == "function_call_output" and item.get("call_id") is None and item.get("name") is not None:
        namespace = optional_text(item, "namespace", f"{place}.")
        return {"name": required_text(item, "name", f"{place}."), **({"namespace": namespace} if namespace else {})}
    return {"call_id": required_text(item, "call_id", f"{place}.")}


def _text_or_array(item: Mapping[str, Any], key: str, place: str) -> str | list[Any]:
    if key not in item:
        raise missing(f"{place}{key}")
    value: object = item[key]
    if not isinstance(value, str | list):
        raise wrong_type(f"{place}{key}", "a string or an array", value)
    return value


def _identity(item: Mapping[str, Any], place: str) -> Item:
    given = optional_text(item, "id", f"{place}.")
    return {"id": given} if given else {}


def _status(item: Mapping[str, Any]) -> str:
    """Returns the status of an item, which says nothing to the model."""
    given = item.get("status")
    return given if given in ("in_progress", "incomplete") else "completed"


def _message(item: Mapping[str, Any], place: str) -> Item:
    role = one_of(item.get("role"), ROLES, f"{place}.role")
    content = _text_or_array(item, "content", f"{place}.")
    kinds = ("output_text", "refusal", "input_text") if role == "assistant" else ("input_text",)
    if isinstance(content, str):
        parts = [{"type": kinds[0], "text": content}]
    elif not content:
        message = f"Invalid '{place}.content': empty array. Expected an array with at least one part."
        raise ApiError(message, param=f"{place}.content", code="empty_array")
    else:
        parts = _parts(content, kinds, f"{place}.content")
    if role == "assistant":
        parts = [part if part["type"] == "refusal" else _output_text(part["text"]) for part in parts]
    entry = {"type": "message", "role": role, "content": parts, "status": _status(item)}
    return {**_identity(item, place), **entry}


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _parts(content: Sequence[object], kinds: Sequence[str], place: str) -> list[dict[str, Any]]:
    """Returns the text parts of a content; refuses images, files and audio by name."""
    parts: list[dict[str, Any]] = []
    for index, given in enumerate(content):
        where = f"{place}[{index}]"
        part = mapping(given, where)
        kind = part.get("type")
        if kind in ("input_image", "input_file", "input_audio"):
            raise invalid(where, f"this server reads text only, no '{kind}'.")
        one_of(kind, kinds, f"{where}.type")
        key = "refusal" if kind == "refusal" else "text"
        parts.append({"type": kind, key: required_text(part, key, f"{where}.")})
    return parts


def _result_parts(content: Sequence[object], place: str) -> list[dict[str, Any]]:
    """Returns the parts of a result as texts; a short text stands for an image or a file."""
    parts: list[dict[str, Any]] = []
    for index, given in enumerate(content):
        part = mapping(given, f"{place}[{index}]")
        kind = required_text(part, "type", f"{place}[{index}].")
        if isinstance(part.get("text"), str):
            parts += _parts([{**part, "type": "input_text"}], ("input_text",), place)
        else:
            parts.append({"type": "input_text", "text": omitted(kind.removeprefix("input_"))})
    return parts


def _read_reasoning(item: Mapping[str, Any], place: str) -> Item:
    entry: Item = {**_identity(item, place), "type": "reasoning", "status": _status(item)}
    for key, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
        given = _parts(array(item.get(key) or [], f"{place}.{key}"), (kind, "output_text"), f"{place}.{key}")
        entry[key] = [{**part, "type": kind} for part in given]  # Open WebUI keeps thoughts as output
    encrypted = optional_text(item, "encrypted_content", f"{place}.")
    return entry if encrypted is None else {**entry, "encrypted_content": encrypted}


@dataclass
class _Turn:
    """The items of one future message: texts, and for the assistant reasoning, calls and results by their positions."""

    role: str
    texts: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[Item] = field(default_factory=list)
    results: dict[int, str] = field(default_factory=dict)


def conversation(items: Sequence[Item], instructions: str | None = None) -> list[dict[str, Any]]:
    """Converts checked items to chat messages, with ``instructions`` first.

    References to items are left out, and so are searches for tools that the client did not carry out: all tools of a
    request are shown anyway.

    Raises ``ApiError`` for a call without a result, a result without a call, and content that a message cannot have.
    """
    turns = [_Turn("system", [instructions])] if instructions else []
    pending: dict[tuple[str, str], list[tuple[_Turn, int]]] = {}  # calls without results so far
    answer: _Turn | None = None
    for item in items:
        kind = item["type"]
        if kind == REFERENCE:
            warn(f"The item '{item['id']:.80}' is left out of the input: no kept response has it.")
        elif kind == "additional_tools" or item.get("execution") == "server":
            pass
        elif kind in _RESULTS:
            if "call_id" in item:
                _add_result(pending, item)
            else:
                said = f"Output of {name_in(item.get('namespace'), item['name'])}:\n{_output(item)}"
                turns.append(_Turn("user", [said]))
            answer = None
        elif kind == "message" and item["role"] != "assistant":
            role = "system" if item["role"] == "developer" else item["role"]
            turns.append(_Turn(role, [_text(item["content"])]))
            answer = None
        else:
            if answer is None or _begins_answer(answer, kind):
                answer = _Turn("assistant")
                turns.append(answer)
            _add_to_answer(answer, item)
            if kind in CALLS:
                pending.setdefault((kind, item["call_id"]), []).append((answer, len(answer.calls) - 1))
    messages = [message for turn in turns for message in _messages(turn)]
    try:
        check_messages(messages)
    except MessageError as error:
        raise invalid("input", error.args[1]) from error
    return messages


def _begins_answer(answer: _Turn, kind: str) -> bool:
    """Returns whether an item begins a new answer: text and reasoning cannot follow the calls of the same answer."""
    return kind in ("message", "reasoning") and bool(answer.texts) and not answer.calls


def _add_to_answer(answer: _Turn, item: Item) -> None:
    if item["type"] in CALLS:
        answer.calls.append(item)
    elif item["type"] == "reasoning":
        thoughts = _text(item["content"] or item["summary"])
        answer.reasoning += [thoughts] if thoughts else []
    else:
        answer.texts.append(_text(item["content"]))


def _add_result(pending: Mapping[tuple[str, str], list[tuple[_Turn, int]]], item: Item) -> None:
    """Adds a result to the latest earlier call with its id and without a result."""
    kind, call_id = _RESULTS[item["type"]], item["call_id"]
    calls = pending.get((kind, call_id))
    if not calls:
        raise ApiError(f"No tool call found for {kind.replace('_', ' ')} output with call_id {call_id}.", param="input")
    turn, position = calls.pop()
    found = _names_found(item["tools"]) or "No tool was found." if kind == "tool_search_call" else _output(item)
    turn.results[position] = found


def _output(item: Item) -> str:
    output = item["output"]
    return output if isinstance(output, str) else _text(output)


def _names_found(tools: Sequence[Mapping[str, Any]]) -> str:
    """Returns the names of tools that a search has found, as the model is shown them."""
    listed = [(None, each) for each in tools if each["type"] != NAMESPACE]
    listed += [(space["name"], each) for space in tools if space["type"] == NAMESPACE for each in space["tools"]]
    return "\n".join(f"[tool {name_in(space, each['name'])}]" for space, each in listed if each["type"] in KINDS)


def _text(parts: Sequence[Mapping[str, Any]]) -> str:
    return "".join(part["refusal"] if part["type"] == "refusal" else part["text"] for part in parts)


def _messages(turn: _Turn) -> list[dict[str, Any]]:
    text = "\n".join(turn.texts) if turn.texts else None
    if turn.role != "assistant":
        return [{"role": turn.role, "content": text}]
    if text is None and not turn.calls and not turn.reasoning:
        return []
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if turn.reasoning:
        message["reasoning_content"] = "\n".join(turn.reasoning)
    if turn.calls:
        message["tool_calls"] = [_call(call) for call in turn.calls]
    results: list[dict[str, Any]] = []
    for position, call in enumerate(turn.calls):
        if position not in turn.results:
            raise ApiError(
                f"No tool output found for {call['type'].replace('_', ' ')} {call['call_id']}.", param="input"
            )
        results.append({"role": "tool", "tool_call_id": call["call_id"], "content": turn.results[position]})
    return [message, *results]


def _call(item: Item) -> dict[str, Any]:
    if item["type"] == "tool_search_call":
        called = {"name": SEARCH, "arguments": _called_with(item, "arguments", "")}
        return {"id": item["call_id"], "type": "function", "function": called}
    kind, key = ("function", "arguments") if item["type"] == "function_call" else ("custom", "input")
    name = name_in(item.get("namespace"), item["name"])
    return {"id": item["call_id"], "type": kind, kind: {"name": name, key: item[key]}}
