"""The errors a caller may meet.

ConstrainError
├── SchemaError                    a JSON Schema that cannot be used
│   ├── UnsupportedSchemaError     a keyword that cannot be enforced exactly
│   └── UnsatisfiableSchemaError   a schema that no value satisfies
├── GrammarError                   a grammar that is wrong, empty or ambiguous to lex
├── PatternError                   a regular expression that cannot be read
├── LimitError                     a named limit was met; the message names it
├── BudgetError                    max_tokens is too small for any answer
├── ModelError                     a model file or model that cannot be used
├── ToolError                      a tool that cannot be made or run
└── OutputValidationError          a validator of the caller's own type rejected the text, or it is too deep
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class ConstrainError(Exception):
    """Base of every error this package raises on purpose.

    ``message`` is the bare sentence; ``str()`` puts the place, where one is known, in front of it.
    """

    def __init__(
        self,
        message: str,
        *,
        pointer: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.message = message
        self.pointer = pointer
        self.line = line
        self.column = column
        super().__init__(message)

    def __str__(self) -> str:
        if self.pointer is not None:
            return f"at {self.pointer or '/'}: {self.message}"
        if self.line is not None:
            return f"line {self.line}, column {self.column}: {self.message}"
        return self.message


class SchemaError(ConstrainError):
    """A JSON Schema that is malformed or cannot be used; ``pointer`` is a JSON Pointer into it."""


class UnsupportedSchemaError(SchemaError):
    """A keyword that cannot be enforced exactly; ``pointer`` names it."""


class UnsatisfiableSchemaError(SchemaError):
    """No JSON value satisfies the schema; ``pointer`` names the contradiction."""


class GrammarError(ConstrainError):
    """A grammar that is malformed, generates nothing, or whose lexemes cannot be told apart."""


class PatternError(ConstrainError):
    """A regular expression that cannot be read; ``column`` counts code points from 1."""


class LimitError(ConstrainError):
    """A named limit was met; the message names the limit and its value."""


@contextlib.contextmanager
def limits_at(pointer: str) -> Iterator[None]:
    """Gives a ``LimitError`` that names no place this one."""
    try:
        yield
    except LimitError as error:
        if error.pointer is None and error.line is None:
            error.pointer = pointer
        raise


class BudgetError(ConstrainError):
    """No answer fits into ``max_tokens``; ``needed`` tokens are enough."""

    def __init__(self, message: str, *, needed: int) -> None:
        super().__init__(message)
        self.needed = needed


class ModelError(ConstrainError):
    """A model file, vocabulary or model object that cannot be used."""


class ToolError(ConstrainError):
    """A function or description that no tool can be made of, or a tool that cannot be run as it was asked to."""


class OutputValidationError(ConstrainError):
    """The caller's own validators rejected a text that matches the schema, or it is nested too deeply to be read.

    ``text`` is that text.

    ``outcomes``: of a batch, what it would have returned with ``return_errors=True``: all other answers, and the errors
    in the places of those that were rejected; ``None`` where there was no batch.
    """

    def __init__(self, message: str, *, text: str, pointer: str | None = None) -> None:
        super().__init__(message, pointer=pointer)
        self.text = text
        self.outcomes: list[Any] | None = None
