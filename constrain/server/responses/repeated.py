"""Fields of a request that its response repeats, in the forms of OpenAI's types. They were checked before."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from openai.types.shared import Reasoning
from pydantic import ValidationError

from constrain.chat.tools.kinds import CustomTool
from constrain.generation.options import MODELS_OWN
from constrain.llama.decoding.sampler import Sampling
from constrain.server.requests.formats import TEXT_FORMAT, find_schema
from constrain.server.requests.tools import KINDS, NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from constrain.chat.tools.kinds import Tool
    from constrain.generation.options import ChatOptions
    from constrain.server.requests.tools import Tools


def repeat_sampling(options: ChatOptions) -> dict[str, Any]:
    """Returns the options for sampling but the temperature, with defaults for missing ones."""
    defaults = asdict(Sampling()) | (MODELS_OWN if options.get("unbias") else {})
    return {
        "top_logprobs": options.get("top_logprobs", 0),
        "top_p": options.get("top_p", defaults["top_p"]),
    }


def repeat_tools(tools: Tools, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns ``tools``, each with all its members, without those that were left out."""
    made = iter(tools.all)
    return [_repeat_tool(each, made) for each in body.get("tools") or () if each["type"] in (*KINDS, NAMESPACE)]


def _repeat_tool(document: Mapping[str, Any], made: Iterator[Tool]) -> dict[str, Any]:
    if document["type"] == NAMESPACE:
        inner = [_repeat_tool(each, made) for each in document["tools"] if each["type"] in KINDS]
        named = {"name": document["name"], "description": str(document.get("description") or "")}
        return {"type": NAMESPACE, **named, "tools": inner}
    tool = next(made)
    shown = {"type": document["type"], "name": document["name"]}
    if tool.description:
        shown["description"] = tool.description
    if isinstance(tool, CustomTool):
        return {**shown, "format": document.get("format") or {"type": "text"}}
    return {**shown, "parameters": tool.parameters, "strict": bool(document.get("strict"))}


def repeat_text(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns ``text``: the format and the verbosity."""
    verbosity = given.get("verbosity")
    return {
        "format": _repeated_format(given.get("format") or {"type": "text"}),
        "verbosity": verbosity if verbosity in ("low", "medium", "high") else "medium",
    }


def repeat_reasoning(given: object) -> dict[str, Any]:
    """Returns the members of ``reasoning`` that OpenAI's type knows."""
    known = {name: getattr(given, name, None) for name in ("effort", "summary")}
    try:
        return known | Reasoning.model_validate(known).to_dict()
    except ValidationError:
        return dict.fromkeys(known)


def _repeated_format(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a format with the members of its type; a format that OpenAI's types do not know is text there."""
    kind = given["type"]
    if kind == "json_schema":
        named, _, schema = find_schema(given, TEXT_FORMAT)
        found = {
            "type": kind,
            "name": named.get("name") or "",
            "schema": schema,
            "strict": named.get("strict") is True,
        }
        return found if named.get("description") is None else {**found, "description": named["description"]}
    if kind in ("json_object", "json"):
        schemas = [given[name] for name in ("schema", "value") if given.get(name) is not None]
        return {"type": "json_object", **({"schema": schemas[0]} if schemas else {})}
    return {"type": "text"}
