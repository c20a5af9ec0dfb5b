"""Constrained decoding for local language models: output that always matches its schema, and always ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain._api import complete, generate, stream
from constrain._completion import Completion, Finished, TextDelta, Timings, Usage
from constrain._errors import (
    BudgetError,
    ConstrainError,
    GrammarError,
    LimitError,
    ModelError,
    OutputValidationError,
    PatternError,
    SchemaError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from constrain.constraint import Constraint, LogitsProcessor, Matcher, Report, compile
from constrain.grammar import Grammar, GrammarBuilder
from constrain.vocabulary import Vocabulary

if TYPE_CHECKING:
    from constrain import grammars
    from constrain._async import acomplete, agenerate, astream
    from constrain._batch import complete_batch, generate_batch
    from constrain.json_schema.strict import check_strict, strict_schema
    from constrain.json_schema.strict_checks import Violation
    from constrain.llama.model import Model

    __version__: str

__all__ = [
    "BudgetError",
    "Completion",
    "ConstrainError",
    "Constraint",
    "Finished",
    "Grammar",
    "GrammarBuilder",
    "GrammarError",
    "LimitError",
    "LogitsProcessor",
    "Matcher",
    "Model",
    "ModelError",
    "OutputValidationError",
    "PatternError",
    "Report",
    "SchemaError",
    "TextDelta",
    "Timings",
    "UnsatisfiableSchemaError",
    "UnsupportedSchemaError",
    "Usage",
    "Violation",
    "Vocabulary",
    "__version__",
    "acomplete",
    "agenerate",
    "astream",
    "check_strict",
    "compile",
    "complete",
    "complete_batch",
    "generate",
    "generate_batch",
    "grammars",
    "stream",
    "strict_schema",
]


def __getattr__(name: str) -> object:
    """What costs time to import is imported when it is asked for."""
    if name == "Model":  # llama.cpp
        from constrain.llama.model import Model

        return Model
    if name in ("acomplete", "agenerate", "astream"):  # asyncio
        from constrain import _async

        return getattr(_async, name)
    if name in ("complete_batch", "generate_batch"):
        from constrain import _batch

        return getattr(_batch, name)
    if name in ("check_strict", "strict_schema"):
        from constrain.json_schema import strict

        return getattr(strict, name)
    if name == "grammars":
        from importlib import import_module

        return import_module("constrain.grammars")
    if name == "Violation":
        from constrain.json_schema.strict_checks import Violation

        return Violation
    if name == "__version__":
        from importlib.metadata import version

        return version("constrain-llm")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
