"""Calls: a tool together with validated arguments, ready to be run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.chat.tools.arguments import Arguments
    from constrain.chat.tools.kinds import CustomTool, FunctionTool


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function tool. ``id`` tells it from other calls of a conversation."""

    id: str
    tool: FunctionTool
    bound: Arguments

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.name}({arguments})"

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name

    @property
    def text(self) -> str:
        """The arguments as JSON, as the model wrote them."""
        return self.bound.text

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The validated arguments by name: see ``Arguments.values``."""
        return self.bound.values

    def call(self, *, context: Any = None) -> Any:
        """Runs the tool's function with the arguments: ``FunctionTool.call``."""
        return self.tool.call(self.bound, context=context)

    async def acall(self, *, context: Any = None) -> Any:
        """The same in an event loop: ``FunctionTool.acall``."""
        return await self.tool.acall(self.bound, context=context)


@dataclass(frozen=True, slots=True)
class CustomCall:
    """A call of a custom tool with its ``text``. ``id`` tells it from other calls of a conversation."""

    id: str
    tool: CustomTool
    text: str

    def __repr__(self) -> str:
        return f"{self.name}({self.text!r})"

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name

    def call(self, *, context: Any = None) -> Any:
        """Runs the tool's function with the text: ``CustomTool.call``."""
        return self.tool.call(self.text, context=context)

    async def acall(self, *, context: Any = None) -> Any:
        """The same in an event loop: ``CustomTool.acall``."""
        return await self.tool.acall(self.text, context=context)


ToolCall = FunctionCall | CustomCall
"""What a model asks to have run."""
