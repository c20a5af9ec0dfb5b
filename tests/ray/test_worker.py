"""``Answers`` answers tables of three kinds, without Ray, with the answers of a batch."""

from __future__ import annotations

import json
import logging
from concurrent.futures import Future
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import constrain
from constrain.batch.answering import answerer
from constrain.batch.lines import read_task
from constrain.batch.records import answer_object
from constrain.ray import Answers, answer_schema
from tests.support import each_row, for_each

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "old": {"type": "boolean"}},
    "required": ["name", "old"],
}
PROMPTS = ["Ada is 36. Who is she?", "Bo is 7. Who is he?", "Cy is 90. Who is that?"]
MODEL = {"n_ctx": 512, "n_threads": 1, "parallel": 2}


def worker(**options: Any) -> Answers:
    return Answers(schema=SCHEMA, id_column="id", model_options=MODEL, **{"max_tokens": 40, "seed": 5, **options})


@pytest.fixture(scope="module")
def answering() -> Answers:
    return worker(temperature=1.0, confidence=True)


def table(prompts: list[str | None] = PROMPTS) -> pa.Table:  # type: ignore[assignment]
    return pa.table({"id": list(range(len(prompts))), "prompt": prompts})


@pytest.mark.slow
def test_rows_are_those_of_a_batch(answering: Answers) -> None:
    schema, options = json.dumps(SCHEMA), {"seed": 5, "temperature": 1.0, "max_tokens": 40, "confidence": True}
    with constrain.Model(**MODEL) as model:
        answer = answerer(model, schema, options)  # type: ignore[arg-type]
        for line, row in enumerate(answering(table()).to_pylist(), 1):
            task = read_task(line, json.dumps(PROMPTS[line - 1]).encode(), schema, options)  # type: ignore[arg-type]
            expected: Any = answer_object(answer(task, Future()))
            assert (row["text"], row["value"]) == (expected["text"], expected["value"])
            assert row["confidence"] == expected["fields"][""]["probability"]
            assert json.loads(row["details"])["fields"] == expected["fields"]
            assert row["error"] is None


@pytest.mark.slow
def test_tables_of_every_kind_are_answered_alike(answering: Answers) -> None:
    expected = answering(table())
    frame = answering(table().to_pandas())
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["text"]) == expected["text"].to_pylist()
    arrays = answering({"id": np.arange(3), "prompt": np.array(PROMPTS, dtype=object)})
    assert isinstance(arrays["text"], np.ndarray)
    assert list(arrays["text"]) == expected["text"].to_pylist()
    assert list(arrays["id"]) == [0, 1, 2]


@pytest.mark.slow
def test_data_frames_keep_their_index(answering: Answers) -> None:
    frame = table().to_pandas().set_index(pd.Index([7, 8, 9], name="place"))
    assert list(answering(frame).index) == [7, 8, 9]
    assert answering(frame).index.name == "place"


@pytest.mark.slow
def test_rows_never_raise(answering: Answers, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "constrain.ray"):
        found = answering(table([PROMPTS[0], None, "long " * 600])).to_pylist()
    assert found[0]["error"] is None
    assert found[1]["error"]["error"] == "LineError"
    assert found[2]["error"]["error"] == "ModelError"
    assert [row["value"] is None for row in found] == [False, True, True]
    assert "row 1 has no answer" in caplog.text


@pytest.mark.slow
def test_columns_that_are_taken_are_named(answering: Answers) -> None:
    with pytest.raises(ValueError, match="column 'text' already; give a column_prefix"):
        answering(table().append_column("text", [["a", "b", "c"]]))
    with pytest.raises(ValueError, match="id_column is 'id'"):
        answering(table().drop_columns(["id"]))


YEAR_10000 = 253_402_300_800_000_000
BAD_TEXT = pa.Array.from_buffers(
    pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 3, 4], np.int32)), pa.py_buffer(b"a\xff\xfeb")]
)


@pytest.fixture(scope="module")
def reading_odd() -> Answers:
    return worker(prompt="Who is {odd}?", max_tokens=30)


@pytest.mark.parametrize("odd", [pa.array([0, YEAR_10000, 0], pa.timestamp("us")), BAD_TEXT])
@pytest.mark.slow
def test_a_cell_that_python_cannot_hold_matters_only_where_it_is_read(
    answering: Answers, reading_odd: Answers, odd: pa.Array
) -> None:
    given = table().append_column("odd", odd)
    found = answering(given)
    assert found["text"] == answering(table())["text"]
    assert found["odd"].equals(pa.chunked_array([odd]))
    found = reading_odd(given)
    assert [error is None for error in found["error"].to_pylist()] == [True, False, True]
    assert "the column 'odd' cannot be read" in found["error"][1].as_py()["message"]


@pytest.mark.slow
def test_two_columns_of_one_name_are_refused(answering: Answers) -> None:
    with pytest.raises(ValueError, match="two columns are called 'prompt'"):
        answering(table().append_column("prompt", [PROMPTS]))


@pytest.mark.slow
def test_an_empty_table_has_the_columns(answering: Answers) -> None:
    found = answering(table().slice(0, 0))
    assert len(found) == 0
    added = answer_schema(SCHEMA, confidence=True)
    assert found.schema.equals(pa.schema([*table().schema, *added]))


@each_row(
    "options, names",
    ({"n": 3}, {"sample", "value"}),
    ({"n": 3, "vote": True}, {"value"}),
    ({"column_prefix": "answer_"}, {"answer_value", "answer_error"}),
)
def test_columns_are_known_without_a_model(options: dict[str, Any], names: set[str]) -> None:
    found = answer_schema("name, age int", **options)
    assert names <= set(found.names)
    assert ("sample" in names) == ("sample" in found.names)
    value = found.field(options.get("column_prefix", "") + "value").type
    assert value == pa.struct({"name": pa.string(), "age": pa.int64()})


def test_columns_of_options_that_no_answer_can_have_are_refused() -> None:
    with pytest.raises(TypeError, match="temprature"):
        answer_schema("name", temprature=1)  # type: ignore[call-arg]
    with pytest.raises(constrain.SchemaError):
        answer_schema("name, age in")


@pytest.mark.slow
def test_several_answers_are_several_rows() -> None:
    found = worker(n=3, temperature=1.0, column_prefix="answer_")(table(PROMPTS[:2])).to_pylist()  # type: ignore[arg-type]
    assert [row["answer_sample"] for row in found] == [0, 1, 2] * 2
    assert [row["id"] for row in found] == [0, 0, 0, 1, 1, 1]
    model = constrain.Model(**MODEL)
    expected = constrain.complete_batch(model, PROMPTS[:1], schema=SCHEMA, n=3, seed=5, max_tokens=40, temperature=1.0)
    assert [row["answer_text"] for row in found[:3]] == [each.text for each in expected[0]]


@pytest.mark.slow
def test_votes_quotes_and_tools() -> None:
    quoting = {"type": "object", "properties": {"word": {"type": "string", "x-quote": "letter"}}, "required": ["word"]}
    letters = table(PROMPTS[:2]).append_column("letter", [["yes yes", "no"]])  # type: ignore[arg-type]
    found = Answers(
        schema=quoting, source_columns={"letter": "letter"}, n=3, vote=True, max_tokens=16, model_options=MODEL
    )(letters)
    for row in found.to_pylist():
        assert row["value"]["word"] in row["letter"]
        details = json.loads(row["details"])
        assert details["quotes"][0]["source"] == "letter"
        assert details["agreement"][""] >= 0
    tool = {"type": "function", "function": {"name": "say", "parameters": SCHEMA}}
    called = Answers(tools=[tool], tool_choice="required", max_tokens=50, model_options=MODEL)(table(PROMPTS[:1]))  # type: ignore[arg-type]
    for row in called.to_pylist():
        assert json.loads(row["value"])["calls"][0]["name"] == "say"


@for_each(
    "options, error, message",
    ({"vote": True}, ValueError, "vote=True needs n"),
    ({"n": 0}, ValueError, "n is 0"),
    ({"trace": True}, ValueError, "trace is not for tables"),
    ({"temprature": 1}, TypeError, "temprature"),
    ({"max_tokens": -1}, ValueError, "max_tokens is -1"),
    ({"schema": {"type": "strin"}}, constrain.SchemaError, "strin"),
)
def test_options_that_no_answer_can_have_are_refused(options: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        Answers(**{"model_options": MODEL, **options})
