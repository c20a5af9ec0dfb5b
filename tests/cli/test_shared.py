"""Helpers of several commands, without a program of its own: steps that take long, and classes as schemas."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from constrain.batch.run import Progress
from constrain.cli import batch, shared
from constrain.cli.streams import keep_input
from constrain.errors import SchemaError
from tests.support.waiting import wait_until


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "QUIET_SECONDS", 0)


def write_to() -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, highlight=False, soft_wrap=True), file


@pytest.mark.usefixtures("hasty")
def test_a_long_step_is_told_where_there_is_no_terminal() -> None:
    console, file = write_to()
    with shared.show_progress(console, "Loading [a]"):
        wait_until(lambda: file.getvalue() != "", seconds=10)
    assert file.getvalue() == "Loading [a] ...\n"


def test_a_short_step_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "QUIET_SECONDS", 0.02)
    console, file = write_to()
    with shared.show_progress(console, "Loading"):
        pass
    time.sleep(0.04)
    assert file.getvalue() == ""


@pytest.mark.usefixtures("hasty")
def test_a_batch_tells_how_far_it_is_before_its_first_answer() -> None:
    class Model:
        def tokens_in_progress(self) -> int:
            return 7

    def run() -> Iterator[Progress]:
        yield from (Progress(1), Progress(1), Progress(1, 1), Progress(1, 1, 1, "line 3: no"))

    for model, more in ((Model(), ", and 7 tokens of the next ones"), (None, "")):
        console, file = write_to()
        assert batch._follow(console, 4, run(), model).failed == 1  # type: ignore[arg-type]
        told = file.getvalue().splitlines()
        assert told[:2] == [f"1 of 4 lines{more}", f"2 of 4 lines{more}"]
        assert {*told[2:]} == {f"3 of 4 lines{more}", "line 3: no"}


def test_ids_of_several_lines_are_named() -> None:
    assert [*batch._describe_repeated({})] == []
    (told,) = batch._describe_repeated({"a": [1, 3], 7: [2, 4, 5, 6], "c": [8, 9], "d": [10, 11]})
    assert told.startswith('ids occur more than once: "a" in lines 1, 3; 7 in lines 2, 4, 5, ...; "c" in lines 8, 9; ')
    assert "and 1 other ids" in told


def test_standard_input_is_kept_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'"a"\n\xff')))
    with keep_input() as path:
        for _ in range(2):
            with open(path, "rb") as file:  # noqa: PTH123 - a text, as for any prompts
                assert file.read() == b'"a"\n\xff'
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(OSError, match="closed"), keep_input():
        pass


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    lines = [
        *("from typing import Literal", "from pydantic import BaseModel", "class Person(BaseModel):", "    name: str"),
        *("    class Part(BaseModel):", "        n: int", "Level = Literal['low']", "schema = {'const': 1}"),
        *("text = '{}'", "nothing = object()"),
    ]
    (tmp_path / "shapes_of_a_test.py").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield "shapes_of_a_test"
    sys.modules.pop("shapes_of_a_test", None)


def test_a_schema_is_a_class_of_a_module(module: str) -> None:
    for name, keys in (("Person", {"name"}), ("Person.Part", {"n"})):
        assert json.loads(shared.read_schema_text(f"{module}:{name}"))["properties"].keys() == keys
    assert json.loads(shared.read_schema_text(f"{module}:Level"))["const"] == "low"
    assert shared.parse_schema_argument(f"{module}:schema") == {"const": 1}
    assert shared.read_schema_text(f"{module}:text") == "{}"
    assert shared.Language(f"{module}:Person", None, None, None, None, None).file is None


def test_a_file_comes_before_a_class(module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}:Person").write_text("true")
    assert shared.read_schema_text(f"{module}:Person") == "true"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{}:Persn", "'shapes_of_a_test' has no attribute 'Persn'"),
        ("no_module_of_ours:Person", "No module named 'no_module_of_ours'"),
        ("name:str", "keys with types, such as 'name str'"),
        ("{}:nothing", "no JSON Schema can be made of"),
    ],
)
def test_a_class_that_is_none_is_told(given: str, message: str, module: str) -> None:
    with pytest.raises(SchemaError, match=message):
        shared.read_schema_text(given.format(module))
