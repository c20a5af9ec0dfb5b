"""``system`` and ``messages`` of a request, checked, and their conversion to chat messages.

Consecutive messages of one role are one turn. A turn of the assistant has reasoning, text and calls. The turn of the
user behind it has the results of these calls, which the model reads before its texts. Results of other calls are shown,
too: a client may have cut off the beginning of a conversation. Blocks of types that the model cannot read are left out,
with a warning, but for images and documents of the user.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from constrain.chat.prompt.messages import check_function_call, check_messages, misspelt_members
from constrain.errors import MessageError
from constrain.fields.values import (
    FieldError,
    array,
    boolean,
    invalid,
    mapping,
    missing,
    one_of,
    required_text,
    wrong_type,
    wrong_value,
)
from constrain.server.http.account import warn
from constrain.server.messages.tools import SEARCHES
from constrain.server.requests.messages import wrong_message
from constrain.server.requests.tools import omitted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KINDS = {
    "user": ("text", "tool_result"),
    "assistant": ("text", "tool_use", "thinking", "redacted_thinking"),
    "system": ("text",),
}
"""Types of the blocks that the model reads, by the role of their message."""

_MEMBERS = {
    "text": ("text",),
    "thinking": ("thinking",),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "content", "is_error"),
}
"""Members that are read, by type of the block; the others are accepted."""

NOT_TEXT = {
    "image": "Describe the image in a block of the type 'text'",
    "document": "Send the text of the document in a block of the type 'text'",
    "search_result": "Send the text of the result in a block of the type 'text'",
    "container_upload": "Send the text of the file in a block of the type 'text'",
}
"""Types of blocks of the user that this server cannot read, with the alternative."""

_BETWEEN = "\n\n"
"""Text between the text blocks of a turn."""

_FAILED = "Error"
"""Word in front of the result of a call that failed (``is_error``)."""


@dataclass(slots=True)
class _Turn:
    """The parts of consecutive messages of one role.

    Attributes:
        role: role of the messages.
        place: place of the first message.
        texts: texts, in order.
        reasoning: texts of the assistant's reasoning.
        calls: calls of the assistant, by id, in the form of chat messages.
        results: results of the calls in the turn before, by id of the call: places and texts.
    """

    role: str
    place: str
    texts: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: dict[str, tuple[str, str]] = field(default_factory=dict)


def read_conversation(messages: object, system: object = None) -> list[dict[str, Any]]:
    """Returns the conversation as chat messages. Raises ``FieldError`` with the place."""
    given = array(messages, "messages")
    if not given:
        raise _empty("messages")
    turns = _read_turns(given)
    _require_pairs(turns)
    texts = [] if system is None else _read_texts(system, "system")
    instructions = _BETWEEN.join(text for text in texts if text)
    found = [{"role": "system", "content": instructions}] if instructions else []
    found += [message for turn in turns for message in _messages(turn)]
    try:
        check_messages(found)
    except MessageError as error:  # the readers of the blocks have checked nearly everything
        raise invalid("messages", f"{error}.") from error
    return found


def _read_turns(given: Sequence[object]) -> list[_Turn]:
    turns: list[_Turn] = []
    for index, item in enumerate(given):
        place = f"messages[{index}]"
        message = mapping(item, place)
        role = one_of(message.get("role"), tuple(_KINDS), f"{place}.role")
        if not turns or turns[-1].role != role:
            turns.append(_Turn(role, place))
        content = message.get("content")
        if content is None:
            raise missing(f"{place}.content")
        if isinstance(content, str):
            turns[-1].texts.append(content)
        elif not isinstance(content, list):
            raise wrong_type(f"{place}.content", "a string or an array", content)
        elif not content and role != "assistant":  # the model's own answer may be empty
            raise _empty(f"{place}.content")
        else:
            for number, block in enumerate(content):
                _read_block(turns[-1], mapping(block, f"{place}.content[{number}]"), f"{place}.content[{number}]")
    return turns


def _read_block(turn: _Turn, block: Mapping[str, Any], place: str) -> None:
    """Adds a block to its turn. Raises ``FieldError``."""
    kind = _kind(block, place)
    if kind in _MEMBERS:
        one_of(kind, _KINDS[turn.role], f"{place}.type")
        for sentence in misspelt_members(block, ("type", *_MEMBERS[kind]), place):
            warn(sentence)
    match kind:
        case "text":
            turn.texts.append(required_text(block, "text", f"{place}."))
        case "thinking":
            thoughts = required_text(block, "thinking", f"{place}.")
            turn.reasoning += [thoughts] if thoughts else []
        case "redacted_thinking":  # only the service that wrote it can read it
            pass
        case "tool_use":
            _add_call(turn, block, place)
        case "tool_result":
            _add_result(turn, block, place)
        case _:
            if turn.role != "assistant" and kind in NOT_TEXT:
                raise _not_text(kind, place)
            if kind == "tool_search_tool_result" or block.get("name") in SEARCHES:  # all tools are shown anyway
                return
            warn(f"Blocks of the type '{kind:.80}' are left out of the conversation: the model cannot read them here.")


def _kind(block: Mapping[str, Any], place: str) -> str:
    """Returns the type of a block. Raises ``FieldError``."""
    if block.get("type") is None:
        raise missing(f"{place}.type")
    return required_text(block, "type", f"{place}.")


def _not_text(kind: str, place: str) -> FieldError:
    return invalid(place, f"this server reads text only, no block of the type '{kind}'. {NOT_TEXT[kind]}.")


def _add_call(turn: _Turn, block: Mapping[str, Any], place: str) -> None:
    identifier = _identifier(block, "id", place)
    if identifier in turn.calls:
        raise invalid(f"{place}.id", f"another call in this turn has the id '{identifier:.80}', too.")
    try:
        call = check_function_call(block, place, identifier, "input")
    except MessageError as error:
        raise wrong_message(error) from error
    function = {"name": call.name, "arguments": block.get("input")}
    turn.calls[identifier] = {"id": identifier, "type": "function", "function": function}


def _add_result(turn: _Turn, block: Mapping[str, Any], place: str) -> None:
    identifier = _identifier(block, "tool_use_id", place)
    if identifier in turn.results:
        raise invalid(f"{place}.tool_use_id", f"the call '{identifier:.80}' has two results.")
    parts = [] if block.get("content") is None else _read_texts(block["content"], f"{place}.content", is_result=True)
    content = _BETWEEN.join(parts)
    if boolean(block, "is_error", f"{place}."):
        content = f"{_FAILED}: {content}" if content else _FAILED
    turn.results[identifier] = place, content


def _identifier(block: Mapping[str, Any], name: str, place: str) -> str:
    identifier = required_text(block, name, f"{place}.")
    if not identifier:
        raise invalid(f"{place}.{name}", "an id must not be empty.")
    return identifier


def _read_texts(content: object, place: str, *, is_result: bool = False) -> list[str]:
    """Reads a text, or blocks that are texts. Raises ``FieldError``.

    ``is_result``: whether it is the result of a call, which may refer to tools and have blocks that are not text.
    """
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        raise wrong_type(place, "a string or an array", content)
    texts = []
    for index, item in enumerate(content):
        where = f"{place}[{index}]"
        block = mapping(item, where)
        kind = _kind(block, where)
        if kind == "text":
            texts.append(required_text(block, "text", f"{where}."))
        elif not is_result:
            raise _not_text(kind, where) if kind in NOT_TEXT else wrong_value(f"{where}.type", kind, ("text",))
        elif kind == "tool_reference":
            texts.append(f"[tool {required_text(block, 'tool_name', f'{where}.')}]")
        elif (inner := _text_inside(kind, block)) is not None:
            texts += _read_texts(inner, where, is_result=True)
        else:
            texts.append(omitted(kind))
    return texts


def _text_inside(kind: str, block: Mapping[str, Any]) -> object:
    """Returns the text of a document, or the blocks of a search result; ``None`` if there is none."""
    if kind == "search_result":
        return block.get("content") if isinstance(block.get("content"), list) else None
    source = block.get("source") if kind == "document" else None
    return source.get("data") if isinstance(source, dict) and source.get("type") == "text" else None


def _require_pairs(turns: Sequence[_Turn]) -> None:
    """Raises ``FieldError`` for a call without a result."""
    for before, turn in pairwise([*turns, _Turn("", "")]):
        left = [identifier for identifier in before.calls if identifier not in turn.results]
        if left:
            raise invalid(
                before.place,
                f"these calls have no result: {', '.join(left):.200}. The next message must be the user's, with a "
                "block of the type 'tool_result' for each.",
            )


def _messages(turn: _Turn) -> list[dict[str, Any]]:
    """Returns the chat messages of a turn."""
    text = _BETWEEN.join(text for text in turn.texts if text)
    if turn.role == "assistant":
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if turn.reasoning:
            message["reasoning_content"] = _BETWEEN.join(turn.reasoning)
        if turn.calls:
            message["tool_calls"] = list(turn.calls.values())
        return [message]
    results = [
        {"role": "tool", "tool_call_id": identifier, "content": content}
        for identifier, (_, content) in turn.results.items()
    ]
    return [*results, {"role": turn.role, "content": text}] if turn.texts or not results else results


def _empty(place: str) -> FieldError:
    return FieldError(
        f"Invalid '{place}': empty array. Expected an array with at least one item.", param=place, code="empty_array"
    )
