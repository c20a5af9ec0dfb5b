"""Constrained decoding for local language models: output that always matches its schema, and always ends."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from constrain._api import complete, generate, stream
from constrain._completion import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    Completion,
    Finished,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    Timings,
    TokenLogprob,
    Usage,
)
from constrain._errors import (
    BudgetError,
    ConstrainError,
    GrammarError,
    LimitError,
    ModelError,
    OutputValidationError,
    PatternError,
    SchemaError,
    ToolError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from constrain.constraint import Constraint, Matcher, Report, compile
from constrain.grammar import Grammar, GrammarBuilder
from constrain.vocabulary import Vocabulary

if TYPE_CHECKING:
    from constrain import grammars
    from constrain._async import acomplete, agenerate, astream
    from constrain._batch import complete_batch, generate_batch
    from constrain._logits import LogitsProcessor
    from constrain.chat.annotations import ToolContext
    from constrain.chat.calls import ToolCall
    from constrain.chat.definition import tool
    from constrain.chat.loop import ToolRun, arun_tools, run_tools
    from constrain.chat.openai import tool_from_json, tool_to_json
    from constrain.chat.reply import Refusal, Reply
    from constrain.chat.tools import CustomTool, FunctionTool
    from constrain.composition import choice, repeat, sequence, text
    from constrain.explanation import TextExplanation, explain
    from constrain.json_schema.strict import check_strict, strict_schema
    from constrain.json_schema.strict_checks import Violation
    from constrain.lark.source import Lark
    from constrain.llama.model import Model
    from constrain.regex.source import Regex

    __version__: str

__all__ = [
    "ArgumentsDelta",
    "BudgetError",
    "CallEnded",
    "CallStarted",
    "Completion",
    "ConstrainError",
    "Constraint",
    "CustomTool",
    "Finished",
    "FunctionTool",
    "Grammar",
    "GrammarBuilder",
    "GrammarError",
    "Lark",
    "LimitError",
    "LogitsProcessor",
    "Matcher",
    "Model",
    "ModelError",
    "OutputValidationError",
    "PatternError",
    "ReasoningDelta",
    "Refusal",
    "RefusalDelta",
    "Regex",
    "Reply",
    "Report",
    "SchemaError",
    "TextDelta",
    "TextExplanation",
    "Timings",
    "TokenLogprob",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolRun",
    "UnsatisfiableSchemaError",
    "UnsupportedSchemaError",
    "Usage",
    "Violation",
    "Vocabulary",
    "__version__",
    "acomplete",
    "agenerate",
    "arun_tools",
    "astream",
    "check_strict",
    "choice",
    "compile",
    "complete",
    "complete_batch",
    "explain",
    "generate",
    "generate_batch",
    "grammars",
    "repeat",
    "run_tools",
    "sequence",
    "stream",
    "strict_schema",
    "text",
    "tool",
    "tool_from_json",
    "tool_to_json",
]


_MODULES = {
    "CustomTool": "constrain.chat.tools",
    "FunctionTool": "constrain.chat.tools",
    "Lark": "constrain.lark.source",
    "LogitsProcessor": "constrain._logits",
    "Model": "constrain.llama.model",
    "Refusal": "constrain.chat.reply",
    "Regex": "constrain.regex.source",
    "Reply": "constrain.chat.reply",
    "TextExplanation": "constrain.explanation",
    "ToolCall": "constrain.chat.calls",
    "ToolContext": "constrain.chat.annotations",
    "ToolRun": "constrain.chat.loop",
    "Violation": "constrain.json_schema.strict_checks",
    "acomplete": "constrain._async",
    "agenerate": "constrain._async",
    "arun_tools": "constrain.chat.loop",
    "astream": "constrain._async",
    "check_strict": "constrain.json_schema.strict",
    "choice": "constrain.composition",
    "complete_batch": "constrain._batch",
    "explain": "constrain.explanation",
    "generate_batch": "constrain._batch",
    "repeat": "constrain.composition",
    "run_tools": "constrain.chat.loop",
    "sequence": "constrain.composition",
    "strict_schema": "constrain.json_schema.strict",
    "text": "constrain.composition",
    "tool": "constrain.chat.definition",
    "tool_from_json": "constrain.chat.openai",
    "tool_to_json": "constrain.chat.openai",
}
"""Where the names are that cost time to import, or bring in what does: they are imported when they are asked for."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    if name == "grammars":
        return import_module("constrain.grammars")
    if name == "__version__":
        from importlib.metadata import version

        return version("constrain-llm")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
