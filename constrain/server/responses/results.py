"""Results of calls, compared with the ``output_schema`` of their tools: a wrong one is named in a warning."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from constrain.server.http.account import warn
from constrain.server.requests.tools import name_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from constrain.server.responses.input import Item

_MOST_VALUES = 100_000
"""Values of one result that are compared, with a schema or with a constant; beyond it, the rest counts as right."""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def warn_of_results(items: Sequence[Item], schemas: Mapping[str, Any]) -> None:
    """Warns of results that do not match. ``schemas``: those of results, by the name that the model calls."""
    called = {each["call_id"]: name_in(each.get("namespace"), each["name"]) for each in items if "name" in each}
    for item in items:
        name = called.get(item.get("call_id"), "")
        if item["type"] == "function_call_output" and name in schemas and isinstance(item["output"], str):
            problem = _problem(schemas[name], item["output"])
            if problem is not None:
                call = f"The result of the call '{item['call_id']:.80}' of '{name:.128}'"
                warn(f"{call} does not match the tool's 'output_schema': {problem}.")


def _problem(schema: Any, written: str) -> str | None:
    """Returns what is wrong about a result."""
    try:
        value = json.loads(written, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return "it is no JSON"
    left = _MOST_VALUES
    for problem, compared in _compare(schema, value, "it"):
        left -= compared
        if problem is not None or left < 0:
            return problem
    return None


def _compare(schema: Any, value: Any, what: str) -> Iterator[tuple[str | None, int]]:
    """Yields a problem or ``None``, with the number of values compared, for each part of a value.

    Types, constants, and the members and items of values are compared; other keywords are not read. ``what``: the part.
    """
    if not isinstance(schema, dict):
        yield None, 1
        return
    kinds = schema.get("type")
    listed = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    if listed and not any(_is_of_type(value, kind) for kind in listed):
        yield f"{what} is not of the type {' or '.join(map(str, listed)):.80}", 1
    constants = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(constants, list):
        yield None if value in constants else f"{what} is none of the values that it may have", len(constants)
    properties = schema.get("properties")
    if isinstance(value, dict):
        declared = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        for key in required if isinstance(required, list) else ():
            yield None if key in value else f"{what} lacks the member '{key!s:.80}'", 1
        for key, inner in value.items():
            if key not in declared and schema.get("additionalProperties") is False:
                yield f"{what} has the member '{key:.80}'", 1
            yield from _compare(declared.get(key), inner, f"the member '{key:.80}'")
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _compare(schema.get("items"), inner, f"item {index}")


def _is_of_type(value: Any, kind: object) -> bool:
    types = _TYPES.get(kind) if isinstance(kind, str) else None
    if types is None:
        return True
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types) and (kind != "integer" or not isinstance(value, float) or value.is_integer())


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
