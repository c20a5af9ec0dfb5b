"""``constrain batch``: its options, what it says, and how it goes on after an end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.batch_files import records
from tests.support.command_line import call
from tests.support.judging import require_valid
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("tiny_model")

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


OPTIONS = ("-o", "out.jsonl", "--schema", "schema.json", "--max-tokens", "24", "--threads", "1", "--gpu-layers", "0")


def program(*more: str, **options: Any) -> subprocess.Popen[str]:
    """The command as a program of its own."""
    given = [sys.executable, "-m", "constrain", "batch", "in.jsonl", *OPTIONS, *more]
    return subprocess.Popen(given, text=True, **options)


def finished(*more: str) -> subprocess.CompletedProcess[str]:
    return call("batch", "in.jsonl", *OPTIONS, *more)


def has_an_answer(output: Path) -> bool:
    return output.exists() and output.stat().st_size > 0


@pytest.mark.slow
def test_every_line_has_an_answer_of_its_schema(folder: Path) -> None:
    done = finished("--seed", "1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "out.jsonl: 8 answers\n")
    answers = records(folder / "out.jsonl")
    ids = {each["line"]: each.get("id") for each in answers}
    assert ids == {**{number: f"n{number - 1}" for number in range(1, 7)}, 7: None, 8: None}
    for each in answers:
        require_valid(SCHEMA if each["line"] < 8 else {"enum": ["red", "blue"]}, each["text"])
        assert json.loads(each["text"]) == each["value"]


@pytest.mark.slow
def test_the_command_goes_on_after_it_was_interrupted_or_killed(folder: Path) -> None:
    (folder / "in.jsonl").write_text("".join(f'"Make up person {number}."\n' for number in range(150)))
    output = folder / "out.jsonl"
    with program("--parallel", "1", stderr=subprocess.PIPE, start_new_session=True) as first:
        wait_until(lambda: has_an_answer(output), seconds=120)
        first.send_signal(signal.SIGINT)
        _, said = first.communicate(timeout=60)
    assert first.returncode == 130
    done = len(records(output))
    told = [f"out.jsonl: {count} of 150 are done; the same command goes on\n" for count in (done - 1, done)]
    assert said in told  # the last answer may not have been on the disk yet
    size = output.stat().st_size
    with program("--parallel", "2") as second:
        wait_until(lambda: output.stat().st_size > size, seconds=120)
        second.kill()
    before = output.read_bytes()
    whole = before.count(b"\n")
    assert done < whole < 150
    last = finished()
    assert (last.returncode, f"and {whole} from before" in last.stderr) == (0, True)
    assert output.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert sorted(each["line"] for each in records(output)) == [*range(1, 151)]


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
    done = finished(*common, "--max-number-tokens", "0")
    assert done.returncode == 3
    assert "line 4: whitespace applies to JSON Schemas only, but there is no schema" in done.stderr
    assert "line 5: whitespace must be one of 'flexible', 'compact', 'any', not 'no'" in done.stderr
    found = {each["line"]: each for each in records(folder / "out.jsonl")}
    assert found.keys() == {1, 2, 3, 6, 7}
    assert found[1]["text"] == json.dumps(found[1]["value"], separators=(",", ":"), ensure_ascii=False)
    assert all(len(word.split()) <= 1 for line in (1, 2) for word in found[line]["value"])
    assert found[6]["value"] == "red"
    again = finished(*common)
    assert "was made with another max_number_tokens (it was not given)" in again.stderr


@pytest.mark.slow
def test_lines_may_have_drafts(folder: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"prompt": "A number?", "schema": {"type": "integer"}, "max_tokens": 40},
        {"prompt": "A number?", "schema": {"type": "integer"}, "draft": False},
        {"prompt": "A number?", "schema": {"type": "integer"}, "draft": 4},
        {"prompt": "Hello", "schema": None, "max_tokens": 3},
        {"prompt": "Hello", "schema": None, "max_tokens": 3, "draft": True},
        {"prompt": "A number?", "schema": {"type": "integer"}, "draft": "yes"},
    ]
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = finished("--draft", "--seed", "1")
    assert done.returncode == 3
    assert "line 5: draft needs a schema or tools" in done.stderr
    assert "line 6: Invalid type for 'draft': expected a boolean or an integer" in done.stderr
    found = {each["line"]: each for each in records(folder / "out.jsonl")}
    assert {line: "draft" in each for line, each in found.items()} == {1: True, 2: False, 3: True, 4: False}
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
    done = finished("--errors", "bad.jsonl")
    assert done.returncode == 3
    assert "out.jsonl: 1 answer; 11 lines have none, see bad.jsonl" in done.stderr
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
    one: dict[str, Any] = {"prompt": "Go on.", "tools": tools, "parallel_tool_calls": False, "max_tokens": 200}
    lines: list[dict[str, Any]] = [
        {**one, "schema": None, "tool_choice": "weather"},
        {**one, "tool_choice": "required"},
        {**one, "tool_choice": {"type": "custom", "name": "digits"}},
        {**one, "tool_choice": "none"},
        {"messages": said, "tools": tools, "tool_choice": "none", "schema": None},
        {"prompt": "Go on.", "allow_refusal": True},
    ]
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = finished("--whitespace", "compact", "--seed", "1")
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


def test_the_command_tells_the_warnings_of_schemas(folder: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1], "x-unit": "m"}}, "required": ["a"]}
    (folder / "schema.json").write_text(json.dumps(schema))
    (folder / "in.jsonl").write_text('"a"\n"b"\n')
    done = finished()
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: ") == 1
    assert "x-unit" in done.stderr


def test_the_command_has_nothing_to_do(folder: Path) -> None:
    (folder / "in.jsonl").write_text("")
    done = finished()
    assert (done.returncode, done.stderr) == (0, "out.jsonl: 0 answers\n")
    assert (folder / "out.jsonl").read_bytes() == b""


@pytest.mark.usefixtures("folder")
def test_the_command_shows_on_a_terminal_how_far_it_is() -> None:
    done = call("batch", "in.jsonl", *OPTIONS, on_terminal=True)
    assert done.returncode == 0
    for expected in ("Loading SmolLM2", "answers", "/8", "8 answers"):
        assert expected in done.stderr


@pytest.mark.slow
def test_the_command_refuses_to_mix_answers(folder: Path) -> None:
    (folder / "in.jsonl").write_text('"Who is Ada?"\n')
    assert finished().returncode == 0
    content = (folder / "out.jsonl").read_bytes()
    (folder / "schema.json").write_text('{"const": 1}')
    done = finished()
    assert done.returncode == 1
    assert done.stderr.startswith("error: out.jsonl was made with another schema; ")
    assert done.stderr.count("\n") == 1
    assert (folder / "out.jsonl").read_bytes() == content
    assert finished("--restart").returncode == 0
    assert [each["value"] for each in records(folder / "out.jsonl")] == [1]


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        (["--schema", "missing.json"], 1, "missing.json"),
        (["--schema", "wrong.json"], 1, "error: wrong.json: at /pattern: "),
        (["--model", "missing.gguf"], 1, "missing.gguf"),
        (["--errors", "in.jsonl"], 1, "two purposes"),
        (["--output", "nowhere/out.jsonl"], 1, "nowhere"),
        (["--parallel", "0"], 2, "parallel"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_command_cannot_begin(more: list[str], status: int, message: str) -> None:
    Path("wrong.json").write_text('{"type": "string", "pattern": "(a)\\\\1"}')
    done = finished(*more)
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_answers_to_a_line_vote(folder: Path) -> None:
    lines: list[object] = ["Who is Ada?", {"prompt": "A colour?", "schema": {"enum": ["red", "blue"]}, "vote": False}]
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = finished("--vote", "3", "--seed", "1")
    assert (done.returncode, done.stderr) == (0, "out.jsonl: 2 answers\n")
    found = {each["line"]: each for each in records(folder / "out.jsonl")}
    assert found[1]["agreement"].keys() == {"", *(f"/{name}" for name in found[1]["value"])}
    assert all(round(3 * share, 6) in (0, 1, 2, 3) for share in found[1]["agreement"].values())
    assert "agreement" not in found[2]
    other = finished("--vote", "5", "--seed", "1")
    assert "was made with another vote (it was 3)" in other.stderr


@pytest.mark.slow
def test_a_pattern_takes_the_place_of_a_schema(folder: Path) -> None:
    lines: list[object] = [
        "A plate?",
        {"prompt": "A colour?", "schema": {"enum": ["red"]}},
        {"prompt": "A", "schema": None},
    ]
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    given = ("batch", "in.jsonl", "-o", "out.jsonl", "--max-tokens", "9", "--regex")
    done = call(*given, "[A-Z]{2}-[0-9]")
    assert (done.returncode, done.stderr) == (0, "out.jsonl: 3 answers\n")
    values = {each["line"]: each["value"] for each in records(folder / "out.jsonl")}
    assert re.fullmatch("[A-Z]{2}-[0-9]", values[1])
    assert values[2] == "red"
    assert "was made with another schema" in call(*given, "[A-Z]").stderr
