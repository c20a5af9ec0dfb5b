"""What is seen to when a tool is made, so that nothing about it fails when a model calls it."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from constrain.chat.tools.annotations import innermost
from constrain.chat.tools.parameters import callers_parameters
from constrain.errors import ConstrainError, ToolError
from constrain.language.schema_text import parse_schema
from constrain.language.source import Source
from constrain.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Names that tools may have, and formats of requests, here as at OpenAI's endpoints."""

CALLED_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""Names of tools in calls, which other servers may have made: with dots, too."""

CHECKED_BYTES = 16 << 20
"""Bytes of the schemas that are remembered as compilable; beyond, the least recently used are forgotten."""


def check_name(name: object) -> None:
    """Raises ``ToolError`` for a name that no tool can have."""
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        raise ToolError(
            f"no tool can be called {name!r}: a name has 1 to 64 characters, letters (a to z), digits, _ and -; "
            f"give it one with name="
        )


_is_checked: ContextVar[bool] = ContextVar("_is_checked", default=False)


@contextlib.contextmanager
def checked_before() -> Iterator[None]:
    """Tools that are made meanwhile were made before, of the same JSON: what they take is not compiled once more."""
    token = _is_checked.set(True)
    try:
        yield
    finally:
        _is_checked.reset(token)


def is_checked() -> bool:
    """Whether what is looked at was found to be well before."""
    return _is_checked.get()


def check_schema(name: str, schema: dict[str, Any]) -> None:
    """Raises what compiling a tool's arguments would raise: ``SchemaError``, ``PatternError``, ``LimitError``."""
    if is_checked():
        return
    try:
        _compile(json.dumps(schema))
    except ConstrainError as error:
        raise named(error, f"the parameters of tool {name!r}") from error


@remembered(256, CHECKED_BYTES, sys.getsizeof)
def _compile(text: str) -> None:
    from constrain.json_schema.compiler import compile_schema

    compile_schema(parse_schema(text), close_objects=True, keys_apart=True)


def check_format(name: str, source: Source | None) -> None:
    """Raises what compiling the format of a custom tool would raise, ``ToolError`` if it is none."""
    if source is None:
        return
    if not isinstance(source, Source):
        raise ToolError(
            f"tool {name!r}: its format is {source!r:.80}; it can be a Lark, a Regex, what sequence, choice, repeat "
            f"and text make of these, or None for any text"
        )
    if is_checked():
        return
    try:
        source.grammar()
    except ConstrainError as error:
        raise named(error, f"the format of tool {name!r}") from error


def check_function(name: str, function: Any, calls: Iterable[tuple[tuple[Any, ...], Mapping[str, Any]]] = ()) -> None:
    """Raises ``ToolError`` for what cannot be run as a tool, or does not take such calls (context left out)."""
    if not callable(function) or isinstance(function, type):
        raise ToolError(
            f"tool {name!r}: {function!r:.80} is no function; a class or a type is what an answer can be (schema=), "
            f"and what a parameter can be annotated with"
        )
    written = innermost(function)
    if inspect.isgeneratorfunction(written) or inspect.isasyncgenfunction(written):
        raise ToolError(f"tool {name!r}: its function yields; a tool returns one result, so collect them in a list")
    for args, kwargs in calls:
        _, takes_context = callers_parameters(function, name, {})
        try:
            inspect.signature(function).bind(*((None, *args) if takes_context else args), **kwargs)
        except TypeError as error:
            raise ToolError(f"tool {name!r}: its function cannot be called with what a model gives: {error}") from error


def named(error: ConstrainError, what: str) -> ConstrainError:
    """The same error, saying in what it is."""
    return type(error)(f"{what}: {error.message}", pointer=error.pointer, line=error.line, column=error.column)
