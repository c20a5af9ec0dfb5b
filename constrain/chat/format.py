"""What a model family's form of tool calls is made of; all that shows, constrains and reads calls goes by it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ArgumentStyle(Enum):
    """How the arguments of a call are written."""

    JSON = "json"  # one JSON object
    PYTHON = "python"  # keyword arguments, values as Python literals
    XML = "xml"  # an element for each argument: strings as they are, other values as JSON


@dataclass(frozen=True, slots=True)
class Thinking:
    """A section of reasoning in front of an answer. Both marks are structure: see ``ToolFormat``."""

    begin: str
    end: str


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
