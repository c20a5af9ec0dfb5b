"""Tools in OpenAI's JSON, in the forms of both endpoints.

Chat completions put the definition of a tool under its type, ``{"type": "function", "function": {"name": ...}}``.
Responses put it beside the type, ``{"type": "function", "name": ...}``, and a custom tool's format is flat, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from constrain.chat.tools.checks import check_function, check_name, check_schema, prefix_error
from constrain.chat.tools.compiled import arguments_schema
from constrain.chat.tools.kinds import CustomTool, FunctionTool, Tool
from constrain.chat.tools.parameters import callers_parameters
from constrain.errors import PatternError, SchemaError, ToolError
from constrain.language.schema_text import parse_schema, plain_schema, schema_text
from constrain.lark.source import Lark
from constrain.queries.served import served_queries
from constrain.regex.parsing.parser import parse_pattern
from constrain.regex.parsing.scanner import Dialect
from constrain.regex.source import Regex

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.language.source import Source

Shape = Literal["chat", "responses"]

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
"""Schema of a tool without ``parameters``: OpenAI's guide says that it takes no arguments."""


def tool_from_json(document: Mapping[str, Any], function: Callable[..., Any] | None = None) -> Tool:
    """Makes a tool from its JSON description, as OpenAI's chat completions or responses take it.

    Args:
        document: a function tool (``"type": "function"``) or a custom tool (``"type": "custom"``). A function without
            ``parameters``, or with ``"properties": {}`` and no other keyword about keys, takes no arguments;
            ``{"type": "object"}`` takes any. With ``"strict": true``, the schema must keep the structural rules of
            OpenAI's strict mode. Arguments match the schema with and without ``strict``. Beyond OpenAI's forms, the
            syntax ``"regex"`` may have a ``dialect``, as ``Regex`` has, and the definition of the syntax ``"sql"`` is
            the name of a database of the server's operator.
        function: function that ``call`` runs with the arguments by name, or with the text of a custom tool; ``None`` if
            the tool is not called here.

    Returns a ``FunctionTool`` or a ``CustomTool``. Raises ``ToolError`` with the place for a document that is no tool;
    ``SchemaError``, ``GrammarError``, ``PatternError`` and ``LimitError`` for parameters and formats that cannot be
    enforced.

    >>> parameters = {"type": "object", "properties": {"who": {"type": "string"}}}
    >>> greet = {"type": "function", "name": "greet", "parameters": parameters}
    >>> tool_from_json(greet, lambda who="you": f"Hello {who}").call('{"who": "Emma"}')
    'Hello Emma'
    """
    kind = document.get("type")
    if kind not in ("function", "custom"):
        raise ToolError(f"a tool's type is 'function' or 'custom', not {kind!r}", pointer="/type")
    inner, pointer = document, ""
    if kind in document:  # nested, as in chat completions
        inner, pointer = _get(document, kind, Mapping, ""), f"/{kind}"
    if kind == "function":
        return function_from_json(inner, function, pointer=pointer)
    name, description = _name_and_description(inner, pointer)
    try:
        source = _format(inner, pointer)
    except PatternError as error:
        if error.line is None:  # a pattern is one line; an error in a grammar has a line number
            error.line = 1
        raise prefix_error(error, f"the format of tool {name!r}") from error
    return CustomTool(name, description, source, function)


def function_from_json(
    document: Mapping[str, Any],
    function: Callable[..., Any] | None = None,
    *,
    pointer: str = "",
    text: str | None = None,
) -> FunctionTool:
    """The tool that the definition of a function in OpenAI's JSON describes. Raises as ``tool_from_json`` does.

    Args:
        document: object with the members ``name``, ``description``, ``parameters`` and ``strict``.
        function: what ``call`` runs.
        pointer: place of the object, for errors.
        text: its parameters as JSON text, if they are written out already.
    """
    name, description = _name_and_description(document, pointer)
    strict = _get(document, "strict", bool, pointer, missing=False)
    if text is None:
        text = schema_text(dict(_get(document, "parameters", Mapping, pointer, missing=_NO_PARAMETERS)))
    try:
        parameters = plain_schema(parse_schema(text))
    except SchemaError as error:
        raise prefix_error(error, f"the parameters of tool {name!r}") from error
    schema = arguments_schema(parameters)
    if schema["type"] != "object":
        raise SchemaError(
            f"the parameters of tool {name!r} are of type {schema['type']!r}; arguments are an object", pointer="/type"
        )
    if strict:
        from constrain.json_schema.strict.subset import require_strict

        try:
            require_strict(parameters)
        except SchemaError as error:
            raise SchemaError(f"the parameters of tool {name!r}: {error.message}", pointer=error.pointer) from error
    check_schema(name, text)
    takes_context = False
    if function is not None:
        check_function(name, function, [((), arguments) for arguments in _extremes(schema)])
        takes_context = callers_parameters(function, name, {})[1]
    return FunctionTool(name, description, parameters, schema, strict, function, takes_context)._keep_text(text)


def _name_and_description(document: Mapping[str, Any], pointer: str) -> tuple[str, str]:
    name = _get(document, "name", str, pointer)
    description = _get(document, "description", str, pointer, missing="")
    try:
        check_name(name)
    except ToolError as error:
        raise ToolError(error.message, pointer=f"{pointer}/name") from error
    return name, description


def _extremes(schema: Mapping[str, Any]) -> list[dict[str, None]]:
    """Returns the smallest and the largest set of arguments, by name, that a function must accept."""
    declared = schema.get("properties", {})
    required = dict.fromkeys(schema.get("required", ()))
    most = dict.fromkeys(declared) | required
    if schema.get("additionalProperties", not declared) is not False:  # objects that declare keys are closed
        most["any_other"] = None
    return [required, most]


def _format(document: Mapping[str, Any], pointer: str) -> Source | None:
    """Returns the format of a custom tool; None for any text."""
    outer = _get(document, "format", Mapping, pointer, missing={"type": "text"})
    pointer += "/format"
    kind = _get(outer, "type", str, pointer)
    if kind == "text":
        return None
    if kind != "grammar":
        raise ToolError(f"a format's type is 'text' or 'grammar', not {kind!r}", pointer=f"{pointer}/type")
    inner = outer
    if "grammar" in outer:  # nested, as in chat completions
        inner, pointer = _get(outer, "grammar", Mapping, pointer), f"{pointer}/grammar"
    syntax = _get(inner, "syntax", str, pointer)
    definition = _get(inner, "definition", str, pointer)
    if syntax == "sql":
        return served_queries(definition)
    if syntax not in ("lark", "regex"):
        raise ToolError(f"a grammar's syntax is 'lark', 'regex' or 'sql', not {syntax!r}", pointer=f"{pointer}/syntax")
    if syntax == "lark":
        return Lark(definition)
    if "\n" in definition:
        raise PatternError(r"a pattern is one line; write \n for a line break", column=definition.index("\n") + 1)
    dialect = _get(inner, "dialect", str, pointer, missing="rust")
    if dialect not in get_args(Dialect):
        listed = ", ".join(map(repr, get_args(Dialect)))
        raise ToolError(f"a pattern's dialect is one of {listed}, not {dialect!r:.80}", pointer=f"{pointer}/dialect")
    if dialect == "rust":
        parse_pattern(definition, "rust")  # OpenAI refuses all features that ``Regex`` adds to Rust's syntax
    return Regex(definition, dialect)


_KINDS = {str: "a string", bool: "true or false", Mapping: "an object"}
_REQUIRED: Any = object()


def _get(document: Mapping[str, Any], key: str, kind: Any, pointer: str, missing: Any = _REQUIRED) -> Any:
    """Returns a member of the expected type; null counts as missing if the member may be missing."""
    value = document.get(key)
    if value is None and missing is not _REQUIRED:
        return missing
    if not isinstance(value, kind):
        found = f"is {value!r:.80}" if key in document else "is missing"
        raise ToolError(f"{key!r} {found}; it must be {_KINDS[kind]}", pointer=f"{pointer}/{key}")
    return value


def tool_to_json(tool: Tool, shape: Shape = "chat") -> dict[str, Any]:
    """Returns the JSON description of a tool, for OpenAI's chat completions or responses.

    Args:
        tool: a ``FunctionTool`` or ``CustomTool``.
        shape: ``"chat"`` for chat completions (the description is nested below its type) or ``"responses"``.

    ``strict`` is always written, even if it is false, because OpenAI's endpoints have different defaults. Raises
    ``ToolError`` for a custom tool whose format is neither a ``Lark`` that starts at ``start`` nor a ``Regex`` in
    Rust's syntax, and ``ValueError`` for another shape.
    """
    if shape not in ("chat", "responses"):
        raise ValueError(f"shape is {shape!r}; it must be 'chat' or 'responses'")
    inner: dict[str, Any] = {"name": tool.name}
    if tool.description:
        inner["description"] = tool.description
    if isinstance(tool, FunctionTool):
        kind = "function"
        inner |= {"parameters": json.loads(json.dumps(tool.parameters)), "strict": tool.strict}
    else:
        kind = "custom"
        inner["format"] = _format_to_json(tool, shape)
    return {"type": kind, kind: inner} if shape == "chat" else {"type": kind, **inner}


def _format_to_json(tool: CustomTool, shape: Shape) -> dict[str, Any]:
    if tool.format is None:
        return {"type": "text"}
    if isinstance(tool.format, Lark) and tool.format.start == "start":
        grammar = {"syntax": "lark", "definition": tool.format.text}
    elif isinstance(tool.format, Regex) and tool.format.dialect == "rust":
        grammar = {"syntax": "regex", "definition": tool.format.pattern}
    else:
        raise ToolError(
            f"tool {tool.name!r}: OpenAI's JSON has formats in Lark (from the rule start) and in Rust's regular "
            f"expressions only, not {tool.format!r:.80}"
        )
    return {"type": "grammar", "grammar": grammar} if shape == "chat" else {"type": "grammar", **grammar}
