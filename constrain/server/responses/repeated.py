"""Fields of a request that its response repeats, in the shapes of OpenAI's own types. They have been checked before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openai.types.shared import Reasoning
from pydantic import ValidationError

from constrain.chat.tools.openai import tool_to_json
from constrain.llama.decoding.sampler import Sampling
from constrain.server.requests.fields import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.options import ChatOptions
    from constrain.server.requests.tools import Tools


def repeated_sampling(options: ChatOptions) -> dict[str, Any]:
    """How the response is sampled, with the defaults where the request says nothing."""
    defaults = Sampling()
    return {
        "temperature": options.get("temperature", defaults.temperature),
        "top_logprobs": options.get("top_logprobs", 0),
        "top_p": options.get("top_p", defaults.top_p),
    }


def repeated_tools(tools: Tools, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """``tools``, each with all its members."""
    found = []
    for tool, document in zip(tools.all, body.get("tools") or (), strict=True):
        shown = tool_to_json(tool, "responses")
        found.append({**shown, "strict": bool(document.get("strict"))} if "strict" in shown else shown)
    return found


def repeated_text(body: Mapping[str, Any]) -> dict[str, Any]:
    """``text``: the format and the verbosity."""
    given = body.get("text") or {}
    verbosity = given.get("verbosity")
    return {
        "format": _repeated_format(given.get("format") or {"type": "text"}),
        "verbosity": verbosity if verbosity in ("low", "medium", "high") else "medium",
    }


def repeated_reasoning(body: Mapping[str, Any]) -> dict[str, Any]:
    """``reasoning`` as far as OpenAI's own type knows it. How much a model reasons is not for a request to say.

    Raises ``ApiError`` for one that is no object.
    """
    given = body.get("reasoning")
    known = {"effort": None, "summary": None}
    if given is None:
        return known
    asked = mapping(given, "reasoning")
    try:
        return known | Reasoning.model_validate({key: asked.get(key) for key in known}).to_dict()
    except ValidationError:
        return known


def _repeated_format(given: Mapping[str, Any]) -> dict[str, Any]:
    """A format with the members that its type has."""
    kind = given["type"]
    if kind == "json_schema":
        found = {"type": kind, "name": given["name"], "schema": given["schema"], "strict": bool(given.get("strict"))}
        return found if given.get("description") is None else {**found, "description": given["description"]}
    if kind == "json_object" and given.get("schema") is not None:
        return {"type": kind, "schema": given["schema"]}
    return {"type": kind}
