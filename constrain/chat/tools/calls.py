"""Calls: a tool with validated arguments, ready to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrain.engine.captures import Captures
from constrain.notebooks import cut, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.chat.tools.arguments import Arguments
    from constrain.chat.tools.kinds import CustomTool, FunctionTool


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a ``FunctionTool`` that the model asks for; ``call`` runs it.

    Attributes:
        id: id of the call, to which the message with its result refers.
        tool: the tool.
        bound: the arguments as text and as validated values.
    """

    id: str
    tool: FunctionTool
    bound: Arguments

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return shorten(f"{self.name}({arguments})")

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.tool.name

    @property
    def text(self) -> str:
        """The arguments as JSON text, as the model wrote them."""
        return self.bound.text

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The validated arguments by name; values have the types of the function's parameters."""
        return self.bound.values

    def call(self, *, context: Any = None) -> Any:
        """Runs the tool's function with the arguments and returns its result; raises as ``FunctionTool.call`` does."""
        return self.tool.call(self.bound, context=context)

    async def acall(self, *, context: Any = None) -> Any:
        """Runs the tool's function with the arguments, for asynchronous code; see ``FunctionTool.acall``."""
        return await self.tool.acall(self.bound, context=context)


@dataclass(frozen=True, slots=True)
class CustomCall:
    """A call of a ``CustomTool`` that the model asks for; ``call`` runs it.

    Attributes:
        id: id of the call, to which the message with its result refers.
        tool: the tool.
        text: input of the tool, as the model wrote it.
        captures: parts of the text that the tool's grammar gives names to, as ``Completion.captures``.
    """

    id: str
    tool: CustomTool
    text: str
    captures: Captures | None = field(default_factory=Captures, compare=False, repr=False)

    def __repr__(self) -> str:
        return f"{self.name}({cut(self.text)})"

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.tool.name

    def call(self, *, context: Any = None) -> Any:
        """Runs the tool's function with the text and returns its result; raises as ``CustomTool.call`` does."""
        return self.tool.call(self.text, context=context)

    async def acall(self, *, context: Any = None) -> Any:
        """Runs the tool's function with the text, for asynchronous code; see ``CustomTool.acall``."""
        return await self.tool.acall(self.text, context=context)


ToolCall = FunctionCall | CustomCall
"""A call that a model asks to have run."""
