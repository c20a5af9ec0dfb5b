"""The command line where its streams, files or modules are not what they should be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from constrain.cli.streams import read_prompt
from tests.support.command_line import call


def run(
    *arguments: str | bytes | Path, redirect: str = "", text: bytes = b"", **variables: str
) -> tuple[int, str, str]:
    """The exit status and what was written of a command, after redirections as a shell has them."""
    command = ["sh", "-c", f'exec "$@" {redirect}', "sh", sys.executable, "-m", "constrain", *arguments]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", **variables}
    done = subprocess.run(command, input=text, capture_output=True, check=False, env=environment)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirect", "command", "says"),
    [
        (">&-", ("grammars", "json"), "standard output: it is closed"),
        (">/dev/full", ("grammars", "json"), "no space left on device"),
    ],
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
