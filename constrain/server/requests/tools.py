"""``tools``, ``tool_choice`` and ``parallel_tool_calls`` of a request, in the forms of both endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.chat.answers.choice import read_choice
from constrain.chat.tools.openai import function_from_json, tool_from_json
from constrain.errors import ConstrainError, ToolError
from constrain.fields.values import array, boolean, kind_of, mapping, one_of, required_text, wrong_type
from constrain.server.http.errors import ApiError
from constrain.server.requests.formats import describe_refusals, require_flat, require_strict, text_of_schema
from constrain.server.requests.limits import MAX_TOOLS
from constrain.server.requests.places import Place, report_place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.chat.tools.kinds import Tool
    from constrain.generation.options import ChatOptions
    from constrain.server.settings import StrictSubset

_KINDS = ("function", "custom")
_MODES = ("none", "auto", "required")


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of a request, all compiled.

    Attributes:
        field: name of the field: ``"tools"`` or ``"functions"``.
        all: tools in the order of the request.
        places: place of each tool's schema or grammar, by its name.
        choice: ``tool_choice`` of the request; None if it has none.
    """

    field: str
    all: tuple[Tool, ...]
    places: Mapping[str, Place]
    choice: Any

    def options(self, *, parallel: bool) -> ChatOptions:
        """Returns the options for the tools. ``parallel``: whether there may be several calls."""
        if not self.all:
            return {}
        found: ChatOptions = {"tools": self.all, "parallel_tool_calls": parallel}
        if self.choice is not None:
            found["tool_choice"] = self.choice
        return found


def read_tools(body: Mapping[str, Any], subset: StrictSubset, *, is_flat: bool) -> Tools:
    """Reads the tools of a request and the choice between them. Raises ``ApiError`` or ``FieldError`` with the place.

    ``is_flat``: whether tools and choices are flat, as in responses, and not nested under their type. Chat completions
    accept both forms.
    """
    given = body.get("tools")
    found: list[tuple[Tool, Place]] = []
    for index, document in enumerate([] if given is None else array(given, "tools", MAX_TOOLS)):
        place = f"tools[{index}]"
        outer = mapping(document, place)
        kind = kind_of(outer, _KINDS, place)
        inner, where = outer, place
        if kind in outer and not is_flat:
            where = f"{place}.{kind}"
            inner = mapping(outer[kind], where)
        found.append(read_tool(kind, inner, where, subset))
    places, tools = places_of(found, "tools"), tuple(tool for tool, _ in found)
    return Tools("tools", tools, places, read_tool_choice(body.get("tool_choice"), tools, is_flat=is_flat))


def read_tool(
    kind: str, inner: Mapping[str, Any], where: str, subset: StrictSubset, schema_field: str = "parameters"
) -> tuple[Tool, Place]:
    """Returns a compiled tool, and the place of its schema or grammar.

    ``inner``: object with the tool's definition, at the place ``where``; ``schema_field``: the request's name of its
    member ``parameters``. Raises ``ApiError`` or ``FieldError``.
    """
    name = required_text(inner, "name", f"{where}.")
    if kind == "custom":
        place = Place(f"{where}.format", "invalid_grammar", f"grammar of the tool '{name:.64}'")
    else:
        place = Place(f"{where}.{schema_field}", "invalid_function_parameters", f"schema for function '{name:.64}'")
        require_flat(inner.get("parameters"), place)
    report_place(place)
    text = None  # the parameters, if they are an object; ``function_from_json`` refuses other values
    if kind == "function":
        if isinstance(inner.get("parameters"), dict):
            text = text_of_schema(inner["parameters"])
        if boolean(inner, "strict", f"{where}.") and text is not None:
            require_strict(text, name, "function", subset, place)
    # The server has checked the rules of strict mode already.
    members = {key: value for key, value in inner.items() if key not in (kind, "strict")}
    try:
        if kind == "function":
            return function_from_json(members, text=text), place
        return tool_from_json({**members, "type": kind}), place
    except ToolError as error:
        param = where + (error.pointer or "").replace("/", ".")
        raise ApiError(f"Invalid '{param}': {error.message}", param=param, code="invalid_value") from error
    except ConstrainError as error:
        if kind == "custom":
            message = f"Invalid grammar: {error}"
        else:
            message = f"Invalid {place.name}: {describe_refusals(text or '{}', error)}"
        raise ApiError(message, param=place.param, code=place.code) from error


def places_of(found: Sequence[tuple[Tool, Place]], field: str) -> dict[str, Place]:
    """Returns the places of tools by their names. Raises ``ApiError`` if two tools have the same name."""
    places: dict[str, Place] = {}
    for index, (tool, place) in enumerate(found):
        if tool.name in places:
            raise ApiError(
                f"Invalid '{field}[{index}]': another tool is called '{tool.name}', too.",
                param=f"{field}[{index}]",
                code="invalid_value",
            )
        places[tool.name] = place
    return places


def read_tool_choice(
    given: object,
    tools: Sequence[Tool],
    field: str = "tool_choice",
    *,
    modes: Sequence[str] = _MODES,
    is_flat: bool = False,
) -> Any:
    """Returns the checked ``tool_choice``; Mistral's ``"any"`` is ``"required"``.

    Raises ``ApiError`` or ``FieldError``.
    """
    if given is None:
        return None
    if given == "any" and "required" in modes:
        given = "required"
    if isinstance(given, str):
        one_of(given, modes, field)
    elif not isinstance(given, dict):
        raise wrong_type(field, "a string or an object", given)
    elif is_flat:
        _require_flat_choice(given, field)
    try:
        read_choice(given, tools, field)
    except ValueError as error:
        raise ApiError(f"Invalid value for '{field}': {error}", param=field, code="invalid_value") from error
    return given


def _require_flat_choice(given: dict[str, Any], field: str) -> None:
    """Raises ``FieldError`` for a choice in the nested form of chat completions, and for entries that are not tools."""
    kind = one_of(given.get("type"), (*_KINDS, "allowed_tools"), f"{field}.type")
    if kind != "allowed_tools":
        required_text(given, "name", f"{field}.")
        return
    one_of(given.get("mode"), ("auto", "required"), f"{field}.mode")
    entries: Sequence[object] = array(given.get("tools"), f"{field}.tools")
    for index, entry in enumerate(entries):
        place = f"{field}.tools[{index}]"
        document = mapping(entry, place)
        one_of(document.get("type"), _KINDS, f"{place}.type")
        required_text(document, "name", f"{place}.")
