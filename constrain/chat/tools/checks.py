"""Checks of a new tool, so that its errors appear at once and not when a model calls it."""

from __future__ import annotations

import contextlib
import inspect
import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from constrain.chat.tools.annotations import innermost
from constrain.chat.tools.compiled import ToolArguments, arguments_schema, compile_arguments
from constrain.chat.tools.parameters import callers_parameters
from constrain.errors import ConstrainError, SchemaError, ToolError
from constrain.given import needs_given, without_given
from constrain.language.schema_text import parse_schema
from constrain.language.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Pattern of names of tools and of response formats, as at OpenAI's endpoints."""

ANY_TOOL_NAME = re.compile(r"[a-zA-Z0-9_./-]{1,256}")
"""Pattern of names of tools: wide enough for the names that any protocol allows."""


def check_name(name: object) -> None:
    """Raises ``ToolError`` for an invalid name of a tool."""
    if not isinstance(name, str) or not ANY_TOOL_NAME.fullmatch(name):
        raise ToolError(
            f"no tool can be called {name!r:.300}: a name has 1 to 256 letters (a to z), digits, and characters of _-./"
        )


_is_checked: ContextVar[bool] = ContextVar("_is_checked", default=False)


@contextlib.contextmanager
def checked_before() -> Iterator[None]:
    """Skips the compilation of new tools inside the block: the same JSON was checked before."""
    token = _is_checked.set(True)
    try:
        yield
    finally:
        _is_checked.reset(token)


def is_checked() -> bool:
    """Returns whether tools inside this block were checked before."""
    return _is_checked.get()


def check_schema(name: str, text: str, *, typed: bool = False) -> None:
    """Compiles a tool's parameters. Raises ``SchemaError``, ``PatternError``, ``LimitError``, with the tool's name.

    ``typed``: whether Python types read the arguments.
    """
    if is_checked():
        return
    try:
        _compile(text, typed=typed)
    except ConstrainError as error:
        raise prefix_error(error, f"the parameters of tool {name!r}") from error


def _compile(text: str, *, typed: bool) -> None:
    if not needs_given(text):
        compile_arguments(ToolArguments(text, typed=typed))
        return
    from constrain.json_schema.compiler import compile_schema

    parameters: Any = parse_schema(text)
    try:
        parameters = without_given(parameters)
    except (TypeError, ValueError) as error:
        raise SchemaError(str(error), pointer="") from error
    compile_schema(arguments_schema(parameters), close_objects=True)


def check_format(name: str, source: Source | None) -> None:
    """Compiles a custom tool's format. Raises its errors, with the tool's name, and ``ToolError`` for other types."""
    if source is None:
        return
    if not isinstance(source, Source):
        raise ToolError(
            f"tool {name!r}: its format is {source!r:.80}; it must be a Lark, a Regex, a composition of these by "
            f"sequence, choice, repeat and text, or None for any text"
        )
    if is_checked():
        return
    try:
        source.grammar()
    except ConstrainError as error:
        raise prefix_error(error, f"the format of tool {name!r}") from error


def check_function(name: str, function: Any, calls: Iterable[tuple[tuple[Any, ...], Mapping[str, Any]]] = ()) -> None:
    """Raises ``ToolError`` if a function cannot be a tool, or does not accept the given calls (without context)."""
    if not callable(function) or isinstance(function, type):
        cure = "pass a class or type as schema=, or annotate a parameter with it"
        if not isinstance(function, type):
            cure = "pass the function itself, not its result or its name, as in tools=[forecast]"
        raise ToolError(f"tool {name!r}: {function!r:.80} is not a function; {cure}")
    written = innermost(function)
    if inspect.isgeneratorfunction(written) or inspect.isasyncgenfunction(written):
        raise ToolError(f"tool {name!r}: its function yields; return one result instead, such as a list")
    for args, kwargs in calls:
        _, takes_context = callers_parameters(function, name, {})
        try:
            inspect.signature(function).bind(*((None, *args) if takes_context else args), **kwargs)
        except TypeError as error:
            raise ToolError(
                f"tool {name!r}: its function does not accept the arguments that a model may give: {error}"
            ) from error


def prefix_error(error: ConstrainError, what: str) -> ConstrainError:
    """Returns the same error with a description of its place in front of the message."""
    return type(error)(f"{what}: {error.message}", pointer=error.pointer, line=error.line, column=error.column)
