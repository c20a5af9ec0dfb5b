"""The programs in ``examples/``: each runs on the small model and prints what it promises."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server.process import program

FOLDER = Path(__file__).parents[2] / "examples"
MOST_LINES = 60


def run(name: str, *arguments: str) -> list[str]:
    """The lines that an example prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / name), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: str(path.stem))
def test_every_example_is_short_and_tested(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < MOST_LINES
    assert f'"{path.name}"' in Path(__file__).read_text(encoding="utf-8")


@pytest.mark.slow
def test_extraction_prints_the_person_of_each_text() -> None:
    assert [json.loads(line) for line in run("extraction.py")] == [
        {"name": "Ada", "age": 36, "job": "teacher"},
        {"name": "Bo", "age": 41, "job": "baker"},
        {"name": "Cy", "age": 61, "job": "nurse"},
    ]


@pytest.mark.slow
def test_streaming_prints_the_text_and_then_the_value() -> None:
    *text, value, summary = run("streaming.py")
    assert set(json.loads("\n".join(text))) == {"summary", "stars"}
    assert value.startswith("Review(summary=")
    assert re.fullmatch(r"\d+ tokens; the least likely had \S+", summary)


@pytest.mark.slow
def test_tools_calls_the_function_and_answers() -> None:
    lines = run("tools.py")
    assert any(line.startswith("call: temperature ") for line in lines)
    assert any(line.startswith("tool: ") for line in lines)
    assert any(line.startswith("assistant: ") for line in lines)


@pytest.mark.slow
def test_grammar_prints_a_query_and_explains_a_wrong_one() -> None:
    query, *explained = run("grammar.py")
    assert re.fullmatch(r"SELECT .* FROM readers( WHERE .*)?;", query)
    assert "readers" in "\n".join(explained)


@pytest.mark.slow
def test_batch_prints_topics_and_why_one_message_has_none() -> None:
    *topics, failed = run("batch.py")
    assert len(topics) == 4
    assert all(line.split()[-1] in ("billing", "delivery", "other") for line in topics)
    assert "no answer: " in failed


@pytest.mark.slow
def test_own_loop_writes_json_of_the_schema() -> None:
    [text] = run("own_loop.py")
    assert json.loads(text)["city"] in ("Oslo", "Rome")


@pytest.mark.slow
def test_server_client_prints_the_person_twice() -> None:
    with program() as server:
        value, *streamed = run("server_client.py", f"{server.url}/v1")
    assert value.startswith("Person(name=")
    assert set(json.loads("\n".join(streamed))) == {"name", "age"}
