"""``system`` and ``messages`` of a request, checked, and their conversion to chat messages.

Consecutive messages of one role are one turn. A turn of the assistant has reasoning, text and calls. The turn of the
user behind it begins with the results of these calls; its texts follow. Results of other calls are shown, too: a client
may have cut off the beginning of a conversation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from constrain.chat.prompt.messages import MessageError, check_function_call, check_messages, misspelt_members
from constrain.fields.values import (
    FieldError,
    array,
    boolean,
    kind_of,
    mapping,
    missing,
    one_of,
    required_text,
    wrong_type,
)
from constrain.server.http.account import warn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KINDS = {
    "user": ("text", "tool_result"),
    "assistant": ("text", "tool_use", "thinking", "redacted_thinking"),
    "system": ("text",),
}
"""Types of the blocks that a message may have, by its role."""

_MEMBERS = {
    "text": ("text",),
    "thinking": ("thinking",),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "content", "is_error"),
}
"""Members that are read, by type of the block; the others are accepted."""

_NOT_TEXT = {
    "image": "Describe the image in a block of the type 'text'",
    "document": "Send the text of the document in a block of the type 'text'",
    "search_result": "Send the text of the result in a block of the type 'text'",
    "container_upload": "Send the text of the file in a block of the type 'text'",
}
"""Types of blocks that this server cannot read, with the alternative."""

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


def read_conversation(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the conversation as chat messages. Raises ``FieldError`` with the place."""
    if body.get("messages") is None:
        raise missing("messages")
    given = array(body["messages"], "messages")
    if not given:
        raise _empty("messages")
    turns = _read_turns(given)
    _require_pairs(turns)
    if turns[-1].role == "assistant":
        raise _invalid(
            turns[-1].place,
            "the conversation must end with a message of the user, since this server does not continue a message of "
            "the assistant. Use 'output_config.format' to say how the answer is written.",
        )
    texts = [] if body.get("system") is None else _read_texts(body["system"], "system")
    system = _BETWEEN.join(text for text in texts if text)
    messages = [{"role": "system", "content": system}] if system else []
    messages += [message for turn in turns for message in _messages(turn)]
    try:
        check_messages(messages)
    except MessageError as error:  # the readers of the blocks have checked nearly everything
        raise FieldError(f"Invalid 'messages': {error}.", param="messages", code="invalid_value") from error
    return messages


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
    kind = _kind(block, _KINDS[turn.role], place)
    for sentence in misspelt_members(block, ("type", *_MEMBERS[kind]), place):
        warn(sentence)
    match kind:
        case "text":
            turn.texts.append(required_text(block, "text", f"{place}."))
        case "thinking":
            thoughts = required_text(block, "thinking", f"{place}.")
            turn.reasoning += [thoughts] if thoughts else []
        case "tool_use":
            _add_call(turn, block, place)
        case "tool_result":
            _add_result(turn, block, place)
        case _:  # redacted_thinking: only the service that wrote it can read it
            required_text(block, "data", f"{place}.")


def _kind(block: Mapping[str, Any], kinds: Sequence[str], place: str) -> str:
    """Returns the type of a block. Raises ``FieldError``, with the alternative for blocks that are not text."""
    if isinstance(given := block.get("type"), str) and given in _NOT_TEXT:
        raise _invalid(place, f"this server reads text only, no block of the type '{given}'. {_NOT_TEXT[given]}.")
    return kind_of(block, kinds, place)


def _add_call(turn: _Turn, block: Mapping[str, Any], place: str) -> None:
    identifier = _identifier(block, "id", place)
    if identifier in turn.calls:
        raise _invalid(f"{place}.id", f"another call in this turn has the id '{identifier:.80}', too.")
    try:
        call = check_function_call(block, place, identifier, "input")
    except MessageError as error:
        raise FieldError(f"Invalid value: {error}.", param=error.param, code="invalid_value") from error
    function = {"name": call.name, "arguments": block.get("input")}
    turn.calls[identifier] = {"id": identifier, "type": "function", "function": function}


def _add_result(turn: _Turn, block: Mapping[str, Any], place: str) -> None:
    identifier = _identifier(block, "tool_use_id", place)
    if turn.texts:
        raise _invalid(place, "the results of calls come first in a turn of the user; put its texts behind them.")
    if identifier in turn.results:
        raise _invalid(f"{place}.tool_use_id", f"the call '{identifier:.80}' has two results.")
    content = "" if block.get("content") is None else _BETWEEN.join(_read_texts(block["content"], f"{place}.content"))
    if boolean(block, "is_error", f"{place}."):
        content = f"{_FAILED}: {content}" if content else _FAILED
    turn.results[identifier] = place, content


def _identifier(block: Mapping[str, Any], name: str, place: str) -> str:
    identifier = required_text(block, name, f"{place}.")
    if not identifier:
        raise _invalid(f"{place}.{name}", "an id must not be empty.")
    return identifier


def _read_texts(content: object, place: str) -> list[str]:
    """Reads a text, or blocks that are texts. Raises ``FieldError``."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        raise wrong_type(place, "a string or an array", content)
    texts = []
    for index, item in enumerate(content):
        where = f"{place}[{index}]"
        block = mapping(item, where)
        _kind(block, ("text",), where)
        texts.append(required_text(block, "text", f"{where}."))
    return texts


def _require_pairs(turns: Sequence[_Turn]) -> None:
    """Raises ``FieldError`` for a call without a result."""
    for before, turn in pairwise([*turns, _Turn("", "")]):
        left = [identifier for identifier in before.calls if identifier not in turn.results]
        if left:
            raise _invalid(
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


def _invalid(place: str, problem: str) -> FieldError:
    return FieldError(f"Invalid '{place}': {problem}", param=place, code="invalid_value")


def _empty(place: str) -> FieldError:
    return FieldError(
        f"Invalid '{place}': empty array. Expected an array with at least one item.", param=place, code="empty_array"
    )
