"""Constrained decoding for local language models: output that always matches its schema, and always ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain._api import Completion, Finished, TextDelta, Timings, Usage, complete, generate, stream
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
    "Vocabulary",
    "__version__",
    "compile",
    "complete",
    "generate",
    "stream",
]


def __getattr__(name: str) -> object:
    """What costs time to import is imported when it is asked for."""
    if name == "Model":  # llama.cpp
        from constrain.llama.model import Model

        return Model
    if name == "__version__":
        from importlib.metadata import version

        return version("constrain-llm")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
