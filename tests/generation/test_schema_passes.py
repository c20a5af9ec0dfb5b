"""A request writes its schemas out once and parses them once; an equal request writes them again and parses nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pydantic
import pytest

import constrain
from constrain.generation.planning import prepare
from tests.support.schema_passes import MARK, counted_passes, new_schema, new_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strict": {"strict": True},
    "with refusal": {"allow_refusal": True},
    "strict with refusal": {"strict": True, "allow_refusal": True},
}
TOOLS = 20


def passes_of_two(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, schema: Any, options: Mapping[str, Any]
) -> list[tuple[int, int]]:
    """The counts of a request and of its repetition."""
    counts = []
    for _ in range(2):
        with counted_passes(monkeypatch) as passes:
            prepare(model, "Hello", schema, {**options})  # type: ignore[typeddict-item]
        counts.append(passes.counts)
    return counts


@pytest.mark.parametrize("name", OPTIONS)
def test_a_schema_is_written_and_parsed_once(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, name: str
) -> None:
    assert passes_of_two(monkeypatch, model, new_schema(), OPTIONS[name]) == [(1, 1), (1, 0)]


@pytest.mark.parametrize("name", OPTIONS)
def test_the_text_of_a_schema_is_parsed_once(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, name: str
) -> None:
    assert passes_of_two(monkeypatch, model, json.dumps(new_schema()), OPTIONS[name]) == [(0, 1), (0, 0)]


@pytest.mark.parametrize("name", ["plain", "with refusal"])
def test_the_schema_of_a_type_is_written_and_parsed_once(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, name: str
) -> None:
    kind = pydantic.create_model("Kind", **{f"{MARK}{name.replace(' ', '_')}": (float, ...)})  # type: ignore[call-overload]
    assert passes_of_two(monkeypatch, model, kind, OPTIONS[name]) == [(1, 1), (1, 0)]


@pytest.mark.parametrize("strict", [False, True])
def test_schemas_of_tools_are_written_and_parsed_once(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model, strict: bool
) -> None:
    tools = new_tools(TOOLS, strict=strict)
    assert passes_of_two(monkeypatch, model, None, {"tools": tools}) == [(TOOLS, TOOLS), (TOOLS, 0)]


def test_schemas_of_functions_are_written_and_parsed_with_the_tool(
    monkeypatch: pytest.MonkeyPatch, model: constrain.Model
) -> None:
    class Kept:
        @constrain.tool
        def look(self, counted_place: str, days: float = 0.5) -> None: ...

    with counted_passes(monkeypatch) as passes:

        @constrain.tool
        def forecast(counted_day: str, days: float = 0.5) -> None: ...

    assert passes.counts == (1, 1)
    assert passes_of_two(monkeypatch, model, None, {"tools": [forecast]}) == [(0, 0), (0, 0)]
    assert passes_of_two(monkeypatch, model, None, {"tools": [Kept().look]}) == [(0, 0), (0, 0)]
