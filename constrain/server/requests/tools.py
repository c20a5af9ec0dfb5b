"""``tools``, ``tool_choice`` and ``parallel_tool_calls`` of a request, in the forms of both endpoints.

Tools of other types than functions and custom tools run on the servers of others. Nothing can call them here, so they
are left out, with a warning. A namespace is a list of tools; the model calls them ``NAMESPACE.NAME``. Tools whose
loading is deferred can be called like all others, so a search for them on the server finds nothing more; a search by
the client is a function. ``functions`` and ``function_call`` are read as ``tools`` and ``tool_choice``, their
successors.
"""

from __future__ import annotations

import json
import marshal
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from constrain.chat.answers.choice import read_choice
from constrain.chat.tools.checks import ANY_TOOL_NAME, TOOL_NAME, check_schema, checked_before
from constrain.chat.tools.kinds import CustomTool
from constrain.chat.tools.openai import function_from_json, tool_from_json
from constrain.errors import ConstrainError, ToolError
from constrain.fields.values import (
    FieldError,
    array,
    boolean,
    invalid,
    mapping,
    missing,
    one_of,
    optional_text,
    refuse_together,
    required_text,
    wrong_type,
)
from constrain.language.schema_text import document_bytes
from constrain.remembering import MANY, remembered
from constrain.server.http.account import warn
from constrain.server.http.errors import ApiError
from constrain.server.requests.formats import describe_refusals, require_flat, require_strict, text_of_schema
from constrain.server.requests.limits import MARSHALLED, SCHEMA_NESTING
from constrain.server.requests.places import Place, report_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from constrain.chat.tools.kinds import FunctionTool, Tool
    from constrain.generation.options import ChatOptions
    from constrain.server.config import StrictSubset

KINDS = ("function", "custom")
"""Types of the tools that a model can call."""

NAMESPACE = "namespace"
"""Type of a list of tools."""

SEARCH = "tool_search"
"""Type of a search for tools at OpenAI; one that the client carries out is called by this name."""

MESSAGES_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
"""Pattern of names of tools at Anthropic's endpoints."""

MOST_AT_OPENAI = 128
"""Tools that OpenAI takes in one request. A server that checks OpenAI's rules warns of more; all are callable."""

TOOL_BYTES = 40 << 20
"""Bytes of the functions of the latest requests that are remembered, together: 40 MiB, some 1,500 of MCP servers."""

TEXT_BYTES = 8 << 20
"""Bytes of the texts of parameters of the latest requests that are remembered, together: 8 MiB."""

_MODES = ("none", "auto", "required")

_OLD_MODES = ("none", "auto")
"""Modes of ``function_call``."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of a request, all compiled.

    Attributes:
        field: name of the field: ``"tools"`` or ``"functions"``.
        all: tools in the order of the request.
        places: place of each tool's schema or grammar, by its name.
        choice: ``tool_choice`` of the request; None if it has none.
        namespaces: namespace and name of each tool of a namespace, by the name that the model calls.
        outputs: JSON Schema of each function's results, by the name that the model calls, if it has one.
    """

    field: str
    all: tuple[Tool, ...]
    places: Mapping[str, Place]
    choice: Any
    namespaces: Mapping[str, tuple[str, str]]
    outputs: Mapping[str, dict[str, Any]]

    def options(self, *, parallel: bool) -> ChatOptions:
        """Returns the options for the tools. ``parallel``: whether there may be several calls."""
        if not self.all:
            return {}
        found: ChatOptions = {"tools": self.all, "parallel_tool_calls": parallel}
        if self.choice is not None:
            found["tool_choice"] = self.choice
        return found


def name_in(namespace: str | None, name: str) -> str:
    """Returns the name by which the model calls a tool of a namespace, or a tool without one."""
    return f"{namespace}.{name}" if namespace else name


def read_tools(
    body: Mapping[str, Any],
    subset: StrictSubset,
    *,
    is_flat: bool,
    names: re.Pattern[str] = TOOL_NAME,
    more: Iterable[tuple[object, str]] = (),
) -> Tools:
    """Reads the tools of a request and the choice between them. Raises ``ApiError`` or ``FieldError`` with the place.

    Args:
        body: body of the request.
        subset: rules for strict schemas.
        is_flat: whether tools and choices are flat, as in responses, and not nested under their type. Chat completions
            accept both forms.
        names: pattern of the names that tools may have; those in a namespace may have any of ``ANY_TOOL_NAME``.
        more: further lists of tools, with their places; a tool of a name that was listed before is left out.
    """
    found: list[tuple[Tool, Place]] = []
    namespaces: dict[str, tuple[str, str]] = {}
    outputs: dict[str, dict[str, Any]] = {}
    kinds: list[str] = []
    known: set[str] = set()
    for given, field in (([] if body.get("tools") is None else body["tools"], "tools"), *more):
        for outer, place in _entries(array(given, field), field):
            kinds.append(outer["type"])
            inside, entries, allowed = None, iter([(outer, place)]), names
            if outer["type"] == NAMESPACE:
                inside, allowed = required_text(outer, "name", f"{place}."), ANY_TOOL_NAME
                entries = _entries(array(outer.get("tools"), f"{place}.tools"), f"{place}.tools")
            for each in entries:
                for tool, where in _read_entry(*each, subset, is_flat=is_flat, names=allowed, namespace=inside):
                    if field == "tools" or tool.name not in known:
                        found.append((tool, where))
                        if isinstance(output := each[0].get("output_schema"), dict):
                            outputs[tool.name] = output
                        if inside is not None:
                            namespaces[tool.name] = inside, tool.name.removeprefix(name_in(inside, ""))
                    known.add(tool.name)
    places, tools = places_of(found, "tools"), tuple(tool for tool, _ in found)
    _warn_of_many(tools, subset)
    choice = read_tool_choice(body.get("tool_choice"), tools, is_flat=is_flat, namespaces=namespaces, kinds=kinds)
    return Tools("tools", tools, places, choice, namespaces, outputs)


def _warn_of_many(tools: Sequence[Tool], subset: StrictSubset) -> None:
    """Warns of more tools than OpenAI takes, where its rules are checked."""
    if subset == "openai" and len(tools) > MOST_AT_OPENAI:
        warn(f"The request has {len(tools)} tools; OpenAI takes at most {MOST_AT_OPENAI}.")


def _entries(given: Sequence[object], field: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the objects of a list, each of which has a type, and their places. Raises ``FieldError``."""
    for index, each in enumerate(given):
        place = f"{field}[{index}]"
        document = mapping(each, place)
        if optional_text(document, "type", f"{place}.") is None:
            raise missing(f"{place}.type")
        yield document, place


def _read_entry(
    outer: Mapping[str, Any],
    place: str,
    subset: StrictSubset,
    *,
    is_flat: bool,
    names: re.Pattern[str],
    namespace: str | None,
) -> list[tuple[Tool, Place]]:
    """Returns the tool of an entry with its place; nothing if the model cannot call it."""
    kind = outer["type"]
    if kind == SEARCH and is_flat:
        if not is_client_search(outer):
            return []
        kind, outer = "function", {**outer, "name": SEARCH}
    if kind not in KINDS:
        warn_of_hosted(kind)
        return []
    inner = outer
    if kind in outer and not is_flat:
        place = f"{place}.{kind}"
        inner = mapping(outer[kind], place)
    if namespace is not None:
        inner = {**inner, "name": name_in(namespace, required_text(inner, "name", f"{place}."))}
    if is_only_for_code(inner, place):
        return []
    return [read_tool(kind, inner, place, subset, names=names)]


def is_client_search(entry: Mapping[str, Any]) -> bool:
    """Returns whether an entry of ``tools`` is a search for tools that the client carries out."""
    return entry["type"] == SEARCH and entry.get("execution") == "client"


def is_only_for_code(tool: Mapping[str, Any], place: str) -> bool:
    """Returns whether a tool cannot be called by the model, but only by its code, and warns that it is left out."""
    callers = tool.get("allowed_callers")
    if callers is None or "direct" in array(callers, f"{place}.allowed_callers"):
        return False
    name = required_text(tool, "name", f"{place}.")
    warn(f"The tool '{name:.128}' is left out: its 'allowed_callers' do not name 'direct'.")
    return True


def warn_of_hosted(kind: str) -> None:
    """Warns that the tools of a type are left out."""
    warn(_left_out(kind))


def _left_out(kind: str) -> str:
    return f"Tools of the type '{kind:.80}' are left out: this server does not run them, so the model cannot call them."


def name_hosted(kinds: Iterable[str]) -> str:
    """Returns sentences, each after a space, about the tools that are left out: why a choice finds too few.

    ``kinds``: types of all tools of the request.
    """
    return "".join(f" {_left_out(kind)}" for kind in dict.fromkeys(kinds) if kind not in (*KINDS, NAMESPACE, SEARCH))


def omitted(kind: str) -> str:
    """Returns the text in place of a content that is no text, in the result of a call, and warns of it.

    ``kind``: type of the content, such as ``"image"``.
    """
    text = f"[{kind:.80} omitted]"
    warn(f"The model reads '{text}' in a result: it reads text only.")
    return text


def read_tool(
    kind: str,
    inner: Mapping[str, Any],
    where: str,
    subset: StrictSubset,
    schema_field: str = "parameters",
    names: re.Pattern[str] = TOOL_NAME,
) -> tuple[Tool, Place]:
    """Returns a compiled tool, and the place of its schema or grammar. Raises ``ApiError`` or ``FieldError``.

    Args:
        kind: type of the tool: one of ``KINDS``.
        inner: object with the tool's definition.
        where: place of the object.
        subset: rules for strict schemas.
        schema_field: the request's name of the member ``parameters``.
        names: pattern of the names that the tool may have.
    """
    name = required_text(inner, "name", f"{where}.")
    if not names.fullmatch(name):
        problem = f"no tool can be called {name!r:.300}; its name must match '^{names.pattern}$'."
        raise invalid(f"{where}.name", problem)
    text = None  # the parameters, if they are an object; ``function_from_json`` refuses other values
    if kind == "custom":
        place = Place(f"{where}.format", "invalid_grammar", f"grammar of the tool '{name:.64}'")
        report_place(place)
    else:
        place = Place(f"{where}.{schema_field}", "invalid_function_parameters", f"schema for function '{name:.64}'")
        report_place(place)
        if isinstance(inner.get("parameters"), dict):
            text = _text_of(marshal.dumps(inner["parameters"], MARSHALLED))
            if text.count("{") + text.count("[") > SCHEMA_NESTING:  # few schemas have so many, and fewer are so deep
                require_flat(inner["parameters"], place)
        if boolean(inner, "strict", f"{where}.") and text is not None:
            require_strict(text, name, "function", subset, place)
    description = inner.get("description")
    try:
        if text is not None and isinstance(description, str | None):
            tool = _function(name, description, text)
            check_schema(name, text)
            return tool, place
        # The server has checked the rules of strict mode already.
        members = {key: value for key, value in inner.items() if key not in (kind, "strict")}
        if kind == "function":
            return function_from_json(members), place
        return tool_from_json({**members, "type": kind}), place
    except ToolError as error:
        param = where + (error.pointer or "").replace("/", ".")
        raise invalid(param, error.message) from error
    except ConstrainError as error:
        if kind == "custom":
            message = f"Invalid grammar: {error}"
        else:
            message = f"Invalid {place.name}: {describe_refusals(text or '{}', error)}"
        raise ApiError(message, param=place.param, code=place.code) from error


@remembered(MANY, TEXT_BYTES, lambda spelled: 200 + 4 * len(spelled))
def _text_of(spelled: bytes) -> str:
    """Returns the text of parameters, which ``marshal`` spells in a quarter of the time of JSON."""
    return text_of_schema(marshal.loads(spelled))  # noqa: S302 - spelled by this process


def _function_bytes(_: str, description: str | None, text: str) -> int:
    return 2 * document_bytes(text) + len(description or "")


@remembered(MANY, TOOL_BYTES, _function_bytes)
def _function(name: str, description: str | None, text: str) -> FunctionTool:
    """Returns a function whose parameters are not checked, as most requests of a conversation have the same ones."""
    with checked_before():
        return function_from_json({"name": name, "description": description}, text=text)


def places_of(found: Sequence[tuple[Tool, Place]], field: str) -> dict[str, Place]:
    """Returns the places of tools by their names. Raises ``ApiError`` if two tools have the same name."""
    places: dict[str, Place] = {}
    for index, (tool, place) in enumerate(found):
        if tool.name in places:
            raise invalid(f"{field}[{index}]", f"another tool is called '{tool.name}', too.")
        places[tool.name] = place
    return places


def read_tool_choice(
    given: object,
    tools: Sequence[Tool],
    field: str = "tool_choice",
    *,
    modes: Sequence[str] = _MODES,
    is_flat: bool = False,
    namespaces: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    kinds: Iterable[str] = (),
) -> Any:
    """Returns the checked ``tool_choice``; Mistral's ``"any"`` is ``"required"``.

    ``namespaces``: namespace and name of each tool of a namespace, by the name that the model calls. ``kinds``: types
    of all tools of the request (see ``name_hosted``).

    Raises ``ApiError`` or ``FieldError``.
    """
    if given is None:
        return None
    if given == "any" and "required" in modes:
        given = "required"
    if isinstance(given, str):
        named = next((tool for tool in tools if tool.name == given), None)
        if named and given not in modes:
            written = json.dumps(_choice_of(named, field, is_flat=is_flat))
            message = f"Invalid value for '{field}': '{given}' is the name of a tool; write it as {written}."
            raise FieldError(message, param=field)
        one_of(given, modes, field)
    elif not isinstance(given, dict):
        raise wrong_type(field, "a string or an object", given)
    else:
        if is_flat:
            _require_flat_choice(given, field)
        given = _callable_choice(given, tools, field, namespaces)
    try:
        read_choice(given, tools, field)
    except ValueError as error:
        raise FieldError(f"Invalid value for '{field}': {error}.{name_hosted(kinds)}", param=field) from error
    return given


def _choice_of(tool: Tool, field: str, *, is_flat: bool) -> dict[str, Any]:
    """Returns the object that has a tool called."""
    kind, name = "custom" if isinstance(tool, CustomTool) else "function", {"name": tool.name}
    if field == "function_call":
        return name
    return {"type": kind, **name} if is_flat else {"type": kind, kind: name}


def _callable_choice(
    given: dict[str, Any], tools: Sequence[Tool], field: str, namespaces: Mapping[str, tuple[str, str]]
) -> Any:
    """Returns a choice among the tools that the model can call, by their full names. Raises ``FieldError``."""
    if given.get("type") != "allowed_tools":
        return _with_full_name(given)
    nested = given.get("allowed_tools")
    inner = nested if isinstance(nested, dict) else given
    listed = inner.get("tools")
    if not isinstance(listed, list) or not listed:
        return given  # ``read_choice`` refuses it
    kept: list[Any] = []
    for each in listed:
        kind = each.get("type") if isinstance(each, dict) else None
        if kind == NAMESPACE:
            name = required_text(each, "name", f"{field}.tools.")
            kept += [
                {"type": "custom" if isinstance(tool, CustomTool) else "function", "name": tool.name}
                for tool in tools
                if namespaces.get(tool.name, ("",))[0] == name
            ]
        elif kind == SEARCH:
            kept += [{"type": "function", "name": tool.name} for tool in tools if tool.name == SEARCH]
        elif isinstance(kind, str) and kind not in KINDS:
            warn_of_hosted(kind)
        else:
            kept.append(_with_full_name(each) if isinstance(each, dict) else each)
    if not kept and inner.get("mode", "auto") == "auto":
        return "none"
    return {"type": "allowed_tools", "mode": inner.get("mode", "auto"), "tools": kept}


def _with_full_name(given: dict[str, Any]) -> dict[str, Any]:
    """Returns an object that names a tool, with the name by which the model calls it."""
    namespace, name = given.get("namespace"), given.get("name")
    if isinstance(namespace, str) and isinstance(name, str):
        return {**given, "name": name_in(namespace, name)}
    return given


def _require_flat_choice(given: dict[str, Any], field: str) -> None:
    """Raises ``FieldError`` for a choice in the nested form of chat completions, and for a hosted tool."""
    kind = one_of(given.get("type"), (*KINDS, "allowed_tools"), f"{field}.type")
    if kind != "allowed_tools":
        required_text(given, "name", f"{field}.")
        return
    one_of(given.get("mode"), ("auto", "required"), f"{field}.mode")
    for entry, place in _entries(array(given.get("tools"), f"{field}.tools"), f"{field}.tools"):
        if entry["type"] in (*KINDS, NAMESPACE):
            required_text(entry, "name", f"{place}.")


def uses_functions(body: Mapping[str, Any]) -> bool:
    """Returns whether a request has functions instead of tools. Raises ``FieldError`` if it has both."""
    found = {name: body.get(name) is not None for name in ("functions", "function_call")}
    refuse_together(**found, **{name: body.get(name) not in (None, []) for name in ("tools", "tool_choice")})
    return any(found.values())


def read_functions(body: Mapping[str, Any], subset: StrictSubset) -> Tools:
    """Reads the functions of a request as compiled tools, and the choice between them. Raises ``FieldError``."""
    given = body.get("functions")
    found: list[tuple[Tool, Place]] = []
    for index, function in enumerate([] if given is None else array(given, "functions")):
        place = f"functions[{index}]"
        found.append(read_tool("function", mapping(function, place), place, subset))
    places, tools = places_of(found, "functions"), tuple(tool for tool, _ in found)
    _warn_of_many(tools, subset)
    choice = body.get("function_call")
    if isinstance(choice, dict):
        choice = {"type": "function", "function": {"name": choice.get("name")}}
    choice = read_tool_choice(choice, tools, "function_call", modes=_OLD_MODES)
    return Tools("functions", tools, places, choice, {}, {})
