"""Tables in every way to generate: they reach the content of answers and the arguments of tools."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
import pytest

import constrain
from constrain.errors import SchemaError
from constrain.language.result import result_type
from constrain.tools import tool_from_json
from tests.support.llama.babbler import shared_babbler

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["Ada", "Grace", "Émilie"]
FIELD = {"type": "string", "x-one-of": {"table": "people"}}
SCHEMA = {"type": "object", "properties": {"name": FIELD}, "required": ["name"]}


class Person(pydantic.BaseModel):
    name: Annotated[str, constrain.OneOf(table="people")]


@pytest.fixture(scope="module")
def model() -> constrain.Model:
    return shared_babbler()


def look_up(name: Annotated[str, constrain.OneOf(table="people")]) -> str:
    """Looks a person up."""
    return name


@pytest.mark.slow
def test_answers_streams_batches_and_texts_have_values_of_the_table(model: constrain.Model) -> None:
    options: Any = {"schema": Person, "tables": {"people": NAMES}, "max_tokens": 40}
    for seed in range(3):
        assert constrain.generate(model, "Who?", **options, seed=seed).name in NAMES
    *_, last = constrain.stream(model, "Who?", **options)
    assert isinstance(last, constrain.Finished)
    found = [last.completion, *constrain.complete_batch(model, ["Who?", "And?"], **options)]
    assert all(completion.value.name in NAMES for completion in found)


@pytest.mark.slow
def test_arguments_of_tools_have_values_of_the_table(model: constrain.Model) -> None:
    described = tool_from_json({"type": "function", "name": "find", "parameters": SCHEMA})
    for tool in (look_up, described):
        options: Any = {"tools": [tool], "tool_choice": "required", "tables": {"people": NAMES}, "max_tokens": 60}
        completion = constrain.complete(model, "Who?", **options)
        assert all(call.arguments["name"] in NAMES for call in completion.value.calls)
        with pytest.raises(SchemaError, match="there is no table 'people'"):
            constrain.complete(model, "Who?", **{**options, "tables": None})


def test_prompts_name_the_table_and_show_neither_values_nor_digests(model: constrain.Model) -> None:
    shown = constrain.prompts.shown_prompt(model, "Who?", schema=Person, tables={"people": NAMES})
    assert "people" in shown
    assert "x-given" not in shown
    assert not any(name in shown for name in NAMES)
    assert "a value of the table 'people'" in shown


def test_tables_are_for_json_schemas_only(model: constrain.Model) -> None:
    with pytest.raises(ValueError, match="tables applies to JSON Schemas only"):
        constrain.generate(model, "Who?", tables={"people": NAMES})


def test_checks_of_a_tool_leave_out_tables_that_only_a_call_has() -> None:
    found = constrain.tool(look_up)
    assert found.validate('{"name": "Bob"}').values == {"name": "Bob"}


def test_a_new_version_is_used_by_the_next_answer(model: constrain.Model, tmp_path: Path) -> None:
    path = tmp_path / "crm.db"
    table = None
    for name in ("Ada", "Grace"):
        with sqlite3.connect(path) as database:
            database.execute("DROP TABLE IF EXISTS p")
            database.execute(f"CREATE TABLE p AS SELECT '{name}' AS name")
        if table is None:
            table = constrain.Table.sqlite(path, "p")
        table.refresh()
        assert constrain.generate(model, "Who?", schema=Person, tables={"people": table}).name == name


def test_the_least_tokens_are_those_of_the_shortest_value(model: constrain.Model) -> None:
    constraint = constrain.compile(FIELD, model, tables={"people": ["a" * 40, "b" * 9]})
    least = constrain.compile({"const": "b" * 9}, model).report.min_tokens
    assert constraint.report.min_tokens == least
    with pytest.raises(constrain.BudgetError):
        constrain.generate(model, "Who?", schema=FIELD, tables={"people": ["a" * 40, "b" * 9]}, max_tokens=least - 1)
    assert result_type(FIELD).quotes is None
