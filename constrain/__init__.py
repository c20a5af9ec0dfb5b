"""Constrained decoding for local language models: output that always matches its schema, and always ends.

Where things are, from the bottom up; each package's ``__init__`` says what to read first, and docs/reference/files.md
has a line for every file:

- ``kernel``, in C++, decides questions about expressions and computes masks; ``cache`` keeps its tables on disk
- ``json_schema``, ``lark``, ``gbnf``, ``regex``, ``composition`` and ``structural`` turn schemas and grammars into a
  ``language.Grammar``; ``types`` turns Python types into JSON Schemas
- ``exporting`` writes a ``Grammar`` in the notation of other programs
- ``engine`` compiles a ``Grammar`` for a ``vocabulary``, and follows generations through it;
  ``inspection`` explains and checks; ``certificates`` proves that an answer is one of its grammar, and ``verify``,
  which runs alone, checks the proof
- ``llama`` runs models: ``decoding`` one answer, ``scheduling`` several at once
- ``chat`` knows prompts, tools and model families
- ``generation`` has the public calls (``generate``, ``stream``, ...); ``batch``, ``server`` and ``cli`` use it, and
  read their options in JSON with ``fields``; ``mcp`` has tools of others, ``integrations`` brings this library into
  other programs
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from constrain.chat.reading.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
)
from constrain.engine.captures import Captures
from constrain.engine.compiling import compile
from constrain.engine.constraint import Constraint, Matcher, Precomputed
from constrain.engine.report import Report
from constrain.errors import (
    BudgetError,
    ConstrainError,
    ExportError,
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
from constrain.generation.completion import Completion, Finished, Timings, Usage
from constrain.generation.generate import complete, generate, stream
from constrain.language.grammar import Grammar, GrammarBuilder
from constrain.llama.decoding.token_logprob import TokenLogprob
from constrain.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from constrain import grammars
    from constrain.certificates.certificate import verify_certificate
    from constrain.chat.reading.reply import Refusal, Reply
    from constrain.chat.tools.annotations import ToolContext
    from constrain.chat.tools.arguments import Arguments
    from constrain.chat.tools.calls import CustomCall, FunctionCall, ToolCall
    from constrain.chat.tools.definition import tool
    from constrain.chat.tools.kinds import CustomTool, FunctionTool
    from constrain.chat.tools.openai import tool_from_json, tool_to_json
    from constrain.composition import choice, repeat, sequence, text
    from constrain.engine.export import export
    from constrain.engine.logits import LogitsProcessor
    from constrain.engine.terminals import ExpectedTerminal
    from constrain.gbnf.source import Gbnf
    from constrain.generation.asynchronous import acomplete, agenerate, astream
    from constrain.generation.batch import complete_batch, generate_batch
    from constrain.generation.observers.trace.records import LikelyToken, TokenTrace, TraceDelta
    from constrain.generation.options import ChatOptions, Options
    from constrain.generation.planning import shown_prompt
    from constrain.generation.tool_loop import ToolRun, arun_tools, run_tools
    from constrain.inspection.characters import CharacterRange
    from constrain.inspection.explanation import TextExplanation, TokenStep, explain
    from constrain.json_schema.strict.checks import Violation
    from constrain.json_schema.strict.subset import check_strict, strict_schema
    from constrain.language.policies import CompileOptions
    from constrain.language.source import Source
    from constrain.lark.source import Lark
    from constrain.llama.model import Model
    from constrain.partial.reader import FieldEvent, FieldReader
    from constrain.quotes.annotation import Quote
    from constrain.quotes.places import QuotePlace
    from constrain.regex.source import Regex
    from constrain.structural.source import StructuralTag

    __version__: str

__all__ = [
    "Alternative",
    "Arguments",
    "ArgumentsDelta",
    "BudgetError",
    "CallEnded",
    "CallStarted",
    "Captures",
    "CharacterRange",
    "ChatOptions",
    "Chosen",
    "CompileOptions",
    "Completion",
    "ConstrainError",
    "Constraint",
    "CustomCall",
    "CustomTool",
    "ExpectedTerminal",
    "ExportError",
    "FieldConfidence",
    "FieldEvent",
    "FieldReader",
    "Finished",
    "FunctionCall",
    "FunctionTool",
    "Gbnf",
    "Grammar",
    "GrammarBuilder",
    "GrammarError",
    "Lark",
    "LikelyToken",
    "LimitError",
    "LogitsProcessor",
    "Matcher",
    "Model",
    "ModelError",
    "Options",
    "OutputValidationError",
    "PatternError",
    "Precomputed",
    "Quote",
    "QuotePlace",
    "ReasoningDelta",
    "Refusal",
    "RefusalDelta",
    "Regex",
    "Reply",
    "Report",
    "SchemaError",
    "Source",
    "StreamEvent",
    "StructuralTag",
    "TextDelta",
    "TextExplanation",
    "Timings",
    "TokenLogprob",
    "TokenStep",
    "TokenTrace",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolRun",
    "TraceDelta",
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
    "choose",
    "choose_batch",
    "compile",
    "complete",
    "complete_batch",
    "explain",
    "export",
    "generate",
    "generate_batch",
    "grammars",
    "repeat",
    "run_tools",
    "sequence",
    "shown_prompt",
    "stream",
    "strict_schema",
    "text",
    "tool",
    "tool_from_json",
    "tool_to_json",
    "verify_certificate",
]


_MODULES = {
    "Alternative": "constrain.generation.observers.confidence.records",
    "Arguments": "constrain.chat.tools.arguments",
    "CharacterRange": "constrain.inspection.characters",
    "ChatOptions": "constrain.generation.options",
    "Chosen": "constrain.generation.choosing",
    "CompileOptions": "constrain.language.policies",
    "CustomCall": "constrain.chat.tools.calls",
    "CustomTool": "constrain.chat.tools.kinds",
    "ExpectedTerminal": "constrain.engine.terminals",
    "FieldConfidence": "constrain.generation.observers.confidence.records",
    "FieldEvent": "constrain.partial.reader",
    "FieldReader": "constrain.partial.reader",
    "FunctionCall": "constrain.chat.tools.calls",
    "FunctionTool": "constrain.chat.tools.kinds",
    "Gbnf": "constrain.gbnf.source",
    "Lark": "constrain.lark.source",
    "LikelyToken": "constrain.generation.observers.trace.records",
    "LogitsProcessor": "constrain.engine.logits",
    "Model": "constrain.llama.model",
    "Options": "constrain.generation.options",
    "Quote": "constrain.quotes.annotation",
    "QuotePlace": "constrain.quotes.places",
    "Refusal": "constrain.chat.reading.reply",
    "Regex": "constrain.regex.source",
    "Reply": "constrain.chat.reading.reply",
    "Source": "constrain.language.source",
    "StructuralTag": "constrain.structural.source",
    "TextExplanation": "constrain.inspection.explanation",
    "TokenStep": "constrain.inspection.explanation",
    "TokenTrace": "constrain.generation.observers.trace.records",
    "TraceDelta": "constrain.generation.observers.trace.records",
    "ToolCall": "constrain.chat.tools.calls",
    "ToolContext": "constrain.chat.tools.annotations",
    "ToolRun": "constrain.generation.tool_loop",
    "Violation": "constrain.json_schema.strict.checks",
    "acomplete": "constrain.generation.asynchronous",
    "agenerate": "constrain.generation.asynchronous",
    "arun_tools": "constrain.generation.tool_loop",
    "astream": "constrain.generation.asynchronous",
    "check_strict": "constrain.json_schema.strict.subset",
    "choice": "constrain.composition",
    "choose": "constrain.generation.choosing",
    "choose_batch": "constrain.generation.choosing",
    "complete_batch": "constrain.generation.batch",
    "explain": "constrain.inspection.explanation",
    "export": "constrain.engine.export",
    "generate_batch": "constrain.generation.batch",
    "repeat": "constrain.composition",
    "run_tools": "constrain.generation.tool_loop",
    "sequence": "constrain.composition",
    "shown_prompt": "constrain.generation.planning",
    "strict_schema": "constrain.json_schema.strict.subset",
    "text": "constrain.composition",
    "tool": "constrain.chat.tools.definition",
    "tool_from_json": "constrain.chat.tools.openai",
    "tool_to_json": "constrain.chat.tools.openai",
    "verify_certificate": "constrain.certificates.certificate",
}
"""Where the names are that cost time to import, or bring in what does: they are imported when they are asked for."""


_SUBMODULES = ("certificates", "errors", "grammars", "integrations", "language", "mcp", "ray", "verify")
"""The modules that are public; docs/reference/python.md says what is in them."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    if name in _SUBMODULES:
        try:
            return import_module(f"constrain.{name}")
        except ImportError as error:  # an extra is missing
            raise AttributeError(f"constrain.{name}: {error}") from error
    if name == "__version__":
        from importlib.metadata import version

        return version("constrain-llm")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
