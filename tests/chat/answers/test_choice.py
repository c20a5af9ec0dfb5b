"""``tool_choice`` in all its forms."""

from __future__ import annotations

from typing import Any

import pytest

from constrain import tool
from constrain.chat.answers.choice import Choice, read_choice
from constrain.chat.answers.choices import Calls
from constrain.chat.tools.definition import as_tools
from constrain.tools import CustomTool
from tests.support import for_each


def get_weather(city: str) -> None: ...


def search_docs(query: str) -> None: ...


class Disk:
    def read(self, path: str) -> None: ...


NOTE = CustomTool("note")
DISK = Disk()
READ_FILE = tool(DISK.read, name="read_file")
TOOLS = as_tools([get_weather, search_docs, NOTE, READ_FILE])

MODES = [(None, Calls.AUTO), ("auto", Calls.AUTO), ("required", Calls.REQUIRED), ("none", Calls.NONE)]


@for_each("given, calls", MODES)
def test_every_tool_choice_mode_is_read(given: str | None, calls: Calls) -> None:
    assert read_choice(given, TOOLS) == Choice(calls)


@pytest.mark.parametrize("given", [None, "auto", "none"])
def test_without_tools_nothing_is_called(given: str | None) -> None:
    assert read_choice(given, ()) == Choice(Calls.NONE)


SINGLE: list[tuple[Any, str]] = [
    ("get_weather", "get_weather"),
    (get_weather, "get_weather"),
    (TOOLS[0], "get_weather"),
    ("note", "note"),
    (NOTE, "note"),
    (READ_FILE, "read_file"),
    (DISK.read, "read_file"),
    ({"type": "function", "function": {"name": "get_weather"}}, "get_weather"),
    ({"type": "function", "name": "get_weather"}, "get_weather"),
    ({"type": "custom", "custom": {"name": "note"}}, "note"),
    ({"type": "custom", "name": "note"}, "note"),
]


@for_each("given, name", SINGLE)
def test_one_tool_is_called_once(given: Any, name: str) -> None:
    assert read_choice(given, TOOLS) == Choice(Calls.REQUIRED, (name,), single=True)


@pytest.mark.parametrize("given", [["note", "get_weather"], ("note", get_weather), [NOTE, TOOLS[0], "note"]])
def test_any_of_a_list_is_called(given: Any) -> None:
    assert read_choice(given, TOOLS) == Choice(Calls.REQUIRED, ("note", "get_weather"))


ALLOWED = ({"type": "custom", "name": "note"}, {"type": "function", "function": {"name": "search_docs"}})


@for_each("shape", ["chat", "responses"])
@for_each("mode", [{}, {"mode": "auto"}, {"mode": "required"}])
def test_allowed_tools_in_both_shapes(shape: str, mode: dict[str, str]) -> None:
    said = {**mode, "tools": ALLOWED}
    given = (
        {"type": "allowed_tools", **said} if shape == "responses" else {"type": "allowed_tools", "allowed_tools": said}
    )
    calls = Calls(mode.get("mode", "auto"))
    assert read_choice(given, TOOLS) == Choice(calls, ("note", "search_docs"))


REFUSED: list[tuple[Any, str]] = [
    ("weather", r"tool_choice is 'weather', which is none of the tools \(get_weather, search_docs, note, read_file\)"),
    (print, "tool_choice is 'print'"),
    (3, "tool_choice is 3"),
    ([], "tool_choice is empty"),
    (["note", "weather"], r"tool_choice\[1\] is 'weather'"),
    ([["note"]], r"tool_choice\[0\] is \['note'\]"),
    ({}, "tool_choice.type is None"),
    ({"type": "auto"}, "tool_choice.type is 'auto'"),
    ({"type": ["function"]}, r"tool_choice.type is \['function'\]"),
    ({"type": "function"}, "tool_choice.name is None"),
    ({"type": "function", "function": "note"}, "tool_choice: 'function' is 'note'; it must be an object"),
    ({"type": "function", "name": "weather"}, "tool_choice.name is 'weather'"),
    ({"type": "allowed_tools"}, "tool_choice.tools must be a list"),
    ({"type": "allowed_tools", "tools": []}, "tool_choice.tools must be a list"),
    ({"type": "allowed_tools", "tools": "note"}, "tool_choice.tools must be a list"),
    ({"type": "allowed_tools", "tools": [{"type": "function"}]}, r"tool_choice.tools\[0\] is None"),
    ({"type": "allowed_tools", "tools": [{"type": "function", "function": 3}]}, r"tool_choice.tools\[0\] is 3"),
    ({"type": "allowed_tools", "mode": "none", "tools": ["note"]}, "tool_choice.mode is 'none'"),
]


@for_each("given, message", REFUSED)
def test_anything_else_is_refused_with_the_place(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_choice(given, TOOLS)


@pytest.mark.parametrize("given", ["required", "note", ["note"]])
def test_calls_need_tools(given: Any) -> None:
    with pytest.raises(ValueError, match=r"no tools|there are none"):
        read_choice(given, ())
