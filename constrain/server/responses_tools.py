"""Tools, the choice between them and the format of the text, as requests for responses write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain._errors import ConstrainError, GrammarError, PatternError, SchemaError, ToolError
from constrain.chat.choice import read_choice
from constrain.chat.openai import tool_from_json, tool_to_json
from constrain.chat.tools import CustomTool
from constrain.json_schema.strict import check_strict
from constrain.server.errors import ApiError
from constrain.server.fields import array, boolean, mapping, missing, wrong_type
from constrain.server.responses_input import one_of, optional_text, required_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.chat.tools import Tool
    from constrain.server.settings import StrictSubset

_FORMAT_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_FORMATS = ("text", "json_object", "json_schema")
_MODES = ("none", "auto", "required")


@dataclass(frozen=True, slots=True)
class TextFormat:
    """``schema``: what the text must match, None for any text; ``document``: the format as a response repeats it."""

    schema: dict[str, Any] | None
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RequestedTools:
    """``documents``: the tools as a response repeats them."""

    tools: tuple[Tool, ...]
    documents: tuple[dict[str, Any], ...]

    @property
    def custom(self) -> frozenset[str]:
        """The names of those that take a text."""
        return frozenset(tool.name for tool in self.tools if isinstance(tool, CustomTool))


def read_format(text: object, subset: StrictSubset) -> TextFormat:
    """What the field ``text`` says of the format. Raises ``ApiError``."""
    given = None if text is None else mapping(text, "text").get("format")
    if given is None:
        return TextFormat(None, {"type": "text"})
    form = mapping(given, "text.format")
    kind = one_of(form.get("type"), _FORMATS, "text.format.type")
    if kind != "json_schema":
        return TextFormat({"type": "object"} if kind == "json_object" else None, {"type": kind})
    name = required_text(form, "name", "text.format.")
    if not _FORMAT_NAME.fullmatch(name):
        raise ApiError(
            f"Invalid 'text.format.name': {name!r:.80}. A name has 1 to 64 letters (a to z), digits, _ and -.",
            param="text.format.name",
            code="invalid_value",
        )
    if form.get("schema") is None:
        raise missing("text.format.schema")
    schema = mapping(form["schema"], "text.format.schema")
    strict = boolean(form, "strict", "text.format.") or False
    document: dict[str, Any] = {"type": kind, "name": name, "schema": schema, "strict": strict}
    if (description := optional_text(form, "description", "text.format.")) is not None:
        document["description"] = description
    if strict and subset != "off":
        _require_strict(schema, name, "response_format", subset, "text.format.schema", "invalid_json_schema")
    return TextFormat(schema, document)


def format_error(error: ConstrainError, format_name: str) -> ApiError:
    """The error for a schema of ``text.format`` that cannot be compiled."""
    return ApiError(
        f"Invalid schema for response_format '{format_name}': {error}",
        param="text.format.schema",
        code="invalid_json_schema",
    )


def read_tools(given: object, subset: StrictSubset) -> RequestedTools:
    """The tools of the field ``tools``. Raises ``ApiError`` for the first that cannot be used."""
    documents = [] if given is None else array(given, "tools")
    read = [_tool(mapping(document, f"tools[{index}]"), index, subset) for index, document in enumerate(documents)]
    tools, repeated = tuple(tool for tool, _ in read), tuple(document for _, document in read)
    names = [tool.name for tool in tools]
    for index, name in enumerate(names):
        if name in names[:index]:
            place = f"tools[{index}].name"
            raise ApiError(f"Invalid '{place}': two tools are called '{name}'.", param=place, code="invalid_value")
    return RequestedTools(tools, repeated)


def _tool(document: Mapping[str, Any], index: int, subset: StrictSubset) -> tuple[Tool, dict[str, Any]]:
    place = f"tools[{index}]"
    kind = one_of(document.get("type"), ("function", "custom"), f"{place}.type")
    name = required_text(document, "name", f"{place}.")
    strict = boolean(document, "strict", f"{place}.") or False
    parameters = document.get("parameters")
    if kind == "function" and strict and parameters is not None and subset != "off":
        schema = mapping(parameters, f"{place}.parameters")
        _require_strict(schema, name, "function", subset, f"{place}.parameters", "invalid_function_parameters")
    try:
        tool = tool_from_json({**{key: value for key, value in document.items() if key != kind}, "strict": False})
        return tool, tool_to_json(tool, "responses") | ({"strict": strict} if kind == "function" else {})
    except ToolError as error:
        param = place + (error.pointer or "").replace("/", ".")
        raise ApiError(f"Invalid '{param}': {error.message}", param=param, code="invalid_value") from error
    except ConstrainError as error:
        if kind == "function":
            param, what, code = f"{place}.parameters", f"schema for function '{name}'", "invalid_function_parameters"
        else:
            param, what, code = f"{place}.format", f"grammar for tool '{name}'", "invalid_grammar"
        raise ApiError(f"Invalid {what}: {error}", param=param, code=code) from error


def _require_strict(schema: dict[str, Any], name: str, kind: Any, subset: Any, param: str, code: str) -> None:
    try:
        violations = check_strict(schema, name=name, kind=kind, subset=subset)
    except ConstrainError as error:
        raise ApiError(f"Invalid schema for {kind} '{name}': {error}", param=param, code=code) from error
    if violations:
        raise ApiError("\n".join(map(str, violations)), param=param, code=code)


def read_tool_choice(given: object, tools: Sequence[Tool]) -> Any:
    """The field ``tool_choice``, as this library and a response take it. Raises ``ApiError``."""
    if given is None:
        return "auto"
    if isinstance(given, str):
        one_of(given, _MODES, "tool_choice")
    elif isinstance(given, dict):
        _check_choice(given)
    else:
        raise wrong_type("tool_choice", "a string or an object", given)
    try:
        read_choice(given, tools)
    except ValueError as error:
        raise ApiError(f"Invalid 'tool_choice': {error}", param="tool_choice", code="invalid_value") from error
    return given


def _check_choice(given: Mapping[str, Any]) -> None:
    """Raises ``ApiError`` for a choice in the nested shape of chat completions, and for entries that are no tools."""
    kind = one_of(given.get("type"), ("function", "custom", "allowed_tools"), "tool_choice.type")
    if kind != "allowed_tools":
        required_text(given, "name", "tool_choice.")
        return
    one_of(given.get("mode"), ("auto", "required"), "tool_choice.mode")
    for index, entry in enumerate(array(given.get("tools"), "tool_choice.tools")):
        place = f"tool_choice.tools[{index}]"
        one_of(mapping(entry, place).get("type"), ("function", "custom"), f"{place}.type")
        required_text(entry, "name", f"{place}.")


def compile_error(error: ConstrainError, text_format: TextFormat) -> ApiError:
    """The error for an answer that cannot be compiled: by now, tools and messages have been checked.

    A schema of ``text.format`` is read for the first time then; grammars may turn out not to fit into the form in which
    the model writes its calls.
    """
    if isinstance(error, GrammarError | PatternError) and not isinstance(error, SchemaError):
        return ApiError(f"Invalid grammar: {error}", param="tools", code="invalid_grammar")
    return format_error(error, text_format.document.get("name", text_format.document["type"]))
