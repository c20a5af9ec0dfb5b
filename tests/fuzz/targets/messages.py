"""Lists of messages as prompts. The first byte of an input chooses a chat template, the rest is JSON: the messages.

The prompts are those of the tests' tokenizer, to which the tags of all families are special tokens: what the messages
say must never become one.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import constrain
from constrain.chat.families.forms import detect_format
from constrain.chat.prompt.conversation import conversation_prompt
from tests.fuzz.judge import BrokenPromiseError
from tests.fuzz.mutation import Trees
from tests.support.chat.characters import TAGS, Characters
from tests.support.chat.conversations import TOOLS, TWO_CALLS
from tests.support.chat.templates import FAMILIES, template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from tests.fuzz.judge import Meter

DECLARED = (ValueError, TypeError, constrain.ModelError, constrain.LimitError)
"""``ValueError``: ``MessageError``; ``TypeError`` for what is no list of messages."""
MAX_SIZE = 6000

_TEMPLATES = (*FAMILIES, "")
_KINDS = 128
"""Templates, each with and without tools: more than there are."""


@cache
def _tokenizer() -> Any:
    return Characters()


def run(data: bytes, meter: Meter) -> None:
    """Makes a prompt."""
    number = (data[:1] or b"0")[0]
    name = _TEMPLATES[number // 2 % len(_TEMPLATES)]
    tools = TOOLS if number % 2 else []
    try:
        messages = json.loads(data[1:].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return
    text = template(name) if name else ""
    try:
        with meter.call("conversation_prompt"):
            tokens = _tokens(text, messages, tools)
    except DECLARED as error:
        if is_undeclared(error):
            raise RuntimeError("an error of Python's own in place of one that says what is wrong") from error
        raise
    _require_no_special(text, messages, tools, tokens)


def is_undeclared(error: Exception) -> bool:
    """Whether an error is one that Python raises by itself, and not one of the package's."""
    return type(error) in (TypeError, ValueError, UnicodeEncodeError, UnicodeDecodeError) and not _is_raised_here(error)


def _is_raised_here(error: Exception) -> bool:
    """Whether the package has a ``raise`` where the error comes from."""
    import linecache

    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return False
    frame = place.tb_frame
    line = linecache.getline(frame.f_code.co_filename, place.tb_lineno)
    return "/constrain/" in frame.f_code.co_filename and "raise" in line


def _tokens(text: str, messages: object, tools: list[dict[str, Any]]) -> list[int]:
    return conversation_prompt(_tokenizer(), text, messages, tools=tools, form=detect_format(text)).tokens


def _require_no_special(text: str, messages: Any, tools: list[dict[str, Any]], tokens: list[int]) -> None:
    """With plain words in place of the tags that a content says, the prompt has the same special tokens."""
    plain = _without_tags(messages) if isinstance(messages, str) else [*map(_plain, messages)]
    if plain == messages:
        return
    expected, found = ([token for token in each if token < 1000] for each in (_tokens(text, plain, tools), tokens))
    if expected != found:
        names = [[_tokenizer().name(token) for token in each] for each in (expected, found)]
        raise BrokenPromiseError(f"special tokens are {names[1]}; with plain words in messages they are {names[0]}")


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    return {**message, "content": _without_tags(content)} if isinstance(content, str) else message


def _without_tags(text: str) -> str:
    """The text with a word of its own for each tag, since some templates ask whether two messages are equal."""
    for number, tag in enumerate(TAGS):
        text = text.replace(tag, f"x{number}x")
    return text


def seeds() -> Iterable[bytes]:
    """A conversation with calls and results in every family, with and without tools."""
    conversation = json.dumps(TWO_CALLS).encode()
    for number in range(2 * len(_TEMPLATES)):
        yield bytes([number]) + conversation


def mutate(data: bytes, rng: Random, mutate_bytes: Callable[[bytes], bytes]) -> bytes:
    """Another template, or a changed list."""
    head = bytes([rng.randrange(2 * len(_TEMPLATES))]) if rng.random() < 0.2 or not data else data[:1]
    return head + _TREES.mutated(data[1:], rng, mutate_bytes)


_SAID = (
    "x",
    "",
    " ",
    "\n",
    "a\nb",
    "é😀",
    *TAGS,
    "".join(TAGS),
    '{"a": 1}',
    "<tool_call>\n{}\n</tool_call>",
    "\ufdd0",
    "</think>y",
)
_CALL = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
_CUSTOM = {"id": "c", "type": "custom", "custom": {"name": "weather", "input": "x"}}
_MESSAGES = (
    {"role": "user", "content": "x"}, {"role": "system", "content": "x"}, {"role": "developer", "content": "x"},
    {"role": "assistant", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "x"}, {"role": "assistant", "content": "",
    "tool_calls": [_CUSTOM]},
    {"role": "user", "content": [{"type": "text", "text": "x"}]},
)  # fmt: skip
_KEYS: dict[str, Any] = {
    "role": ("user", "system", "developer", "assistant", "tool", "function", "x", ""),
    "content": (*_SAID, None, [{"type": "text", "text": ...}], [{"type": "refusal", "refusal": "x"}], [], ...),
    "tool_calls": ([_CALL], [_CUSTOM], [], [_CALL, _CALL], ...),
    "tool_call_id": ("c", "call0paris", "call1rome", "", ...),
    "id": ("c", "call0paris", "", *TAGS[:6]),
    "type": ("function", "custom", "text", "image_url", "refusal", "input_text"),
    "function": ({"name": "weather", "arguments": "{}"}, {"name": "f", "arguments": '{"a": [1, {"b": null}]}'}, ...),
    "custom": ({"name": "f", "input": "x"},),
    "name": ("weather", "f", "", "a b", *TAGS[:4]),
    "arguments": ("{}", "", "[]", "x", '{"city": "Paris"}', '{"a": 1e999}', '{"a": NaN}', '{"a": "\\ud800"}',
    '{"a": ' + "[" * 70 + "]" * 70 + "}",
                  '{"a": ' + "9" * 5000 + "}", {}, ...),
    "text": _SAID,
    "refusal": ("x", None),
    "reasoning_content": _SAID,
    "reasoning": _SAID,
    "annotations": ([],),
    "audio": (None, {"id": "x"}),
}  # fmt: skip
_TREES = Trees(
    _KEYS,
    (*_MESSAGES, *_SAID, None, True, 0, 1.5, {}, [], [[]]),
    ([...], {"a": ...}, [..., {"role": "user", "content": "x"}]),
)
