"""Helpers of several commands, and the command line where streams, files or modules are not what they should be."""

from __future__ import annotations

import inspect
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from constrain.batch.run import Progress
from constrain.cli import batch, flags, shared
from constrain.cli.streams import keep_input, read_prompt
from constrain.errors import SchemaError
from tests.support import each_row
from tests.support.command_line import call
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


@each_row(
    "given, message",
    ("{}:Persn", "'shapes_of_a_test' has no attribute 'Persn'"),
    ("no_module_of_ours:Person", "No module named 'no_module_of_ours'"),
    ("name:str", "keys with types, such as 'name str'"),
    ("{}:nothing", "no JSON Schema can be made of"),
)
def test_a_class_that_is_none_is_told(given: str, message: str, module: str) -> None:
    with pytest.raises(SchemaError, match=message):
        shared.read_schema_text(given.format(module))


def run(
    *arguments: str | bytes | Path, redirect: str = "", text: bytes = b"", **variables: str
) -> tuple[int, str, str]:
    """The exit status and what was written of a command, after redirections as a shell has them."""
    command = ["sh", "-c", f'exec "$@" {redirect}', "sh", sys.executable, "-m", "constrain", *arguments]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", **variables}
    done = subprocess.run(command, input=text, capture_output=True, check=False, env=environment)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.slow
@each_row(
    "redirect, command, says",
    (">&-", ("grammars", "json"), "standard output: it is closed"),
    (">/dev/full", ("grammars", "json"), "no space left on device"),
)
def test_a_stream_that_cannot_be_used_is_named(redirect: str, command: tuple[str, ...], says: str) -> None:
    status, _, told = run(*command, redirect=redirect)
    assert (status != 0, told) == (True, f"error: {says}\n")


@pytest.mark.parametrize(
    ("prompt", "text", "name"), [("-", "hi \udcff", "standard input"), ("hi \udcff", "", "the prompt")]
)
def test_a_prompt_that_is_not_utf_8_is_refused(prompt: str, text: str, name: str) -> None:
    done = call("generate", prompt, text=text)
    why = "this is not UTF-8: invalid start byte at byte 3; encode it as UTF-8"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {name}: {why}\n")


def test_a_prompt_given_as_an_argument_stays_as_it_is() -> None:
    assert read_prompt("\ufeffa\r\nb\rc") == "\ufeffa\r\nb\rc"


def test_output_to_a_pipe_is_utf_8() -> None:
    done = call("explain", "\u00e9", "--regex", "\u00e8")
    assert (done.returncode, done.stderr, "    \u00e9\n" in done.stdout) == (1, "", True)


@pytest.mark.slow
def test_an_interruption_while_modules_are_imported_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    assert run("grammars", PYTHONPATH=path) == (130, "", "")


@pytest.mark.slow
def test_the_file_with_a_mistake_is_named(tmp_path: Path) -> None:
    unknown, rules = tmp_path / "unknown.json", tmp_path / "rules.lark"
    unknown.write_text('{"type": "strin"}')
    rules.write_text("start: a\n")
    said = f"error: {unknown}: at /type: 'strin' is not a type of JSON Schema (did you mean string?)\n"
    assert call("compile", unknown).stderr == said
    assert call("explain", "1", "--schema", unknown).stderr == said
    assert call("explain", "1", "--lark", rules).stderr.startswith(f"error: {rules}: line 1, column 8: ")


def test_a_grammar_file_that_is_not_there_is_no_unknown_name() -> None:
    done = call("explain", "1", "--lark", "jsn.lark")
    assert done.stderr == "error: jsn.lark: there is no such file or folder\n"


def test_a_warning_is_one_line(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "boolean"}')
    done = call("compile", schema, CONSTRAIN_CACHE="/proc/none")
    first, second = done.stderr.splitlines()
    assert (done.returncode, first[:28], second[:6]) == (1, "warning: the cache /proc/non", "error:")


UNSET = {"max_tokens": None, "max_string_tokens": None, "max_number_tokens": 64, "timeout": None, "show_schema": True}
UNSET |= {"tools_shown": "auto"}


@each_row(
    "given, options",
    ({}, {}),
    ({"max_number_tokens": 0, "temperature": 0.0}, {"max_number_tokens": None, "temperature": 0.0}),
    ({"draft": True, "draft_tokens": 7, "cache_whole_prompt": True}, {"draft": 7, "cache_prompt": "whole"}),
    ({"draft": True, "no_prompt_cache": True, "unbias": True}, {"draft": True, "cache_prompt": False, "unbias": True}),
    ids=str,
)
def test_flags_give_options(given: dict[str, object], options: dict[str, object]) -> None:
    unset = {name: each.default for name, each in inspect.signature(flags.options).parameters.items()}
    assert flags.options(**{**unset, **given}) == {**UNSET, "draft": False, **options}
