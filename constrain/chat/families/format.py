"""The record of a model family: its form of tool calls, which prompts, grammars and readers use, and its marks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

TOOLS_SHOWN = (
    "You can call tools. These are the tools, one JSON object a line:\n"
    "$tools\n\n"
    "To call a tool, write exactly this, with the tool's name and its arguments:\n"
    "$calls\n"
    "The results are given to you in the next message. Call a tool only if it helps; otherwise answer as usual."
)
"""Text that shows tools to a model whose family documents no text of its own.

It has no example of a call: small models copy its values into their answers, and write no more calls right with it.
"""

NAMES_SHOWN = (
    "You can call tools. These are the tools, with what they do:\n"
    "$tools\n\n"
    "To call a tool, write exactly this, with the tool's name and its arguments:\n"
    "$calls\n"
    "The parameters of a tool are shown to you once you have written its name. "
    "The results are given to you in the next message. Call a tool only if it helps; otherwise answer as usual."
)
"""Text that shows the names of tools, one a line, for ``tools_shown="names"``."""

TOOL_SHOWN = "The tool that you are calling:\n$tool\n\nWrite the call exactly like this, with its arguments:\n$calls"
"""Text of the user that shows one tool, in the middle of a call."""

RESULT = '<tool_response>\n{"name": "$name", "content": $content}\n</tool_response>'
"""Text that shows the result of a call to a model whose family documents no form for it."""


TAG = re.compile(r"<[^<>\s$]+(?:>|(?=\$))|\[/?[A-Z_]+\]")
"""Pattern of a tag in a form's structure, as a token or plain text; of a tag with ``$name``, the part before it."""


class ArgumentStyle(Enum):
    """The notation of a call's arguments."""

    JSON = "json"  # one JSON object
    PYTHON = "python"  # keyword arguments with Python literals as values; strings are spelled as in JSON
    XML = "xml"  # an element for each argument (see ``Element``): strings as plain text, other values as JSON


@dataclass(frozen=True, slots=True)
class Element:
    """The notation of one argument, for ``ArgumentStyle.XML``: ``before name between value behind``."""

    before: str = "<parameter="
    between: str = ">\n"
    behind: str = "\n</parameter>\n"

    def write(self, name: str, value: str) -> str:
        """Returns an argument."""
        return f"{self.before}{name}{self.between}{value}{self.behind}"


@dataclass(frozen=True, slots=True)
class Section:
    """A section of free text between two marks. Both marks are structure (see ``ToolFormat``) and may be empty."""

    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class Switch:
    """A variable of a chat template that turns reasoning on or off, with its two values."""

    variable: str
    on: object
    off: object


@dataclass(frozen=True, slots=True)
class Thinking:
    """A reasoning section in front of an answer. ``begin`` and ``end`` are structure: see ``ToolFormat``.

    ``mark``: text of every template with the section; by default its end, as some templates only cut the section out of
    earlier answers. A template may open the section itself at the end of the prompt: see ``ThinkingState`` in
    ``constrain.chat.prompt.conversation``.
    """

    begin: str
    end: str
    switch: Switch | None = None
    mark: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Marks:
    """Texts that identify a chat template: all of ``present`` occur in it, and none of ``absent``."""

    present: tuple[str, ...]
    absent: tuple[str, ...] = ()

    def match(self, template: str) -> bool:
        """Returns whether a template has the marks."""
        return all(mark in template for mark in self.present) and not any(mark in template for mark in self.absent)


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """The record of a model family: the form in which it writes calls, and what identifies its models.

    ``opening``, ``call``, ``between`` and ``closing`` are *structure*: the text of a special or user-defined token of
    the vocabulary stands for this token, all other text for itself. The calls of an answer are ``opening call (between
    call)* closing``. In ``call``, ``$name`` stands for the tool's name, ``$arguments`` for its arguments, ``$id`` for
    the call's id.

    Attributes:
        name: name of the form.
        call: template of one call.
        style: notation of ``$arguments``.
        element: notation of one argument, for the style ``XML``.
        custom_call: template of one call of a custom tool, with ``$input`` for its input as plain text, or
            ``$json_input`` for its input as a JSON string.
        id_pattern: pattern of ids (in Rust's dialect), if ``call`` has ``$id``.
        whole_id: id of a call for templates that write ids in place of names, with ``$name``, and ``$index``: the
            number of the call in the conversation, from 0. ``""`` for templates that show ids as they are given.
        text_before: whether text may stand before the calls.
        parallel: whether an answer may have several calls.
        thinking: reasoning section that a model may write; in the record of a family, only one that is its own.
        content: marks around the text of an answer without calls, if the family has any.
        preamble: marks around text in front of calls, if ``text_before`` holds and the family has any; ``opening``
            follows ``preamble.end``.
        tools_shown: text of the system prompt that shows the tools, for templates that do not: ``$tools`` stands for
            their definitions in JSON, one per line or as one list (``tools_as_list``), ``$calls`` for calls as the
            family writes them, with names in angle brackets.
        tools_as_list: whether ``$tools`` is one JSON list.
        names_shown: text of the system prompt that shows the names of the tools in place of their definitions:
            ``$tools`` stands for a line for each, ``$calls`` as in ``tools_shown``.
        result: text of a call's result, for templates that do not show results: with ``$name``, ``$id`` and
            ``$content``, a JSON string.
        templates: marks that identify the family's chat templates: those of any one of them.
        tokens: tokens that identify its vocabularies if a template says nothing about tools.
        aliases: further names of the form.
    """

    name: str
    call: str = ""
    custom_call: str = ""
    opening: str = ""
    between: str = ""
    closing: str = ""
    style: ArgumentStyle = ArgumentStyle.JSON
    element: Element = Element()
    id_pattern: str = ""
    whole_id: str = ""
    text_before: bool = True
    parallel: bool = True
    thinking: Thinking | None = None
    content: Section | None = None
    preamble: Section | None = None
    tools_shown: str = TOOLS_SHOWN
    tools_as_list: bool = False
    names_shown: str = field(default=NAMES_SHOWN, compare=False)
    result: str = RESULT
    templates: tuple[Marks, ...] = field(default=(), compare=False)
    tokens: tuple[str, ...] = field(default=(), compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)


def complete(*families: ToolFormat) -> tuple[ToolFormat, ...]:
    """Returns the records of families. Raises ``ValueError``, with the family and the part, for an incomplete one."""
    for form in families:
        if fault := _fault(form):
            raise ValueError(f"the family {form.name!r} is incomplete: {fault}")
    return families


def _fault(form: ToolFormat) -> str:
    shared = {"$name", "$id"} if form.id_pattern else {"$name"}
    text = "$input" if form.style is ArgumentStyle.XML else "$json_input"
    for part, written, variables in (
        ("call", form.call, shared | {"$arguments"}),
        ("custom_call", form.custom_call, shared | {text}),
    ):
        for variable in sorted(variables ^ set(re.findall(r"\$[a-z_]+", written))):
            return f"{part} {'lacks' if variable in variables else 'cannot have'} {variable}"
    if not form.templates or not all(marks.present for marks in form.templates):
        return "templates lack marks"
    if form.parallel and not (form.between or form.closing or TAG.match(form.call)):
        return "between, closing or a tag that begins call must tell several calls apart"
    return ""
