"""``constrain batch`` as a program of its own, with a model."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.batch_files import records
from tests.support.command_line import run_on_terminal
from tests.support.judging import require_valid
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "maximum": 150}},
    "required": ["name"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    asked: list[Any] = [{"prompt": f"Make up person {number}.", "id": f"n{number}"} for number in range(6)]
    asked += ["Who is Ada?", {"prompt": "A colour?", "schema": {"enum": ["red", "blue"]}}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in asked))
    return tmp_path


def command(*more: str) -> list[str]:
    given = ["batch", "in.jsonl", "-o", "out.jsonl", "--schema", "schema.json", "--max-tokens", "24", "--threads", "1"]
    return [sys.executable, "-m", "constrain", *given, "--gpu-layers", "0", *more]


def finished(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(
        command(*more), cwd=folder, capture_output=True, text=True, check=False, env=environment, timeout=300
    )


def has_an_answer(output: Path) -> bool:
    return output.exists() and output.stat().st_size > 0


@pytest.mark.slow
def test_the_command_goes_on_after_it_was_killed(folder: Path) -> None:
    done = finished(folder, "--seed", "1")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("out.jsonl: 8 answers\n")
    output = folder / "out.jsonl"
    ids = {each["line"]: each.get("id") for each in records(output)}
    assert ids == {**{number: f"n{number - 1}" for number in range(1, 7)}, 7: None, 8: None}
    for each in records(output):
        require_valid(SCHEMA if each["line"] < 8 else {"enum": ["red", "blue"]}, each["text"])
        assert json.loads(each["text"]) == each["value"]
    output.unlink()
    with subprocess.Popen(command("--seed", "1", "--parallel", "2"), cwd=folder) as program:
        wait_until(lambda: has_an_answer(output), seconds=120)
        program.kill()
    before = output.read_bytes()
    whole = before.count(b"\n")
    done = finished(folder, "--seed", "1")
    assert done.returncode == 0
    assert f"and {whole} from before" in done.stderr
    assert output.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert len(records(output)) == len(ids)
    assert {each["line"]: each.get("id") for each in records(output)} == ids


@pytest.mark.slow
def test_the_command_is_interrupted(folder: Path) -> None:
    with subprocess.Popen(
        command("--parallel", "1"), cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as program:
        output = folder / "out.jsonl"
        wait_until(lambda: has_an_answer(output), seconds=120)
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=60)
    assert program.returncode == 130
    done = len(records(output))
    told = [f"out.jsonl: {count} of 8 are done; the same command goes on\n" for count in (done - 1, done)]
    assert said in told  # the last answer may not have been on the disk yet


@pytest.mark.slow
def test_the_command_and_its_lines_take_policies_and_limits(folder: Path) -> None:
    pair = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}
    lines: list[dict[str, Any]] = [
        {"prompt": "Two words?", "schema": pair},
        {"prompt": "Two words?", "schema": pair, "whitespace": "flexible", "strict": False},
        {"prompt": "Hello", "schema": None, "max_tokens": 3},
        {"prompt": "Hello", "schema": None, "whitespace": "compact"},
        {"prompt": "Hello", "schema": pair, "whitespace": "no"},
        {"prompt": "A colour?", "schema": {"$ref": "urn:colour"}, "registry": {"urn:colour": {"const": "red"}}},
        {"prompt": "A number?", "schema": {"type": "integer", "minimum": 0}, "max_number_tokens": 1},
    ]
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    common = ("--whitespace", "compact", "--max-string-tokens", "1", "--seed", "1")
    done = finished(folder, *common, "--max-number-tokens", "0")
    assert done.returncode == 3
    assert "line 4: whitespace applies to JSON Schemas only, but there is no schema" in done.stderr
    assert "line 5: whitespace must be one of 'flexible', 'compact', 'any', not 'no'" in done.stderr
    found = {each["line"]: each for each in records(folder / "out.jsonl")}
    assert found.keys() == {1, 2, 3, 6, 7}
    assert found[1]["text"] == json.dumps(found[1]["value"], separators=(",", ":"), ensure_ascii=False)
    assert all(len(word.split()) <= 1 for line in (1, 2) for word in found[line]["value"])
    assert found[6]["value"] == "red"
    again = finished(folder, *common)
    assert "was made with another max_number_tokens (it was not given)" in again.stderr


@pytest.mark.slow
def test_lines_may_have_drafts(folder: Path) -> None:
    tool = {"type": "function", "function": {"name": "greet", "parameters": {"type": "object"}}}
    lines: list[dict[str, Any]] = [
        {"prompt": "A number?", "schema": {"type": "integer"}, "max_tokens": 40},
        {"prompt": "A number?", "schema": {"type": "integer"}, "draft": False},
        {"prompt": "A number?", "schema": {"type": "integer"}, "draft": 4},
        {"prompt": "Hello", "schema": None, "max_tokens": 3},
        {"prompt": "Hello", "schema": None, "max_tokens": 3, "draft": True},
        {"prompt": "Hello", "schema": None, "tools": [tool], "tool_choice": "required", "max_tokens": 40},
        {"prompt": "A number?", "schema": {"type": "integer"}, "draft": "yes"},
    ]
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = finished(folder, "--draft", "--seed", "1")
    assert done.returncode == 3
    assert "line 5: draft needs a schema or tools" in done.stderr
    assert "line 7: Invalid type for 'draft': expected a boolean or an integer" in done.stderr
    found = {each["line"]: each for each in records(folder / "out.jsonl")}
    assert found.keys() == {1, 2, 3, 4, 6}
    assert {line for line, each in found.items() if "draft" in each} == {1, 3, 6}
    assert found[1]["draft"]
    assert 0 < found[1]["usage"]["draft_tokens"] < found[1]["usage"]["completion_tokens"] <= 40
    assert found[3]["usage"]["draft_tokens"] <= 4


@pytest.mark.slow
def test_the_command_tells_of_lines_without_an_answer(folder: Path) -> None:
    long = "word " * 5_000
    wrong = [
        '"fine"', "{", json.dumps(long), '{"prompt": "a", "schema": {"type": "string", "pattern": "(a)\\\\1"}}',
        '{"prompt": "a", "max_tokens": 1}', '{"prompt": "a", "seed": "1"}',
        '{"messages": [{"role": "a b", "content": ""}]}', '{"messages": []}', '{"prompt": "\\ud800"}',
        '{"messages": [{"role": "user", "content": 1}]}', '{"prompt": "a", "tools": [{"type": "function"}]}',
        '{"prompt": "a", "tool_choice": "required"}',
    ]  # fmt: skip
    (folder / "in.jsonl").write_text("\n".join(wrong))
    done = finished(folder, "--errors", "bad.jsonl")
    assert done.returncode == 3
    assert "out.jsonl: 1 answers; 11 lines have none, see bad.jsonl" in done.stderr
    listed = [line for line in done.stderr.splitlines() if line.startswith("line ")]
    assert len(listed) == 10, "the first ten that were known"
    failures = records(folder / "bad.jsonl")
    errors = {each["line"]: each["error"] for each in failures}
    messages = {each["line"]: each["message"] for each in failures}
    assert messages[5].startswith("max_tokens is 1")
    assert all(any(line.endswith(message) for message in messages.values()) for line in listed)
    kinds = ["LineError", "ModelError", "PatternError", "BudgetError", *["LineError"] * 5, "ToolError", "LineError"]
    assert errors == dict(enumerate(kinds, 2))
    assert [each["line"] for each in records(folder / "out.jsonl")] == [1]


@pytest.mark.slow
def test_lines_may_have_tools(folder: Path) -> None:
    weather = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}}, "required": ["city"]}
    tools = [
        {"type": "function", "function": {"name": "weather", "parameters": weather}},
        {"type": "custom", "name": "digits", "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]"}},
    ]
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    said = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "Rain."},
    ]
    one: dict[str, Any] = {"prompt": "Go on.", "tools": tools, "parallel_tool_calls": False, "max_tokens": 50}
    lines: list[dict[str, Any]] = [
        {**one, "schema": None, "tool_choice": "weather"},
        {**one, "tool_choice": "required"},
        {**one, "tool_choice": {"type": "custom", "name": "digits"}},
        {**one, "tool_choice": "none"},
        {"messages": said, "tools": tools, "tool_choice": "none", "schema": None},
        {"prompt": "Go on.", "allow_refusal": True},
    ]
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = finished(folder, "--whitespace", "compact", "--seed", "1")
    assert done.returncode == 0, done.stderr
    values = {each["line"]: each["value"] for each in records(folder / "out.jsonl")}
    for line in (1, 2, 3):
        assert values[line]["content"] is None
        [made] = values[line]["calls"]
        assert made.pop("id").startswith("call_")
        if made["name"] == "weather":
            require_valid(weather, json.dumps(made.pop("arguments")))
        else:
            assert made.pop("input") in set("0123456789")
        assert made == {"name": "weather" if line == 1 else "digits" if line == 3 else made["name"]}
    require_valid(SCHEMA, json.dumps(values[4]["content"]))
    assert values[4]["calls"] == []
    assert isinstance(values[5]["content"], str)
    if values[6].keys() != {"refusal"}:
        require_valid(SCHEMA, json.dumps(values[6]))


@pytest.mark.slow
def test_the_command_tells_the_warnings_of_schemas(folder: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1], "x-unit": "m"}}, "required": ["a"]}
    (folder / "schema.json").write_text(json.dumps(schema))
    (folder / "in.jsonl").write_text('"a"\n"b"\n')
    done = finished(folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: ") == 1
    assert "x-unit" in done.stderr


@pytest.mark.slow
def test_the_command_has_nothing_to_do(folder: Path) -> None:
    (folder / "in.jsonl").write_text("")
    done = finished(folder)
    assert (done.returncode, done.stderr) == (0, "out.jsonl: 0 answers\n")
    assert (folder / "out.jsonl").read_bytes() == b""


@pytest.mark.slow
def test_the_command_lists_some_of_the_lines_without_an_answer(folder: Path) -> None:
    (folder / "in.jsonl").write_text("{\n" * 30)
    done = finished(folder)
    assert done.returncode == 3
    assert done.stderr.count("not JSON") == 10
    assert len(records(folder / "out.errors.jsonl")) == 30


@pytest.mark.slow
def test_the_command_shows_on_a_terminal_how_far_it_is(folder: Path) -> None:
    given = [str(folder / name) for name in ("in.jsonl", "out.jsonl", "schema.json")]
    more = ["--schema", given[2], "--max-tokens", "24", "--threads", "1"]
    status, shown = run_on_terminal("batch", given[0], "-o", given[1], *more)
    assert status == 0
    for expected in ("Loading SmolLM2", "answers", "/8", "8 answers"):
        assert expected in shown


@pytest.mark.slow
def test_the_command_refuses_to_mix_answers(folder: Path) -> None:
    (folder / "in.jsonl").write_text('"Who is Ada?"\n')
    assert finished(folder).returncode == 0
    content = (folder / "out.jsonl").read_bytes()
    (folder / "schema.json").write_text('{"const": 1}')
    done = finished(folder)
    assert done.returncode == 1
    assert done.stderr.startswith("error: out.jsonl was made with another schema; ")
    assert done.stderr.count("\n") == 1
    assert (folder / "out.jsonl").read_bytes() == content
    assert finished(folder, "--restart").returncode == 0
    assert [each["value"] for each in records(folder / "out.jsonl")] == [1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        (["--schema", "missing.json"], 1, "missing.json"),
        (["--model", "missing.gguf"], 1, "missing.gguf"),
        (["--errors", "in.jsonl"], 1, "two purposes"),
        (["--output", "nowhere/out.jsonl"], 1, "nowhere"),
        (["--parallel", "0"], 2, "parallel"),
    ],
)
def test_the_command_cannot_begin(more: list[str], status: int, message: str, folder: Path) -> None:
    done = finished(folder, *more)
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_answers_to_a_line_vote(folder: Path) -> None:
    lines: list[object] = ["Who is Ada?", {"prompt": "A colour?", "schema": {"enum": ["red", "blue"]}, "vote": False}]
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = finished(folder, "--vote", "3", "--seed", "1")
    assert (done.returncode, done.stderr) == (0, "out.jsonl: 2 answers\n")
    found = {each["line"]: each for each in records(folder / "out.jsonl")}
    assert found[1]["agreement"].keys() == {"", *(f"/{name}" for name in found[1]["value"])}
    assert all(round(3 * share, 6) in (0, 1, 2, 3) for share in found[1]["agreement"].values())
    assert "agreement" not in found[2]
    other = finished(folder, "--vote", "5", "--seed", "1")
    assert "was made with another vote (it was 3)" in other.stderr


@pytest.mark.slow
def test_a_schema_that_is_refused_ends_the_command(folder: Path) -> None:
    (folder / "schema.json").write_text('{"type": "string", "pattern": "(a)\\\\1"}')
    done = finished(folder)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("error: schema.json: at /pattern: ")


@pytest.mark.slow
def test_a_pattern_takes_the_place_of_a_schema(folder: Path) -> None:
    lines: list[object] = [
        "A plate?",
        {"prompt": "A colour?", "schema": {"enum": ["red"]}},
        {"prompt": "A", "schema": None},
    ]
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    given = ["batch", "in.jsonl", "-o", "out.jsonl", "--max-tokens", "9", "--regex"]
    start = [sys.executable, "-m", "constrain", *given]
    done = subprocess.run([*start, "[A-Z]{2}-[0-9]"], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "out.jsonl: 3 answers\n")
    values = {each["line"]: each["value"] for each in records(folder / "out.jsonl")}
    assert re.fullmatch("[A-Z]{2}-[0-9]", values[1])
    assert values[2] == "red"
    other = subprocess.run([*start, "[A-Z]"], cwd=folder, capture_output=True, text=True, check=False)
    assert "was made with another schema" in other.stderr
