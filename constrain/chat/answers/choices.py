"""Parts that an answer may consist of, as data: texts, calls and reasoning sections."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from constrain.chat.tools.checks import ANY_TOOL_NAME
from constrain.language.policies import DEFAULT_POLICIES, Policies
from constrain.language.source import Source

if TYPE_CHECKING:
    from constrain.chat.families.format import ToolFormat


REFUSAL = "Refusal: "
"""Text that a refusal begins with; no JSON value begins with it."""


class Calls(Enum):
    """Whether an answer contains calls."""

    AUTO = "auto"  # content or calls
    REQUIRED = "required"
    NONE = "none"


class Reasoning(Enum):
    """Whether an answer begins with the reasoning section of its form."""

    NONE = "none"
    OPTIONAL = "optional"
    OPENED = "opened"  # the prompt ends inside the section


@dataclass(frozen=True, slots=True)
class FunctionCalls:
    """Calls of a function; ``parameters`` is the JSON Schema of its arguments, as text.

    ``closed``: whether undeclared parameters are left out (as ``generate`` leaves out undeclared keys). ``typed``:
    whether Python types read the arguments, so that integers have neither a fraction nor an exponent.
    """

    name: str
    parameters: str
    closed: bool = True
    typed: bool = False


@dataclass(frozen=True, slots=True)
class CustomCalls:
    """Calls of a custom tool. Its input is a text of ``input``, or any text if that is None."""

    name: str
    input: Source | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """Content that is a JSON value of ``schema``, a JSON Schema as text; for the other fields see ``FunctionCalls``."""

    schema: str
    closed: bool = True
    typed: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Choices(Source):
    """The parts that the answers to one request may consist of.

    An answer is an optional reasoning section, followed by content or calls. In some forms, text may stand before
    calls.

    Args:
        format: form in which calls and reasoning are written.
        special: names of the vocabulary's special and user-defined tokens; in structure, a name stands for its token.
        tools: tools of the request, in the order in which the prompt shows them.
        calls: whether there are calls.
        allowed: names of the tools that may be called; None for all.
        parallel: whether there may be several calls.
        content: language of an answer without calls: None for free text, a JSON value, or a language. Unless it is free
            text, no text may stand before calls.
        refusal: whether a refusal may replace ``content``: a text after ``REFUSAL``.
        reasoning: whether there is a reasoning section; it is one lexeme of ``Kind.REASONING``.
        policies: spelling of JSON; ``close_objects`` is ignored here.
        registry: schemas by URI, for references in the schema of the content (see ``compile``); ignored in comparisons.

    Raises ValueError for contradictory arguments.
    """

    format: ToolFormat
    special: tuple[str, ...] = ()
    tools: tuple[FunctionCalls | CustomCalls, ...] = ()
    calls: Calls = Calls.AUTO
    allowed: tuple[str, ...] | None = None
    parallel: bool = True
    content: Value | Source | None = None
    refusal: bool = False
    reasoning: Reasoning = Reasoning.NONE
    policies: Policies = DEFAULT_POLICIES
    registry: object = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        names = Counter(tool.name for tool in self.tools)
        for name, count in names.items():
            if not ANY_TOOL_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a valid name of a tool: use 1 to 256 letters, digits, _, -, . and /")
            if count > 1:
                raise ValueError(f"two tools are named {name!r}")
        for name in self.allowed or ():
            if name not in names:
                raise ValueError(f"{name!r} may be called, but is none of the tools ({', '.join(names)})")
        if self.calls is Calls.REQUIRED and not self.callable_tools():
            raise ValueError("a call is required, but there is no tool that may be called")
        if self.refusal and self.content is None:
            raise ValueError("refusal needs content: free text can refuse by itself")
        if self.reasoning is not Reasoning.NONE and self.format.thinking is None:
            raise ValueError(f"the form {self.format.name} has no reasoning section")
        self.policies.check()

    def callable_tools(self) -> list[int]:
        """Returns the numbers of the tools that may be called."""
        if self.calls is Calls.NONE:
            return []
        allowed = None if self.allowed is None else frozenset(self.allowed)
        return [index for index, tool in enumerate(self.tools) if allowed is None or tool.name in allowed]
