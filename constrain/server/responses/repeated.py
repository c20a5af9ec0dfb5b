"""Fields of a request that its response repeats, in the forms of OpenAI's types. They were checked before."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from openai.types.shared import Reasoning
from pydantic import ValidationError

from constrain.chat.tools.kinds import CustomTool
from constrain.generation.options import MODELS_OWN
from constrain.llama.decoding.sampler import Sampling
from constrain.queries.source import Sql
from constrain.server.requests.formats import TEXT_FORMAT, find_schema
from constrain.server.requests.tools import KINDS, NAMESPACE, SEARCH, is_client_search, name_in

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    made = {tool.name: tool for tool in tools.all}
    found = (_repeat_tool(each, made, None) for each in body.get("tools") or ())
    return [each for each in found if each is not None]


def _repeat_tool(document: Mapping[str, Any], made: Mapping[str, Tool], namespace: str | None) -> dict[str, Any] | None:
    kind, named = document["type"], document.get("name")
    if kind == NAMESPACE:
        inner = (_repeat_tool(each, made, named) for each in document["tools"])
        about = {"name": named, "description": str(document.get("description") or "")}
        return {"type": NAMESPACE, **about, "tools": [each for each in inner if each is not None]}
    if kind == SEARCH:
        shown = {"type": kind, "execution": "client" if is_client_search(document) else "server"}
        described = document.get("description")
        shown |= {"description": described} if isinstance(described, str) else {}
        return shown | ({"parameters": document["parameters"]} if "parameters" in document else {})
    tool = made.get(name_in(namespace, named)) if kind in KINDS and named else None
    if tool is None:
        return None
    shown = {"type": kind, "name": named}
    if tool.description:
        shown["description"] = tool.description
    if isinstance(document.get("defer_loading"), bool):
        shown["defer_loading"] = document["defer_loading"]
    if isinstance(tool, CustomTool):
        is_known = document.get("format") and not isinstance(tool.format, Sql)
        form: dict[str, Any] = document["format"] if is_known else {"type": "text"}
        # A grammar may be nested, as in chat completions.
        return {**shown, "format": {"type": form["type"], **form["grammar"]} if "grammar" in form else form}
    if isinstance(document.get("output_schema"), dict):
        shown["output_schema"] = document["output_schema"]
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
