"""Tables as inputs and outputs of a batch, without a model: odd cells, wrong files, types of columns."""

from __future__ import annotations

import csv
import json
import math
import signal
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from constrain.batch.lines import LineError, Task
from constrain.batch.tables import reading
from constrain.generation.completion import Completion
from tests.support import each_row
from tests.support.batch_files import batch_status, cases, completion, echo, prompts, records, statuses_of
from tests.support.stores import Job

PERSON = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    }
)


def write_parquet(path: Path, columns: dict[str, Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def write_csv(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def tasks_of(source: Path, **named: Any) -> dict[int, Task | str]:
    """The tasks of an input by line, or the messages in their places."""
    found: dict[int, Task | str] = {}

    def note(task: Task, stop: Future[None]) -> Completion:
        found[task.line] = task
        return echo(task, stop)

    job = Job(source, source.with_name("noted.jsonl"), **named)
    job.run(note, threads=1, restart=True)
    errors = source.with_name("noted.errors.jsonl")
    return found | ({each["line"]: each["message"] for each in records(errors)} if errors.exists() else {})


# Rows


def test_columns_of_parquet_are_the_fields_of_a_line(tmp_path: Path) -> None:
    source = write_parquet(
        tmp_path / "in.PARQUET",
        {
            "prompt": ["a", "b"],
            "id": pa.array([7, None], pa.int32()),
            "max_tokens": [60.0, None],
            "temperature": [Decimal("0.5"), None],
            "schema": ['{"const": 1}', "null"],
            "stop": [["x"], None],
            "logprobs": [True, None],
        },
    )
    first, second = tasks_of(source, schema='{"const": 2}').values()
    assert not isinstance(first, str)
    assert not isinstance(second, str)
    assert (first.id, first.prompt, first.schema) == (7, "a", {"const": 1})
    assert first.options == {"max_tokens": 60, "temperature": 0.5, "stop": ["x"], "logprobs": True}
    assert (second.id, second.schema, second.options) == (None, None, {})


def test_nested_columns_lose_their_nulls(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said = [
        {"role": "user", "content": "Hm?", "tool_calls": None},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"type": "integer"}}}
    bias = pa.array([[("3", -1.5)]], pa.map_(pa.string(), pa.float64()))
    source = write_parquet(tmp_path / "in.parquet", {"messages": [said], "schema": [schema], "logit_bias": bias})
    task = tasks_of(source)[1]
    assert not isinstance(task, str)
    assert task.prompt == [{"role": "user", "content": "Hm?"}, {"role": "assistant", "tool_calls": [call]}]
    assert task.schema == schema
    assert task.options == {"logit_bias": {3: -1.5}}


def test_cells_of_csv_are_texts_numbers_and_booleans(tmp_path: Path) -> None:
    source = write_csv(
        tmp_path / "in.csv",
        "\ufeffid,prompt,max_tokens,temperature,logprobs,show_schema,schema,draft\r\n"
        '007,"a, ""b""\nc",60,0.5,True,Answer: {schema},"{""const"": 1}",\r\n'
        "1e5,5,60.0,1e-1,false,false,,9\r\n"
        ',"",,,,,,true\r\n',
    )
    first, second, third = (task for task in tasks_of(source).values() if not isinstance(task, str))
    assert (first.id, first.prompt, first.schema) == ("007", 'a, "b"\nc', {"const": 1})
    assert first.options == {
        "max_tokens": 60, "temperature": 0.5, "logprobs": True, "show_schema": "Answer: {schema}"
    }  # fmt: skip
    assert (second.id, second.prompt) == ("1e5", "5")
    assert second.options == {
        "max_tokens": 60, "temperature": 0.1, "logprobs": False, "show_schema": False, "draft": 9
    }  # fmt: skip
    assert (third.id, third.prompt, third.options) == (None, "", {"draft": True})


@each_row(
    "column, cell, message",
    ("prompt", None, "either prompt or messages"),
    ("prompt", 7, "Invalid type for 'prompt'"),
    ("prompt", b"\xff", "Invalid type for 'prompt'"),
    ("max_tokens", 1.5, "Invalid type for 'max_tokens'"),
    ("max_tokens", math.nan, "'max_tokens' has nan"),
    ("max_tokens", "5", "Invalid type for 'max_tokens'"),
    ("schema", "{", "the column 'schema': not JSON"),
    ("schema", "7", "Invalid type for 'schema'"),
    ("id", math.inf, "'id' has inf"),
    ("about", "x", "; with --prompt, other columns are ignored"),
)
def test_a_wrong_cell_costs_its_own_row(column: str, cell: Any, message: str, tmp_path: Path) -> None:
    kind = pa.array([cell]).type if cell is not None else pa.string()
    columns = {"prompt": pa.array(["a", "b"]), column: pa.array([cell, None], kind)}
    if column == "prompt":
        columns["messages"] = pa.array([None, [{"role": "user", "content": "b"}]])
    found = tasks_of(write_parquet(tmp_path / "in.parquet", columns))
    assert message in str(found[1])
    assert not isinstance(found[2], str)


def test_a_text_that_is_not_utf_8_costs_its_own_row(tmp_path: Path) -> None:
    found = tasks_of(write_csv(tmp_path / "in.csv", "prompt\nJürgen\nx\n".encode("latin-1")))
    assert "the column 'prompt' is not UTF-8" in str(found[1])
    assert not isinstance(found[2], str)
    wrong = pa.array([b"\xff", b"x"], pa.binary()).view(pa.string())
    found = tasks_of(write_parquet(tmp_path / "in.parquet", {"prompt": wrong}))
    assert "the column 'prompt' cannot be read: " in str(found[1])
    assert not isinstance(found[2], str)


def test_rows_come_from_all_batches_and_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "ROWS", 4)
    monkeypatch.setattr(reading, "MAX_CSV_BLOCK_BYTES", 100)
    texts = [f"p{number}" for number in range(100)]
    for source in (
        write_parquet(tmp_path / "in.parquet", {"prompt": texts}),
        write_csv(tmp_path / "in.csv", "\n".join(["prompt", *texts])),
    ):
        found = [(line, task.prompt) for line, task in tasks_of(source).items() if not isinstance(task, str)]
        assert found == list(enumerate(texts, 1))


# Named columns


def test_a_template_reads_columns_and_ignores_others(tmp_path: Path) -> None:
    when = datetime(2026, 1, 1, tzinfo=timezone.utc)
    source = write_parquet(
        tmp_path / "in.parquet",
        {"name": ["Ada", None], "age": [36, 7], "key": ["a", "b"], "schema": [when, when], "a.b": [[1], [2]]},
    )
    found = tasks_of(source, prompt="{name} is {age}, {{so}}", id_column="key")
    task = found[1]
    assert not isinstance(task, str)
    assert (task.prompt, task.id, task.schema) == ("Ada is 36, {so}", "a", None)
    assert "the column 'name', which the prompt needs, is null" in str(found[2])
    assert [each["id"] for each in records(tmp_path / "noted.errors.jsonl")] == ["b"]


def test_a_column_of_texts_or_messages_is_the_prompt(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "x"}]
    source = write_parquet(tmp_path / "in.parquet", {"text": ["a"], "said": [said], "n": [1]})
    for column, expected in (("text", "a"), ("said", said)):
        task = tasks_of(source, prompt=column)[1]
        assert not isinstance(task, str)
        assert task.prompt == expected
    assert "the prompt is 1; it must be a text or a list of messages" in str(tasks_of(source, prompt="n")[1])


def test_objects_of_json_lines_are_rows_too(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    lines = [{"name": "Ada", "key": 5, "x": 1}, {"key": 6}, "text", {"name": "Bo"}]
    source.write_text("\n".join(map(json.dumps, lines)))
    found = tasks_of(source, prompt="Who is {name}?", id_column="key")
    task = found[1]
    assert not isinstance(task, str)
    assert (task.prompt, task.id, task.options) == ("Who is Ada?", 5, {})
    assert "the column 'name', which the prompt needs, is missing" in str(found[2])
    assert "a line must be a JSON object" in str(found[3])
    assert "there is no 'key', which --id-column names" in str(found[4])


def test_an_id_column_alone_names_rows_with_fields(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", "prompt,key,max_tokens\na,k,9\n")
    task = tasks_of(source, id_column="key")[1]
    assert not isinstance(task, str)
    assert (task.prompt, task.id, task.options) == ("a", "k", {"max_tokens": 9})


# Files that cannot be answered


def require_refused(source: Path, message: str, **named: Any) -> None:
    """No answer is begun."""
    output = source.with_name("out.jsonl")
    with pytest.raises(ValueError, match=message):
        Job(source, output, **named).run()
    assert not output.exists()


@pytest.mark.parametrize("case", cases("wrong_tables"), ids=lambda case: str(case["message"]))
def test_a_wrong_table_is_refused_before_any_answer(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_CSV_BLOCK_BYTES", 100)
    named = {name: case[name] for name in ("prompt", "id_column") if name in case}
    require_refused(write_csv(tmp_path / "a.csv", case["content"]), case["message"], **named)


@each_row(
    "name, content, message",
    ("a.csv", b"prompt,\xff\na,1\n", "the names of its columns are not UTF-8"),
    ("a.csv", "prompt\na\n".encode("utf-16"), "it is UTF-16; write it as UTF-8"),
    ("a.csv", b"prompt\n" + b"x" * 300, "a row has more than 100 bytes"),
    ("a.parquet", b"prompt\na\n", "cannot be read as Parquet: "),
    ("a.parquet", b"", "cannot be read as Parquet: "),
)
def test_a_file_that_is_no_table_is_refused_before_any_answer(
    name: str, content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_CSV_BLOCK_BYTES", 100)
    require_refused(write_csv(tmp_path / name, content), message)


@pytest.mark.parametrize("block", [16, 4 << 20])
def test_quotes_that_are_right_are_accepted(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_CSV_BLOCK_BYTES", block)
    cells = ['"a\n""\n,"', '5" x', '"b"""', "x", '""', 'y"', '"z"']
    source = write_csv(tmp_path / "in.csv", '\ufeff"prompt",id\r\n' + "".join(f"{cell},1\r\n" for cell in cells))
    found = [task.prompt for task in tasks_of(source).values() if not isinstance(task, str)]
    assert found == ['a\n"\n,', '5" x', 'b"', "x", "", 'y"', "z"]


@pytest.mark.slow
def test_a_broken_page_of_parquet_is_refused_before_any_answer(tmp_path: Path) -> None:
    columns = {"prompt": [f"prompt {number}" for number in range(900)], "other": ["x"] * 900}
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table(columns), source, row_group_size=300)
    content = bytearray(source.read_bytes())
    begin = pq.read_metadata(source).row_group(2).column(0).data_page_offset
    content[begin : begin + 100] = bytes([255]) * 100
    source.write_bytes(content)
    message = r"in\.parquet: this cannot be read as Parquet: the rows behind row \d{3} are broken"
    require_refused(source, message, prompt="prompt")
    assert Job(source, tmp_path / "out.jsonl", prompt="other").run()[-1].answered == 900


def test_an_empty_map_is_an_object(tmp_path: Path) -> None:
    bias = pa.array([[], [("3", 1.0)], None], pa.map_(pa.string(), pa.float64()))
    source = write_parquet(tmp_path / "in.parquet", {"prompt": ["a", "b", "c"], "logit_bias": bias})
    found = [task.options for task in tasks_of(source).values() if not isinstance(task, str)]
    assert found == [{"logit_bias": {}}, {"logit_bias": {3: 1.0}}, {}]


def test_columns_of_parquet_are_checked_too(tmp_path: Path) -> None:
    doubled = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["prompt", "prompt"])
    pq.write_table(doubled, tmp_path / "in.parquet")
    with pytest.raises(ValueError, match=r"in\.parquet: two columns are called 'prompt'"):
        tasks_of(tmp_path / "in.parquet")
    dates = write_parquet(tmp_path / "in.parquet", {"prompt": ["a"], "id": [datetime(2026, 1, 1)]})  # noqa: DTZ001
    with pytest.raises(ValueError, match=r"the column 'id' has the type timestamp\[us\]; an id is a text or a number"):
        tasks_of(dates)


@pytest.mark.parametrize("name", ["in.parquet", "in.csv"])
@pytest.mark.parametrize("output", ["out.parquet", "out.csv", "out.jsonl"])
def test_an_empty_table_has_no_answers(name: str, output: str, tmp_path: Path) -> None:
    if name == "in.csv":
        source = write_csv(tmp_path / name, "prompt,id")
    else:
        source = write_parquet(tmp_path / name, {"prompt": pa.array([], pa.string()), "id": pa.array([], pa.int64())})
    assert len(Job(source, tmp_path / output).run()) == 1
    if output == "out.parquet":
        assert pq.read_table(tmp_path / output).num_rows == 0
    else:
        assert len((tmp_path / output).read_text().splitlines()) == (1 if output == "out.csv" else 0)


# Answers


def person(task: Task, _: Future[None]) -> Completion:
    return completion({"name": str(task.prompt), "age": task.line})


def test_parquet_has_types_that_follow_the_schema(tmp_path: Path) -> None:
    source = write_parquet(
        tmp_path / "in.parquet", {"prompt": ["c", "b", "a"], "id": pa.array([3, None, 1], pa.int16())}
    )
    job = Job(source, tmp_path / "out.parquet", schema=PERSON)
    order = iter([3, 1, 2])

    def shuffled(task: Task, stop: Future[None]) -> Completion:
        return replace(person(task, stop), shortened=next(order))

    job.run(shuffled)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.names[:6] == ["line", "id", "value", "text", "finish_reason", "usage"]
    assert table.schema.field("id").type == pa.int16()
    assert table.schema.field("value").type == pa.struct([("name", pa.string()), ("age", pa.int64())])
    rows = table.to_pylist()
    assert [(row["line"], row["id"], row["value"]["name"], row["value"]["age"]) for row in rows] == [
        (1, 3, "c", 1), (2, None, "b", 2), (3, 1, "a", 3)
    ]  # fmt: skip
    assert rows[0]["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "draft_tokens": 0}
    assert json.loads(rows[0]["details"]) == {"shortened": json.loads(rows[0]["details"])["shortened"]}


def test_rows_are_sorted_whatever_the_order_of_the_answers(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", "prompt\n" + "".join(f"p{number}\n" for number in range(1, 31)))
    job = Job(source, tmp_path / "out.parquet")

    def picky(task: Task, stop: Future[None]) -> Completion:
        if task.line % 3 == 0:
            raise LineError("later")
        return echo(task, stop)

    job.run(picky)
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 20
    job.run()
    assert [each["line"] for each in records(tmp_path / "out.parquet.jsonl")] != list(range(1, 31))
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["line"].to_pylist() == list(range(1, 31))
    assert table["value"].to_pylist() == [json.dumps(f"p{number}") for number in range(1, 31)]
    assert not (tmp_path / "out.errors.jsonl").exists()


def test_a_number_that_does_not_fit_is_an_error_of_its_row(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", "prompt\na\nb\n")

    def huge(task: Task, _: Future[None]) -> Completion:
        return completion(10**30 if task.line == 1 else 5)

    Job(source, tmp_path / "out.parquet", schema='{"type": "integer"}').run(huge)
    first, second = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert (first["value"], first["text"]) == (None, str(10**30))
    assert first["error"]["error"] == "ValueTypeError"
    assert (second["value"], second["error"]) == (5, None)
    Job(source, tmp_path / "out.csv", schema='{"type": "integer"}').run(huge)
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["value"] for row in csv.DictReader(file)] == [str(10**30), "5"]


def test_a_text_that_utf_8_does_not_have_is_an_error_of_its_row(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", "prompt\na\n")

    def single(_: Task, __: Future[None]) -> Completion:
        return completion("\ud800")

    Job(source, tmp_path / "out.parquet", schema='{"type": "string"}').run(single)
    (row,) = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert (row["value"], row["text"]) == (None, '"\\ud800"')
    assert row["error"]["error"] == "ValueTypeError"
    Job(source, tmp_path / "out.csv").run(single)
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        assert [json.loads(each["value"]) for each in csv.DictReader(file)] == ["\ud800"]


def test_values_are_json_where_rows_have_schemas_of_their_own(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"prompt": "a"}\n{"prompt": "b", "schema": null}\n')
    Job(source, tmp_path / "out.parquet", schema=PERSON).run()
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.field("value").type == pa.string()
    assert table["value"].to_pylist() == ['"a"', '"b"']


@each_row(
    "ids, kind, expected",
    ([5, None], pa.int64(), [5, None]),
    ([5, 1.5], pa.float64(), [5.0, 1.5]),
    ([5, "a"], pa.string(), ["5", "a"]),
    ([10**30, 1], pa.string(), [str(10**30), "1"]),
    ([2**60 + 1, 1.5], pa.string(), [str(2**60 + 1), "1.5"]),
    ([None, None], pa.string(), [None, None]),
    (["\ud800", "é"], pa.string(), ["\\ud800", "é"]),
)
def test_names_keep_a_type_that_all_of_them_have(ids: list[Any], kind: Any, expected: Any, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(json.dumps({"prompt": "a", "id": each}) for each in ids))
    Job(source, tmp_path / "out.parquet").run()
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.field("id").type == kind
    assert table["id"].to_pylist() == expected


def test_names_of_a_table_keep_its_type(tmp_path: Path) -> None:
    wide = pa.array([2**64 - 1, 1], pa.uint64())
    for ids in (wide, pa.array([0.5, 1.5], pa.float32()), pa.array(["x", "y"]).dictionary_encode()):
        source = write_parquet(tmp_path / "in.parquet", {"prompt": ["a", "b"], "id": ids})
        Job(source, tmp_path / "out.parquet").run(restart=True)
        table = pq.read_table(tmp_path / "out.parquet")
        assert table["id"].to_pylist() == ids.to_pylist()
        assert table.schema.field("id").type == (pa.string() if pa.types.is_dictionary(ids.type) else ids.type)


def test_csv_quotes_whatever_texts_have(tmp_path: Path) -> None:
    odd = ['a,"b"', "line\nbreak", "return\r\n", "'; =1+1", "", "\u2028", " x "]
    source = write_parquet(tmp_path / "in.parquet", {"prompt": odd, "id": odd})
    Job(source, tmp_path / "out.csv").run()
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [json.loads(row["value"]) for row in rows] == odd
    assert [row["id"] for row in rows] == odd
    assert json.loads(rows[0]["usage"])["prompt_tokens"] == 3
    again = tasks_of(tmp_path / "out.csv", prompt="value", id_column="id")
    assert [task.prompt for task in again.values() if not isinstance(task, str)] == [row["value"] for row in rows]


@pytest.mark.parametrize("errors", ["bad.csv", "bad.parquet"])
def test_errors_are_a_table_where_their_name_says_so(errors: str, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(prompts(2) + b"{\n" + b'{"id": 5}\n')
    job = Job(source, tmp_path / "out.jsonl", errors=tmp_path / errors)
    job.run()
    if errors == "bad.csv":
        with (tmp_path / errors).open(newline="") as file:
            found: list[dict[str, Any]] = list(csv.DictReader(file))
        assert [row["id"] for row in found] == ["", "5"]
    else:
        found = pq.read_table(tmp_path / errors).to_pylist()
        assert [row["id"] for row in found] == [None, 5]
    assert [int(row["line"]) for row in found] == [3, 4]
    assert [row["error"] for row in found] == ["LineError"] * 2
    source.write_bytes(prompts(2))
    job.run(restart=True)
    assert not (tmp_path / errors).exists()


# Again


@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_a_table_that_is_current_stays_as_it_is(name: str, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", "prompt\na\nb\n")
    job = Job(source, tmp_path / name)
    job.run()
    content, number = (tmp_path / name).read_bytes(), (tmp_path / name).stat().st_ino
    assert job.run()[-1].known == 2
    assert (tmp_path / name).stat().st_ino == number
    (tmp_path / name).unlink()
    job.run()
    assert (tmp_path / name).read_bytes() == content


def test_a_table_that_no_batch_has_made_is_left_alone(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", "prompt\na\n")
    (tmp_path / "out.parquet").write_bytes(b"mine")
    job = Job(source, tmp_path / "out.parquet")
    with pytest.raises(ValueError, match=r"out\.parquet exists, but .*--restart"):
        job.run()
    assert (tmp_path / "out.parquet").read_bytes() == b"mine"
    job.run(restart=True)
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 1


def test_a_table_goes_to_the_file_that_a_link_names(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", "prompt\na\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out.parquet").symlink_to(tmp_path / "elsewhere" / "real.parquet")
    Job(source, tmp_path / "out.parquet").run()
    assert (tmp_path / "out.parquet").is_symlink()
    assert pq.read_table(tmp_path / "elsewhere" / "real.parquet").num_rows == 1
    assert len([*(tmp_path / "elsewhere").iterdir()]) == 1


def test_batches_of_one_folder_have_their_own_errors(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(prompts(2) + b"{\n")
    names = {
        "answers.jsonl": "answers.errors.jsonl",
        "answers.csv": "answers.csv.errors.jsonl",
        "answers.parquet": "answers.parquet.errors.jsonl",
    }
    for output in names:
        Job(source, tmp_path / output).run()
    for errors in names.values():
        assert [each["line"] for each in records(tmp_path / errors)] == [3]


@each_row(
    "name, content",
    ("notes.txt", b"my notes"),
    ("notes.jsonl", b'{"line": 1, "value": 2}\n'),
    ("notes.jsonl", b"[]\n"),
    ("notes.csv", b"a,b\n1,2\n"),
    ("notes.csv", b"\xff"),
    ("notes.parquet", b"PAR1"),
)
def test_errors_do_not_replace_a_file_that_no_batch_has_made(name: str, content: bytes, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(prompts(2))
    errors = tmp_path / name
    errors.write_bytes(content)
    for restart in (False, True):
        with pytest.raises(
            ValueError, match=r"notes.* exists, and has no errors of a batch; name another file with --errors"
        ):
            Job(source, tmp_path / "out.jsonl", errors=errors).run(restart=restart)
    assert errors.read_bytes() == content
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("name", ["bad.txt", "bad.jsonl", "bad.csv", "bad.parquet"])
def test_errors_of_an_earlier_batch_are_replaced(name: str, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"{\n")
    for output in ("one.jsonl", "two.jsonl"):
        Job(source, tmp_path / output, errors=tmp_path / name).run()
    (tmp_path / "empty.txt").touch()
    (tmp_path / "torn.txt").write_bytes(b'{"line": 4, "er')
    for errors in ("empty.txt", "torn.txt"):
        Job(source, tmp_path / "three.jsonl", errors=tmp_path / errors).run()
        assert len(records(tmp_path / errors)) == 1


def test_files_of_tables_have_one_purpose_each(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", "prompt\na\n")
    for output, errors in (
        ("out.csv", "out.csv.jsonl"),
        ("out.csv", "out.csv.jsonl.run.json"),
        ("in.csv", "e.jsonl"),
        ("out.csv", "out.csv"),
    ):
        with pytest.raises(ValueError, match="two purposes"):
            Job(source, tmp_path / output, errors=tmp_path / errors)


KILLED = """
import os, signal
from pathlib import Path
from constrain.batch import files, finishing
from constrain.batch.tables import writing
from tests.support.stores import Job
from tests.support.batch_files import echo

def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def work(folder, moment):
    job = Job(Path(folder, "in.csv"), Path(folder, moment + ".parquet"))
    if moment == "table":
        write = writing._record_at
        writing._record_at = lambda lines, offset, *more: kill() if offset > 200 else write(lines, offset, *more)
    elif moment == "note":
        files.AnswerFile.note_finished = kill

    def answer(task, stop):
        if moment == "answer" and task.line == 5:
            kill()
        return echo(task, stop)

    job.run(answer)
"""


@pytest.mark.slow
def test_a_killed_batch_goes_on_at_each_stage(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", "prompt\n" + "".join(f"p{number}\n" for number in range(1, 10)))
    moments = ("answer", "table", "note")
    assert statuses_of(KILLED, [[str(tmp_path), moment] for moment in moments]) == [-signal.SIGKILL] * 3
    for moment in moments:
        output = tmp_path / f"{moment}.parquet"
        assert output.exists() == (moment == "note")
        assert (Job(source, output).run()[-1].answered == 0) == (moment != "answer")
        assert pq.read_table(output)["line"].to_pylist() == list(range(1, 10))


def test_a_table_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_csv(tmp_path / "in.csv", "prompt\na\n")
    job = Job(source, tmp_path / "out.parquet")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("constrain.batch.tables.writing.pq.ParquetWriter.write_batch", lambda *_: full(0))
    with pytest.raises(OSError, match=r"out\.parquet: it could not be written: No space left on device"):
        job.run()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.csv", "out.parquet.jsonl", "out.parquet.jsonl.run.json"
    ]  # fmt: skip
    monkeypatch.undo()
    assert job.run()[-1].known == 1
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 1


# Programs


WITHOUT_PYARROW = """
import contextlib, io, sys
sys.modules["pyarrow"] = None
from constrain.__main__ import main
from constrain.batch.files import BatchFiles
from constrain.batch.finishing import errors_beside, finish, target_of
from constrain.batch.inputs import open_input
from constrain.batch.locations import locate
from constrain.batch.prompts import NamedColumns
from constrain.batch.run import run
from tests.support.batch_files import echo

def work(source, target, named):
    if named:
        sys.argv[1:] = ["batch", source, "-o", target]
        with contextlib.redirect_stderr(io.StringIO()) as told:
            try:
                main()
            except SystemExit as error:
                told.write(str(error))
        assert told.getvalue() == f"constrain: {named}: pyarrow is missing; pip install 'constrain-llm[tables]'"
        return
    given = open_input(locate(source), NamedColumns())
    output = target_of(locate(target))
    errors = target_of(errors_beside(output.location))
    scan = given.scan(find_languages=False)
    with BatchFiles(output.lines, errors.lines, {}, restart=False) as files:
        list(run(given, files, echo, None, {}, threads=1))
        finish(files, output, errors, None, scan)
"""


@pytest.mark.slow
def test_pyarrow_is_needed_and_named_for_tables_and_stores_only(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", "prompt\na\n")
    (tmp_path / "in.jsonl").write_bytes(prompts(2))
    runs = [
        ["in.jsonl", "out.jsonl", ""],
        ["in.csv", "out.jsonl", "in.csv"],
        ["in.jsonl", "s3://bucket/out.jsonl", "s3://bucket/out.jsonl"],
    ]
    assert statuses_of(WITHOUT_PYARROW, runs) == [0, 0, 0]
    assert len(records(tmp_path / "out.jsonl")) == 2


@pytest.mark.slow
def test_a_table_has_the_answers_of_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["Ada", "Bo"]
    source = write_parquet(tmp_path / "in.parquet", {"name": names, "key": [f"k{name}" for name in names]})
    asked = [{"prompt": f"Make up an age for {name}.", "id": f"k{name}"} for name in names]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, asked)))
    common = ["--schema", "name, age int", "--seed", "3", "--temperature", "1", "--max-tokens", "40", "--ctx", "512"]
    common += ["--threads", "1"]
    assert batch_status(monkeypatch, tmp_path / "in.jsonl", "-o", "out.jsonl", *common) == 0
    table = [source, "-o", "out.parquet", *common, "--id-column", "key"]
    assert batch_status(monkeypatch, *table, "--prompt", "Make up an age for {name}.") == 0
    expected = [(each["line"], each["id"], each["value"], each["text"]) for each in records(tmp_path / "out.jsonl")]
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [(row["line"], row["id"], row["value"], row["text"]) for row in rows] == sorted(expected)
    assert batch_status(monkeypatch, *table) == 1
    assert batch_status(monkeypatch, *table, "--prompt", "{name}?") == 1
    out, told = capsys.readouterr()
    assert out == ""
    assert "the table has the columns name, key, and neither prompt nor messages" in told
    assert "was made with another prompt (it was " in told
