"""What a model family's form of tool calls is made of, for all that shows, constrains and reads calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

TOOLS_SHOWN = (
    "You can call tools. These are the tools, one JSON object a line:\n"
    "$tools\n\n"
    "To call a tool, write exactly this, with the tool's name and its arguments:\n"
    "$calls\n"
    "The results are given to you in the next message. Call a tool only if it helps; otherwise answer as usual."
)
"""How tools are shown to a model whose family documents no words for it."""

RESULT = '<tool_response>\n{"name": "$name", "content": $content}\n</tool_response>'
"""How the result of a call is shown to a model whose family documents no other form."""


TAG = re.compile(r"<[^<>\s$]+(?:>|(?=\$))|\[/?[A-Z_]+\]")
"""A tag in a form's structure, be it a token or plain text; of one with a name in it, what stands before the name."""


class ArgumentStyle(Enum):
    """How the arguments of a call are written."""

    JSON = "json"  # one JSON object
    PYTHON = "python"  # keyword arguments, values as Python literals, strings spelled as in JSON
    XML = (
        "xml"  # for each argument "<parameter=NAME>\nVALUE\n</parameter>\n": strings as they are, other values as JSON
    )


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of free text between marks. Both are structure (see ``ToolFormat``), and both may be empty."""

    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class Switch:
    """A variable of a chat template that lets the model reason or not, with its values for both."""

    variable: str
    on: object
    off: object


@dataclass(frozen=True, slots=True)
class Thinking:
    """A section of reasoning in front of an answer. Both marks are structure: see ``ToolFormat``.

    A template may open the section itself, at the end of the prompt: see ``Prompt.thinking`` in
    ``constrain.chat.prompt.conversation``.
    """

    begin: str
    end: str
    switch: Switch | None = None


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """How a model family writes calls.

    ``opening``, ``call``, ``between`` and ``closing`` are *structure*: where they hold the text of a token that the
    vocabulary has as a special or user-defined one, that token is meant, otherwise the text. All calls of an answer are
    ``opening call (between call)* closing``. In ``call``, ``$name`` stands for the tool's name, ``$arguments`` for its
    arguments, ``$id`` for the call's id.

    Attributes:
        name: of the form.
        call: one call.
        style: how ``$arguments`` is written.
        custom_call: one call of a custom tool, with ``$input`` for its text as it is, or ``$json_input`` for its text
            as a JSON string.
        id_pattern: what ids look like (a pattern of Rust's dialect), if ``call`` has ``$id``.
        text_before: whether text may stand before the calls.
        parallel: whether an answer may hold several calls.
        thinking: the reasoning section that its models may write, if any.
        content: the marks around the text of an answer without calls, where the family has any.
        preamble: the marks around text in front of calls, where ``text_before`` and the family has any: what follows
            ``preamble.end`` is ``opening``.
        tools_shown: how tools are shown in the system prompt, for templates that do not show them: ``$tools`` stands
            for their definitions in JSON, one a line or as one list (``tools_as_list``), ``$calls`` for calls as the
            family writes them, with names in angle brackets.
        tools_as_list: whether ``$tools`` is one JSON list.
        result: how the result of a call is written, for templates that do not: ``$name``, ``$id`` and ``$content``,
            which is a JSON string.
    """

    name: str
    call: str
    custom_call: str
    opening: str = ""
    between: str = ""
    closing: str = ""
    style: ArgumentStyle = ArgumentStyle.JSON
    id_pattern: str = ""
    text_before: bool = True
    parallel: bool = True
    thinking: Thinking | None = None
    content: Section | None = None
    preamble: Section | None = None
    tools_shown: str = TOOLS_SHOWN
    tools_as_list: bool = False
    result: str = RESULT
