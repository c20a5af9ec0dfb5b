"""Tools, the choice between them and the format of the text, as requests for responses write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.chat.tools.kinds import CustomTool
from constrain.chat.tools.openai import tool_to_json
from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import array, boolean, mapping, missing
from constrain.server.requests.formats import Format, object_schema, require_flat, strict_complaint
from constrain.server.requests.places import Place, come_to
from constrain.server.requests.refusals import refuse_beside
from constrain.server.requests.tools import MAX_TOOLS, read_tool_choice, read_tools
from constrain.server.responses.input import one_of, optional_text, required_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.chat.tools.kinds import Tool
    from constrain.server.settings import StrictSubset

_FORMAT_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_READ = {"text": (), "json_object": ("schema",), "json_schema": ("schema", "strict")}
"""The types of a format, and what a format of each has beside it."""


@dataclass(frozen=True, slots=True)
class TextFormat:
    """``schema``: what the text must match, None for any text; ``document``: the format as a response repeats it."""

    schema: dict[str, Any] | None
    document: dict[str, Any]

    @property
    def content(self) -> Format | None:
        """The same as the content of an answer."""
        return None if self.schema is None else Format(self.schema, self.document.get("name", ""))


@dataclass(frozen=True, slots=True)
class RequestedTools:
    """``choice`` and ``documents``: the choice and the tools as a response repeats them."""

    tools: tuple[Tool, ...]
    choice: Any
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
    kind = one_of(form.get("type"), tuple(_READ), "text.format.type")
    refuse_beside(form, "text.format", kind, _READ[kind])
    if kind == "text":
        return TextFormat(None, {"type": kind})
    if kind == "json_object":
        at = Place("text.format.schema", "invalid_json_schema", "schema for response_format")
        schema = object_schema(form, "text.format", at)
        return TextFormat(schema, {"type": kind, **({} if form.get("schema") is None else {"schema": form["schema"]})})
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
    at = Place("text.format.schema", "invalid_json_schema", f"schema for response_format '{name}'")
    require_flat(schema, at)
    come_to(at)
    if strict and (complaint := strict_complaint(schema, name, "response_format", subset)):
        raise ApiError(complaint, param="text.format.schema", code="invalid_json_schema")
    return TextFormat(schema, document)


def read_requested_tools(given: object, choice: object, subset: StrictSubset) -> RequestedTools:
    """The tools and which of them may be called. Raises ``ApiError``, also for the nested shape of chat completions."""
    documents = [] if given is None else array(given, "tools", MAX_TOOLS)
    for index, document in enumerate(documents):
        place = f"tools[{index}]"
        one_of(mapping(document, place).get("type"), ("function", "custom"), f"{place}.type")
        required_text(document, "name", f"{place}.")
    tools = read_tools(documents, subset)
    if isinstance(choice, dict):
        _check_choice(choice)
    read_tool_choice(choice, tools)
    repeated = tuple(_repeated(tool, document) for tool, document in zip(tools, documents, strict=True))
    return RequestedTools(tools, "auto" if choice is None else choice, repeated)


def _repeated(tool: Tool, document: dict[str, Any]) -> dict[str, Any]:
    shown = tool_to_json(tool, "responses")
    return {**shown, "strict": bool(document.get("strict"))} if "strict" in shown else shown


def _check_choice(given: dict[str, Any]) -> None:
    """Raises ``ApiError`` for a choice in the nested shape of chat completions, and for entries that are no tools."""
    kind = one_of(given.get("type"), ("function", "custom", "allowed_tools"), "tool_choice.type")
    if kind != "allowed_tools":
        required_text(given, "name", "tool_choice.")
        return
    one_of(given.get("mode"), ("auto", "required"), "tool_choice.mode")
    entries: Sequence[object] = array(given.get("tools"), "tool_choice.tools")
    for index, entry in enumerate(entries):
        place = f"tool_choice.tools[{index}]"
        document = mapping(entry, place)
        one_of(document.get("type"), ("function", "custom"), f"{place}.type")
        required_text(document, "name", f"{place}.")
