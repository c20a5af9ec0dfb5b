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

This module has the names that most programs need. The other public names are in modules that import them from where
they are defined: ``tools``, ``events``, ``results``, ``parts``, ``strict``, ``options`` and ``prompts``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from constrain.chat.reading.events import TextDelta
from constrain.engine.compiling import compile
from constrain.engine.constraint import Constraint, Matcher
from constrain.errors import (
    BudgetError,
    CertificateError,
    ConstrainError,
    DraftError,
    ExportError,
    GrammarError,
    LimitError,
    MessageError,
    ModelError,
    OutputValidationError,
    PatternError,
    PrefixError,
    SchemaError,
    ToolError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from constrain.generation.completion import Completion, Finished
from constrain.generation.generate import complete, generate, stream
from constrain.language.grammar import Grammar
from constrain.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from constrain import bounds as bounds
    from constrain import certificates as certificates
    from constrain import errors as errors
    from constrain import events as events
    from constrain import grammars as grammars
    from constrain import integrations as integrations
    from constrain import language as language
    from constrain import mcp as mcp
    from constrain import options as options
    from constrain import parts as parts
    from constrain import prompts as prompts
    from constrain import ray as ray
    from constrain import results as results
    from constrain import strict as strict
    from constrain import tools as tools
    from constrain import verify as verify
    from constrain.chat.tools.definition import tool
    from constrain.gbnf.source import Gbnf
    from constrain.generation.asynchronous import acomplete, agenerate, astream
    from constrain.generation.batch import complete_batch, generate_batch
    from constrain.generation.choosing import choose, choose_batch
    from constrain.inspection.explanation import explain
    from constrain.lark.source import Lark
    from constrain.llama.model import Model
    from constrain.queries.source import sql
    from constrain.quotes.annotation import Quote
    from constrain.regex.source import Regex
    from constrain.tables.annotation import OneOf
    from constrain.tables.table import Table

    __version__: str

__all__ = [
    "BudgetError",
    "CertificateError",
    "Completion",
    "ConstrainError",
    "Constraint",
    "DraftError",
    "ExportError",
    "Finished",
    "Gbnf",
    "Grammar",
    "GrammarError",
    "Lark",
    "LimitError",
    "Matcher",
    "MessageError",
    "Model",
    "ModelError",
    "OneOf",
    "OutputValidationError",
    "PatternError",
    "PrefixError",
    "Quote",
    "Regex",
    "SchemaError",
    "Table",
    "TextDelta",
    "ToolError",
    "UnsatisfiableSchemaError",
    "UnsupportedSchemaError",
    "Vocabulary",
    "__version__",
    "acomplete",
    "agenerate",
    "astream",
    "choose",
    "choose_batch",
    "compile",
    "complete",
    "complete_batch",
    "explain",
    "generate",
    "generate_batch",
    "sql",
    "stream",
    "tool",
]

_LAZY = {
    "Gbnf": "constrain.gbnf.source",
    "Lark": "constrain.lark.source",
    "Model": "constrain.llama.model",
    "OneOf": "constrain.tables.annotation",
    "Quote": "constrain.quotes.annotation",
    "Regex": "constrain.regex.source",
    "Table": "constrain.tables.table",
    "acomplete": "constrain.generation.asynchronous",
    "agenerate": "constrain.generation.asynchronous",
    "astream": "constrain.generation.asynchronous",
    "choose": "constrain.generation.choosing",
    "choose_batch": "constrain.generation.choosing",
    "complete_batch": "constrain.generation.batch",
    "explain": "constrain.inspection.explanation",
    "generate_batch": "constrain.generation.batch",
    "sql": "constrain.queries.source",
    "tool": "constrain.chat.tools.definition",
}
"""Names of this module that cost time to import: each is imported from its module when it is asked for."""

_MODULES = {
    "bounds": "Above AtLeast AtMost Below ItemOf SameAs UniqueBy",
    "certificates": "certify sign verify_certificate verify_signature",
    "errors": "RejectedFieldError SchemaWarning",
    "events": "ArgumentsDelta CallEnded CallStarted FieldEvent FieldReader ReasoningDelta RefusalDelta StreamEvent "
    "TraceDelta",
    "grammars": "GrammarBuilder export",
    "integrations": "",
    "language": "",
    "mcp": "",
    "options": "ChatOptions CompileOptions Options",
    "parts": "Source StructuralTag choice repeat sequence text",
    "prompts": "shown_prompt",
    "ray": "",
    "results": "Alternative Captures CharacterRange Chosen ExpectedTerminal FieldConfidence LikelyToken "
    "LogitsProcessor Precomputed QuotePlace Refusal Report Retried TextExplanation Timings TokenLogprob TokenStep "
    "TokenTrace Usage",
    "strict": "Violation check_strict strict_schema",
    "tools": "Arguments CustomCall CustomTool FunctionCall FunctionTool Reply ToolCall ToolContext ToolRun arun_tools "
    "run_tools tool_from_json tool_to_json",
    "verify": "",
}
"""The other public modules, and their names that somebody may look for here: the error then says where they are."""

if not TYPE_CHECKING:  # to a type checker, a module with this function has every name

    def __getattr__(name: str) -> object:
        if name in _LAZY:
            return getattr(import_module(_LAZY[name]), name)
        if name in _MODULES:
            try:
                return import_module(f"constrain.{name}")
            except ImportError as error:  # an extra is missing
                raise AttributeError(f"constrain.{name}: {error}") from error
        if name == "__version__":
            from importlib.metadata import version

            return version("constrain-llm")
        for module, names in _MODULES.items():
            if name in names.split():
                message = f"{name} is in constrain.{module}: from constrain.{module} import {name}"
                # ``from constrain import name`` would replace an AttributeError by an error without the message
                imported = sys._getframe(1).f_code.co_name == "_handle_fromlist"
                raise (ImportError if imported else AttributeError)(message)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
