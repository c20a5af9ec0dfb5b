"""Features of a chat template: how it handles tools, calls, results and reasoning, found by rendering probes.

Templates differ in the features they have and the forms they expect: arguments as JSON text or as a value, missing
content as null or as an empty text, one call per message or several. So this module renders small conversations of
words that occur nowhere else, and searches for the words. A template that fails to render a probe lacks the feature.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from string import Template
from typing import TYPE_CHECKING, Any

from constrain.chat.families.format import TAG, ArgumentStyle, ToolFormat
from constrain.chat.prompt.template import render, tool_variables
from constrain.errors import ModelError
from constrain.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeGuard

_REASONING_KEYS = ("reasoning_content", "thinking", "reasoning", "parts")
"""Fields in which templates look for the reasoning of an assistant's message; ``parts`` means a part of type
``thinking`` in the content.
"""


class TextAndCalls(Enum):
    """The place of text that the assistant writes in front of calls."""

    TOGETHER = "together"  # in the message with the calls
    APART = "apart"  # in a message in front of it
    DROPPED = "dropped"  # nowhere: the template has no place for it


@dataclass(frozen=True, slots=True)
class Abilities:
    """The features that a template has without help.

    Attributes:
        parts: contents must be lists of parts.
        system: a system message at the start is shown.
        only_system: it is shown without any other message.
        only_system_with_tools: so are tools with it.
        later_system: a system message after other messages is shown.
        calls: calls are written, in the family's form.
        tools: tools are shown, and ``calls`` holds.
        results: results are shown, and ``calls`` holds.
        orphans: results without their calls are shown, and ``results`` holds.
        arguments_as_text: arguments must be JSON text.
        no_content: value of ``content`` in a message with calls and without text.
        empty_content: null and ``""`` are written alike there, so that a client's own value is kept.
        several_calls: a message may have several calls.
        text_and_calls: place of text that the assistant writes in front of calls.
        short_ids: ids must be nine letters and digits.
        json_results: results are inserted into JSON, and must be JSON themselves.
        reasoning_key: field whose text is shown as reasoning while the answer is not finished.
        reasoning_beside_text: the reasoning is shown even if there is text in a message with calls.
        plain_schemas: schemas of tools must have no lists of types, and always a description and properties.
        alternating: messages of user and assistant must alternate, and the user's comes first.
    """

    parts: bool = False
    system: bool = False
    only_system: bool = False
    only_system_with_tools: bool = False
    later_system: bool = False
    calls: bool = False
    tools: bool = False
    results: bool = False
    orphans: bool = False
    arguments_as_text: bool = False
    no_content: str | None = None
    empty_content: bool = False
    several_calls: bool = False
    text_and_calls: TextAndCalls = TextAndCalls.APART
    short_ids: bool = False
    json_results: bool = False
    reasoning_key: str | None = None
    reasoning_beside_text: bool = False
    plain_schemas: bool = False
    alternating: bool = False


TEMPLATE_BYTES = 16 << 20
"""Bytes of templates whose features are cached, together: 16 MiB; beyond it, the least recently used are dropped."""


@remembered(16, TEMPLATE_BYTES, lambda template, *_: 2 * len(template))
def abilities(template: str, form: ToolFormat, names: tuple[tuple[str, str], ...]) -> Abilities:
    """Returns the features of a template for a form of calls. ``names``: template variables that name tokens."""
    return _Probe(template, form, dict(names)).abilities()


_USER = {"role": "user", "content": "probe-question"}
_TOOL = {
    "type": "function",
    "function": {
        "name": "probe_tool",
        "description": "probe-description",
        "parameters": {
            "type": "object",
            "properties": {"probe_key": {"type": "string", "description": "probe-text"}},
            "required": ["probe_key"],
        },
    },
}
_TOOLS = [_TOOL]
_IDS = ("probe0001", "probe0002")
_LONG_ID = "call_0123456789abcdef"


class _Probe:
    """Renders one template with probes."""

    def __init__(self, template: str, form: ToolFormat, names: Mapping[str, str]) -> None:
        self._template = template
        self._form = form
        self._names = names
        self._parts = False
        self._as_text = False
        self._no_content: str | None = None
        self._empty_content = False

    def abilities(self) -> Abilities:
        """Returns all features; each probe uses the forms that earlier probes found."""
        self._parts = not self._shows([_USER], "probe-question") and self._shows(
            [{**_USER, "content": [{"type": "text", "text": "probe-question"}]}], "probe-question"
        )
        system = {"role": "system", "content": "probe-rule"}
        later = [_USER, {"role": "assistant", "content": "a"}, {**system, "content": "probe-later"}, _USER]
        calls = self._find_shape()
        key = self._reasoning_key(calls=calls)
        return Abilities(
            parts=self._parts,
            system=self._shows([system, _USER], "probe-rule", "probe-question"),
            only_system=self._shows([system], "probe-rule"),
            only_system_with_tools=calls and self._shows([system], "probe-rule", "probe_tool", tools=_TOOLS),
            later_system=self._shows([system, *later], "probe-rule", "probe-later"),
            calls=calls,
            tools=calls and self._shows([_USER], "probe_tool", "probe_key", tools=_TOOLS),
            results=calls
            and self._shows([_USER, self._make_calls(1), self._make_result()], "probe-result", tools=_TOOLS),
            orphans=calls
            and self._shows([_USER, self._make_result()], "probe-result", tools=_TOOLS)
            and self._shows([self._make_result(), _USER], "probe-result", tools=_TOOLS),
            arguments_as_text=self._as_text,
            no_content=self._no_content,
            empty_content=self._empty_content,
            several_calls=calls
            and self._shows([_USER, self._make_calls(2)], "probe-value1", "probe-value2", tools=_TOOLS),
            text_and_calls=self._place_text() if calls else TextAndCalls.APART,
            short_ids=calls and not self._takes_long_ids(),
            json_results=calls and self._wants_json_results(),
            reasoning_key=key,
            reasoning_beside_text=calls
            and key is not None
            and self._shows(
                [_USER, self._add_reasoning(self._text_and_call(), key)],
                "probe-thought",
                "probe-beside",
                tools=_TOOLS,
            ),
        )

    def _find_shape(self) -> bool:
        """Finds the shape of calls that the template writes in the family's form; returns whether there is one."""
        for self._as_text in (True, False):
            self._no_content = ""
            empty = self._render([_USER, self._make_calls(1)], _TOOLS)
            self._no_content = None
            absent = self._render([_USER, self._make_calls(1)], _TOOLS)
            if self._is_call(absent) and _count_nulls(absent) <= _count_nulls(empty or absent):
                self._empty_content = absent == empty
                if self._is_call(empty) and not self._takes_results():
                    self._no_content = ""
                    if not self._takes_results():
                        self._no_content = None
                return True
            if self._is_call(empty):
                self._no_content = ""
                return True
        return False

    def _takes_results(self) -> bool:
        """Returns whether a call may have a result: some templates read the content of all but the last message."""
        return self._render([_USER, self._make_calls(1), self._make_result()], _TOOLS) is not None

    def _place_text(self) -> TextAndCalls:
        """Finds the place of text in front of calls.

        Behind a result and its answer, some templates count a message with the text as a turn too many.
        """
        if self._shows([_USER, self._text_and_call()], "probe-beside", "probe-value1", tools=_TOOLS):
            return TextAndCalls.TOGETHER
        answer = {"role": "assistant", "content": "probe-answer"}
        whole = [_USER, {**answer, "content": "probe-beside"}, self._make_calls(1), self._make_result(), answer, _USER]
        if self._render(whole, _TOOLS) is None and self._render([*whole[:1], *whole[2:]], _TOOLS) is not None:
            return TextAndCalls.DROPPED
        return TextAndCalls.APART

    def _is_call(self, written: str | None) -> TypeGuard[str]:
        """Returns whether a text has a call in the family's form: tags, text in front of the name, and arguments."""
        if written is None:
            return False
        squeezed = re.sub(r"\s", "", written)
        before = self._form.opening + self._form.call.partition("$name")[0]
        word = re.sub(r"\s", "", re.split(r"\$\w+", before)[-1])[-8:]
        start = squeezed.find(f"{word}probe_tool1")
        if start < 0 or not all(tag in squeezed for tag in TAG.findall(before)):
            return False
        spelled = {
            ArgumentStyle.JSON: r'"probe_key":"probe-value1"',
            ArgumentStyle.PYTHON: r"""probe_key=["']probe-value1["']""",
            ArgumentStyle.XML: re.escape(re.sub(r"\s", "", self._form.element.write("probe_key", "probe-value1"))),
        }[self._form.style]
        return re.search(spelled, squeezed[start:]) is not None

    def _make_calls(self, count: int, ids: tuple[str, ...] = _IDS) -> dict[str, Any]:
        """Makes an assistant message that calls ``count`` (1 or 2) made-up tools, to see how a template writes it.

        ``ids``: ids of the calls.
        """
        calls = []
        for number in range(1, count + 1):
            value = {"probe_key": f"probe-value{number}"}
            text = f'{{"probe_key": "probe-value{number}"}}'
            function = {"name": f"probe_tool{number}", "arguments": text if self._as_text else value}
            calls.append({"id": self._whole_id(number) or ids[number - 1], "type": "function", "function": function})
        return {"role": "assistant", "content": self._no_content, "tool_calls": calls}

    def _text_and_call(self) -> dict[str, Any]:
        return {**self._make_calls(1), "content": "probe-beside"}

    def _make_result(self, call_id: str = _IDS[0]) -> dict[str, Any]:
        identifier = self._whole_id(1) or call_id
        return {"role": "tool", "tool_call_id": identifier, "name": "probe_tool1", "content": "probe-result"}

    def _whole_id(self, number: int) -> str:
        """Returns the id of a made-up tool's call where ids have the tool's name, else ``""``."""
        return Template(self._form.whole_id).substitute(name=f"probe_tool{number}", index=number - 1)

    def _takes_long_ids(self) -> bool:
        return self._shows(
            [_USER, self._make_calls(1, (_LONG_ID,)), self._make_result(_LONG_ID)], "probe-value1", tools=_TOOLS
        )

    def _wants_json_results(self) -> bool:
        written = self._render([_USER, self._make_calls(1), self._make_result()], _TOOLS)
        return written is not None and re.search(r'"\w+":\s*probe-result', written) is not None

    def _reasoning_key(self, *, calls: bool) -> str | None:
        answer = self._make_calls(1) if calls else {"role": "assistant", "content": "probe-answer"}
        for key in _REASONING_KEYS:
            written = self._render([_USER, self._add_reasoning(answer, key)], _TOOLS if calls else None)
            if written is not None and "probe-thought" in written and not re.search("""["']thinking["']""", written):
                return key
        return None

    def _add_reasoning(self, message: dict[str, Any], key: str) -> dict[str, Any]:
        if key != "parts":
            return {**message, key: "probe-thought"}
        text = [{"type": "text", "text": message["content"]}] if message["content"] else []
        return {**message, "content": [{"type": "thinking", "thinking": "probe-thought"}, *text]}

    def _shows(self, messages: list[dict[str, Any]], *words: str, tools: list[dict[str, Any]] | None = None) -> bool:
        written = self._render(messages, tools)
        return written is not None and all(word in written for word in words)

    def _render(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> str | None:
        """Returns the rendered prompt, or ``None`` if the template fails: then it lacks the probed feature."""
        shaped = [
            {**message, "content": [{"type": "text", "text": message["content"]}]}
            if self._parts and isinstance(message["content"], str) and message["content"]
            else message
            for message in messages
        ]
        variables = {"messages": shaped, "add_generation_prompt": True, **self._names}
        try:
            return render(self._template, deepcopy(variables | tool_variables(self._template, tools or [])))
        except ModelError:
            return None


def _count_nulls(written: str) -> int:
    """Returns how often a text says that a value is missing, in Python's words or in JSON's."""
    return written.count("None") + written.count("null")
