"""The guide of the endpoint: its examples for the ``openai`` package run, and what it tells of the server is so.

Those for other packages run in their environments: ``tests/clients/test_guide.py``.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from constrain.cli.serve import serve
from constrain.server import config
from constrain.server.messages.errors import _TYPES
from constrain.server.messages.response import StopReason
from tests import test_readme
from tests.support.guide import API, DOCS, RUNNING, SECURITY, SERVER, Example, examples

SOURCES = sorted(Path(inspect.getfile(config)).parent.rglob("*.py"))


HOST = SERVER.removesuffix("/v1")


class Person(BaseModel):
    """As the README has it."""

    name: str
    age: int


@pytest.mark.slow
@pytest.mark.parametrize("example", [each for each in examples() if each.client == "openai, in Python"])
def test_examples_for_the_openai_package_run(example: Example, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(example.at(f"{url}/v1"), "guide", "exec"), {"__name__": "guide"})
    assert capsys.readouterr().out


@pytest.mark.slow
def test_the_example_of_the_readme_runs(url: str) -> None:
    [code] = [each for each in test_readme.EXAMPLES if SERVER in each]
    exec(compile(code.replace(SERVER, f"{url}/v1"), "readme", "exec"), {"Person": Person})


@pytest.mark.slow
def test_the_example_of_streamed_fields_runs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "guides" / "streaming.md").read_text(encoding="utf-8")
    (code,) = (each for each in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE) if SERVER in each)
    exec(compile(code.replace(SERVER, f"{url}/v1"), "guide", "exec"), {"__name__": "guide"})
    assert "complete () name=" in capsys.readouterr().out


def test_the_flags_that_the_guide_tells_of_are_those_there_are() -> None:
    told = set(re.findall(r"--(?:no-)?([a-z][a-z-]+)", RUNNING + SECURITY))
    there = {name.replace("_", "-") for name in inspect.signature(serve).parameters} - {"file"}  # which has no flag
    assert told == there
    assert "--strict-subset" in API


def test_the_configuration_in_the_guide_is_one(tmp_path: Path) -> None:
    [text] = re.findall(r"^```toml\n(.*?)^```", RUNNING, re.DOTALL | re.MULTILINE)
    path = tmp_path / "server.toml"
    path.write_text(text)
    assert len(config.read_config(path, {}).models) == 2


def test_every_code_of_an_error_is_told() -> None:
    answered = {code for path in SOURCES for code in re.findall(r'code="([a-z_]+)"', path.read_text(encoding="utf-8"))}
    table = API[API.index("## Errors") : API.index("## What differs from OpenAI")]
    assert answered
    assert answered <= set(re.findall(r"`([a-z_]+)`", table))


# Messages.


MESSAGES_PAGE = (DOCS / "guides" / "server-anthropic.md").read_text(encoding="utf-8")
MESSAGES_EXAMPLES = re.findall(r"^```python\n(.*?)^```", MESSAGES_PAGE, re.DOTALL | re.MULTILINE)


def column(section: str, number: int) -> set[str]:
    """The names in a column of the table of a section, without its head."""
    text = MESSAGES_PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")][1:]
    return {row[number].strip(" `") for row in rows}


def test_the_example_without_a_package_runs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    [code] = [each for each in MESSAGES_EXAMPLES if "urlopen" in each]
    assert HOST in code
    exec(compile(code.replace(HOST, url), "guide", "exec"), {"__name__": "guide"})
    said = capsys.readouterr().out
    assert "'name'" in said
    assert "end_turn" in said


def test_every_reason_for_the_end_is_told() -> None:
    assert column("How an answer ends", 1) == set(get_args(StopReason))


def test_every_type_of_error_is_told() -> None:
    assert column("Errors", 2) == {*_TYPES.values(), "api_error", "invalid_request_error"}
