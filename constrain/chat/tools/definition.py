"""``tool``: makes a tool from a function."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

from constrain.chat.tools.annotations import names_around
from constrain.chat.tools.checks import check_function, check_name, check_schema, prefix_error
from constrain.chat.tools.docstrings import read_docstring
from constrain.chat.tools.kinds import CustomTool, FunctionTool
from constrain.errors import ConstrainError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.chat.tools.kinds import Tool


@overload
def tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    descriptions: Mapping[str, str] | None = None,
    strict: bool = False,
) -> FunctionTool: ...


@overload
def tool(
    function: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    descriptions: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    descriptions: Mapping[str, str] | None = None,
    strict: bool = False,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Makes a tool that models can call from a function; also a decorator, with or without arguments.

    Name, description and parameters are read from the function's signature and its docstring (in Google's, NumPy's or
    Sphinx's style). A parameter may have any type that Pydantic reads from JSON, with ``Annotated`` and ``Field``
    (constraints, description, alias, default); without an annotation it takes any JSON value. ``*args`` becomes an
    array, ``**kwargs`` an object, under their own names.

    A first parameter with the annotation ``ToolContext[T]``, or named ``ctx`` or ``context`` without one, receives the
    ``context`` of ``call`` or ``run_tools``. The model does not see it.

    Args:
        function: function to call. It may be ``async``, a method of an object, a ``functools.partial`` (the model does
            not see arguments that are already set), or a callable object. A method that is made a tool in the body of
            its class becomes a tool of each object.
        name: name of the tool; by default the function's name.
        description: purpose of the tool, for the model; by default the docstring without its sections.
        descriptions: descriptions of parameters by name. They win over those in the docstring, which win over those in
            ``Annotated``.
        strict: whether the schema is converted with ``strict_schema``, as OpenAI's clients do, so that the model must
            write every parameter. Without it, parameters with defaults stay optional. Arguments match the schema in
            both cases.

    Raises ``ToolError`` with the parameter and a remedy for a function that cannot be a tool; ``SchemaError``,
    ``PatternError`` and ``LimitError`` for types whose values cannot be enforced.

    >>> @tool
    ... def read_file(ctx, path: str, directory: str | None = None) -> str:
    ...     '''Reads a file.
    ...
    ...     Args:
    ...         path: relative to the directory
    ...     '''
    ...     return f"{ctx}:{directory}/{path}"
    >>> read_file.parameters["required"], list(read_file.parameters["properties"])
    (['path'], ['path', 'directory'])
    >>> read_file.call('{"path": "notes.txt"}', context="disk")
    'disk:None/notes.txt'
    """

    def make(function: Callable[..., Any]) -> FunctionTool:
        names = names_around(function, sys._getframe(depth))
        return _make(function, names, name, description, descriptions or {}, strict=strict)

    depth = 1
    if function is None:
        return make
    depth = 2
    return make(function)


def as_tools(given: Iterable[object]) -> tuple[Tool, ...]:
    """Returns the tools of a ``tools=`` argument, whose entries are functions, tools, or JSON objects as at OpenAI.

    Raises the errors of ``tool`` and ``tool_from_json``, with the place of the entry, such as ``tools[2]``.

    >>> def roll(sides: int = 6) -> int: ...
    >>> def flip() -> bool: ...
    >>> [one.name for one in as_tools([roll, tool(flip, name="flip_coin")])]
    ['roll', 'flip_coin']
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ToolError(f"tools is {given!r:.80}; it must be a list of functions and tools")
    tools = tuple(_as_tool(one, f"tools[{index}]") for index, one in enumerate(given))
    names: set[str] = set()
    for index, one in enumerate(tools):
        if one.name in names:
            raise ToolError(f"tools[{index}]: two tools are called {one.name!r}; give one of them another name")
        if isinstance(one, FunctionTool) and one.is_unbound:
            raise ToolError(
                f"tools[{index}]: tool {one.name!r} is a method of a class; take it from an instance of the class"
            )
        names.add(one.name)
    return tools


def _as_tool(given: Any, place: str) -> Tool:
    if isinstance(given, FunctionTool | CustomTool):
        return given
    try:
        if isinstance(given, Mapping):
            from constrain.chat.tools.openai import tool_from_json

            return tool_from_json(given)
        return _make(given, {}, None, None, {}, strict=False)
    except ConstrainError as error:
        raise prefix_error(error, place) from error


def _make(
    function: Any,
    names: Mapping[str, Any],
    name: str | None,
    description: str | None,
    descriptions: Mapping[str, str],
    *,
    strict: bool,
) -> FunctionTool:
    from constrain.chat.tools.signatures import read_signature

    called = function.__func__ if isinstance(function, staticmethod | classmethod) else function
    if isinstance(called, FunctionTool):
        raise ToolError(f"{called.name!r} is already a tool")
    named = _name_of(called) if name is None else name
    try:
        check_name(named)
    except ToolError as error:
        raise ToolError(f"{error.message}; pass another one with name=") from error
    check_function(named, called)
    is_method = isinstance(function, classmethod) or (called is function and _is_method(function))
    documentation = read_docstring(_docstring(called))
    signature = read_signature(
        called,
        named,
        documented=documentation.parameters,
        overrides=descriptions,
        names=names,
        is_method=is_method,
    )
    parameters, schema = signature.document, signature.tightened
    if strict:
        parameters, schema = _strict(named, parameters), _strict(named, schema)
    made = FunctionTool(
        named,
        documentation.description if description is None else description,
        parameters,
        schema,
        strict,
        function if is_method else called,
        signature.takes_context,
        signature,
        is_unbound=is_method,
    )
    check_schema(named, made.schema_text, typed=True)
    return made


def _name_of(function: Any) -> str:
    """Returns the name of a function; for a callable object, the name of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _docstring(function: Any) -> str:
    """Returns the docstring of a function; for a callable object, of its ``__call__`` or else its class."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function):
        return inspect.getdoc(function) or ""
    call = type(function).__call__
    return (inspect.isfunction(call) and inspect.getdoc(call)) or inspect.getdoc(type(function)) or ""


def _is_method(function: Any) -> bool:
    """Returns whether a function was defined in the body of a class and is not bound to an object."""
    scope = getattr(function, "__qualname__", "").rpartition(".")[0]
    if not inspect.isfunction(function) or not scope or scope.endswith("<locals>"):
        return False
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.name in ("self", "cls") and first.annotation is first.empty


def _strict(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    from constrain.json_schema.strict.subset import strict_schema

    try:
        return strict_schema(schema)
    except ConstrainError as error:
        raise ToolError(
            f"tool {name!r}: its parameters do not fit strict mode: {error}; leave out strict=True"
        ) from error
