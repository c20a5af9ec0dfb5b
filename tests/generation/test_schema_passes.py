"""A request writes its schemas out once and parses them once; an equal request writes them again and parses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pydantic
import pytest

import constrain
from constrain.generation.planning import prepare
from tests.support.schema_passes import MARK, counted_passes, new_schema, new_tools

_numbers = count()
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strict": {"strict": True},
    "with refusal": {"allow_refusal": True},
    "strict with refusal": {"strict": True, "allow_refusal": True},
}
TOOLS = 20
Counts = list[tuple[int, int]]


def new_type() -> Any:
    name = f"{MARK}type_{next(_numbers)}"
    return pydantic.create_model("Kind", __config__=pydantic.ConfigDict(extra="forbid"), **{name: (float, ...)})  # type: ignore[call-overload]


def passes_of_two(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, schema: Any, options: dict[str, Any]
) -> Counts:
    """The counts of schemas that a request writes and parses, and those of its repetition."""
    counts = []
    for _ in range(2):
        with counted_passes(monkeypatch) as passes:
            prepare(model, "Hello", schema, {**options})  # type: ignore[typeddict-item]
        counts.append(passes.counts)
    return counts


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(
    ("make", "counts"),
    [
        (new_schema, [(1, 1), (1, 0)]),
        (lambda: json.dumps(new_schema()), [(0, 1), (0, 0)]),
        (new_type, [(1, 1), (1, 0)]),
    ],
    ids=["schema", "text", "type"],
)
def test_a_schema_is_written_and_parsed_once(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, make: Callable[[], Any], counts: Counts, name: str
) -> None:
    assert passes_of_two(monkeypatch, model, make(), OPTIONS[name]) == counts


@pytest.mark.parametrize("strict", [False, True])
def test_schemas_of_tools_are_written_and_parsed_once(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, strict: bool
) -> None:
    tools = new_tools(TOOLS, strict=strict)
    assert passes_of_two(monkeypatch, model, None, {"tools": tools}) == [(TOOLS, TOOLS), (TOOLS, 0)]


def test_schemas_of_functions_are_written_and_parsed_with_the_tool(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model
) -> None:
    with counted_passes(monkeypatch) as passes:

        @constrain.tool
        def forecast(counted_day: str, days: float = 0.5) -> None: ...

    assert passes.counts == (1, 1)
    assert passes_of_two(monkeypatch, model, None, {"tools": [forecast]}) == [(0, 0), (0, 0)]
