"""What an answer may be made of, as data: texts, calls and reasoning sections."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from constrain.chat.tools.checks import CALLED_NAME
from constrain.json_schema.policies import Policies
from constrain.language.policies import POLICY_DEFAULTS
from constrain.language.source import Source

if TYPE_CHECKING:
    from constrain.chat.families.format import ToolFormat


REFUSAL = "Refusal: "
"""What a refusal begins with; no JSON value does."""


DEFAULT_POLICIES = Policies(**POLICY_DEFAULTS, close_objects=True)


class Calls(Enum):
    """Whether an answer holds calls."""

    AUTO = "auto"  # content or calls
    REQUIRED = "required"
    NONE = "none"


class Reasoning(Enum):
    """Whether an answer begins with the reasoning section of its form."""

    NONE = "none"
    OPTIONAL = "optional"
    OPENED = "opened"  # the prompt has written its first mark


@dataclass(frozen=True, slots=True)
class FunctionCalls:
    """Calls of a function: ``parameters`` is the JSON Schema of its arguments, as text.

    ``closed``: whether parameters that the schema does not declare are left out (as ``generate`` leaves out keys).
    ``typed``: whether Python types read the arguments, so that integers have neither a fraction nor an exponent.
    """

    name: str
    parameters: str
    closed: bool = True
    typed: bool = False


@dataclass(frozen=True, slots=True)
class CustomCalls:
    """Calls of a custom tool: its input is a text of ``input``, or any text."""

    name: str
    input: Source | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """Content that is a JSON value: ``schema`` is a JSON Schema, as text. For the rest see ``FunctionCalls``."""

    schema: str
    closed: bool = True
    typed: bool = False


@dataclass(frozen=True, slots=True)
class Choices(Source):
    """What the answers to one request may be made of.

    An answer is a reasoning section, if there is one, and then content or calls; text may stand before the calls where
    the form has that.

    Args:
        format: how calls and reasoning are written.
        special: the names of the vocabulary's special and user-defined tokens: where structure holds one, it is meant.
        tools: what may be called, in the order in which the prompt shows it.
        calls: whether there are calls.
        allowed: the names of the tools that may be called; None for all.
        parallel: whether there may be several calls.
        content: what an answer is where it holds no calls: free text (None), a JSON value, or a text of a language;
            then no text may stand before calls.
        refusal: whether there may be a refusal in place of ``content``: a text after ``REFUSAL``.
        reasoning: whether there is a reasoning section; it is one lexeme of ``Kind.REASONING``.
        policies: how JSON is written; ``close_objects`` of it is not looked at.
        registry: where references that leave the schema of the content lead, see ``compile``; not compared.

    Raises ValueError for what contradicts itself.
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
        names = [tool.name for tool in self.tools]
        for name in names:
            if not CALLED_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a tool: letters, digits, _, - and ., at most 64 of them")
            if names.count(name) > 1:
                raise ValueError(f"two tools are named {name!r}")
        for name in self.allowed or ():
            if name not in names:
                raise ValueError(f"{name!r} may be called, but is none of the tools ({', '.join(names)})")
        if self.calls is Calls.REQUIRED and not self.callable_tools():
            raise ValueError("a call is required, but there is no tool that may be called")
        if self.refusal and self.content is None:
            raise ValueError("free text needs no refusal apart from it")
        if self.reasoning is not Reasoning.NONE and self.format.thinking is None:
            raise ValueError(f"the form {self.format.name} has no reasoning section")
        self.policies.check()

    def callable_tools(self) -> list[int]:
        """The numbers of the tools that may be called."""
        if self.calls is Calls.NONE:
            return []
        return [index for index, tool in enumerate(self.tools) if self.allowed is None or tool.name in self.allowed]
