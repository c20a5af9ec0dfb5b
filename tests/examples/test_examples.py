"""The programs in ``examples/``: each runs and prints what it promises; on a tiny model where any answer will do."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support import for_each
from tests.support.server.asking import served_as, serving

FOLDER = Path(__file__).parents[2] / "examples"
MOST_LINES = 60
Run: TypeAlias = "Callable[..., list[str]]"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that runs an example in this process and returns the lines that it prints."""

    def lines(name: str, *arguments: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(FOLDER / name), run_name="__main__")
        return capsys.readouterr().out.removesuffix("\n").split("\n")

    return lines


@for_each("path", sorted(FOLDER.glob("*.py")))
def test_every_example_is_short_and_tested(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < MOST_LINES
    assert f'"{path.name}"' in Path(__file__).read_text(encoding="utf-8")


@pytest.mark.slow
def test_extraction_prints_the_person_of_each_text(run: Run) -> None:
    assert [json.loads(line) for line in run("extraction.py")] == [
        {"name": "Ada", "age": 36, "job": "teacher"},
        {"name": "Bo", "age": 41, "job": "baker"},
        {"name": "Cy", "age": 61, "job": "nurse"},
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_model")
def test_streaming_prints_the_text_and_then_the_value(run: Run) -> None:
    *text, value, summary = run("streaming.py")
    assert set(json.loads("\n".join(text))) == {"summary", "stars"}
    assert value.startswith("Review(summary=")
    assert re.fullmatch(r"\d+ tokens; the least likely had \S+", summary)


@pytest.mark.slow
def test_tools_calls_the_function_and_answers(run: Run) -> None:
    lines = run("tools.py")
    assert any(line.startswith("call: temperature ") for line in lines)
    assert any(line.startswith("tool: ") for line in lines)
    assert any(line.startswith("assistant: ") for line in lines)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_model")
def test_grammar_prints_a_query_and_explains_a_wrong_one(run: Run) -> None:
    query, *explained = run("grammar.py")
    assert re.fullmatch(r"SELECT .* FROM readers( WHERE .*)?;", query)
    assert "readers" in "\n".join(explained)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_model")
def test_batch_prints_topics_and_why_one_message_has_none(run: Run) -> None:
    *topics, failed = run("batch.py")
    assert len(topics) == 4
    assert all(line.split()[-1] in ("billing", "delivery", "other") for line in topics)
    assert "no answer: " in failed


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_model")
def test_own_loop_writes_json_of_the_schema(run: Run) -> None:
    [text] = run("own_loop.py")
    assert json.loads(text)["city"] in ("Oslo", "Rome")


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_model")
def test_server_client_prints_the_person_twice(run: Run) -> None:
    with constrain.Model(n_threads=1) as model, serving(Application(served_as(model, "small"), Settings())) as url:
        value, *streamed = run("server_client.py", f"{url}/v1")
    assert value.startswith("Person(name=")
    assert set(json.loads("\n".join(streamed))) == {"name", "age"}
