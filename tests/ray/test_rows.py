"""Rows become tasks: prompts, names, seeds, sources, and errors that name the column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from constrain.batch.inputs import open_input
from constrain.batch.lines import LineError, read_task
from constrain.batch.prompts import NamedColumns, template_columns
from constrain.ray.rows import RowReader, number_of
from tests.support import each_row, for_each

ROW = {
    "id": 4,
    "name": "Ada",
    "age": 36,
    "text": "a letter",
    "none": None,
    "messages": [{"role": "user", "content": "x"}],
}


def reader(prompt: Any, **fields: Any) -> RowReader:
    return RowReader(
        **{"prompt": prompt, "id_column": "id", "source_columns": {}, "schema": None, "options": {}, **fields}
    )


@for_each(
    "prompt, expected",
    ("text", "a letter"),
    ("messages", [{"role": "user", "content": "x"}]),
    ("{name} is {age}, {{so}}", "Ada is 36, {so}"),
    (lambda row: row["name"] * 2, "AdaAda"),
    (lambda row: [{"role": "user", "content": row["name"], "tool_calls": None}], [{"role": "user", "content": "Ada"}]),
)
def test_prompts_come_from_columns_templates_and_functions(prompt: Any, expected: Any) -> None:
    task = reader(prompt).read(ROW)
    assert (task.prompt, task.id) == (expected, 4)


@for_each(
    "prompt, fields, message",
    ("none", {}, "the prompt is None"),
    ("{name} {none}", {}, "column 'none'"),
    ("age", {}, "the prompt is 36"),
    (lambda row: row["gone"], {}, "KeyError: 'gone'"),
    (lambda _: 5, {}, "the prompt is 5"),
    ("text", {"id_column": "none"}, "column 'none' has None"),
    ("text", {"source_columns": {"letter": "age"}}, "column 'age' has 36"),
)
def test_rows_that_cannot_be_answered_are_errors(prompt: Any, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(LineError, match=message):
        reader(prompt, **fields).read(ROW)


@for_each(
    "prompt, fields, message",
    ("gone", {}, "neither a column nor a template"),
    ("{gone}", {}, "prompt has {gone}"),
    ("{name.first}", {}, "the name of a column"),
    ("{age:3}", {}, "the name of a column"),
    ("text", {"id_column": "key"}, "id_column is 'key'"),
    ("text", {"source_columns": {"letter": "gone"}}, r"source_columns\['letter'\] is 'gone'"),
)
def test_columns_that_are_not_there_are_named(prompt: Any, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reader(prompt, **fields).check(list(ROW))


def test_seeds_are_those_of_a_batch() -> None:
    for line in (1, 2, 9):
        task = reader("text", options={"seed": 7}).read({**ROW, "id": line - 1})
        of_batch = read_task(line, json.dumps("a letter").encode(), None, {"seed": 7})
        assert task.options["seed"] == of_batch.options["seed"]
        voting = reader("text", options={"seed": 7}, voters=3).read({**ROW, "id": line - 1})
        assert voting.options["seed"] == read_task(line, b'"a"', None, {"seed": 7}, 3).options["seed"]


def test_seeds_come_from_names_and_prompts() -> None:
    assert reader("text").read(ROW).options["seed"] == 4
    seeds = {reader("text").read({**ROW, "id": name}).options["seed"] for name in ("a", "b", 1.5)}
    assert len(seeds) == 3
    unnamed = [reader("text", id_column=None).read({**ROW, "text": text}).options["seed"] for text in ("a", "b", "a")]
    assert unnamed[0] == unnamed[2] != unnamed[1]


def test_numbers_of_names_stay() -> None:
    assert [number_of("a"), number_of(3), number_of("Ada")] == [number_of("a"), 3, number_of("Ada")]


def test_sources_come_from_columns() -> None:
    task = reader("text", source_columns={"letter": "text"}).read(ROW)
    assert task.options["sources"] == {"letter": "a letter"}


def test_a_template_names_its_columns() -> None:
    assert template_columns("{{a}} {b} and {c}") == ["b", "c"]
    assert template_columns("none") == []


CALL = pa.struct({"name": pa.string(), "arguments": pa.struct({"city": pa.string(), "unit": pa.string()})})
MESSAGE = pa.struct({"role": pa.string(), "content": pa.string(), "tool_calls": pa.list_(CALL)})


@each_row(
    "messages, kind",
    (
        [
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "tool_calls": [{"name": "w", "arguments": {"city": "Oslo"}}]},
        ],
        MESSAGE,
    ),
    ([[("role", "user"), ("content", "x")]], pa.map_(pa.string(), pa.string())),
)
def test_nulls_and_maps_in_messages_are_read_as_in_a_batch(messages: Any, kind: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"messages": pa.array([messages], pa.list_(kind))})
    pq.write_table(table, tmp_path / "in.parquet")
    batch = open_input(tmp_path / "in.parquet", NamedColumns())
    [(_, row)] = batch.read()
    expected = batch.task(1, row, None, {}, None).prompt
    assert "None" not in repr(expected)
    assert reader("messages", id_column=None).read(table.to_pylist()[0]).prompt == expected


@for_each(
    "prompt, fields, columns",
    ("text", {}, ["text", "id"]),
    ("{name} is {age}", {"source_columns": {"letter": "text"}}, ["name", "age", "id", "text"]),
    ("id", {"id_column": None}, ["id"]),
    (str, {}, list(ROW)),
)
def test_only_columns_that_are_named_are_read(prompt: Any, fields: dict[str, Any], columns: list[str]) -> None:
    assert reader(prompt, **fields).needed(list(ROW)) == columns
