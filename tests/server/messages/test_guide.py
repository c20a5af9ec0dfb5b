"""The guide of messages: its examples run, and what it tells of the server is so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, get_args

from constrain.server.messages.errors import _TYPES
from constrain.server.messages.response import StopReason
from tests.support.pages import DOCS

if TYPE_CHECKING:
    import pytest

PAGE = (DOCS / "guides" / "server-anthropic.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SERVER = "http://127.0.0.1:8080"


def column(section: str, number: int) -> set[str]:
    """The names in a column of the table of a section, without its head."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")][1:]
    return {row[number].strip(" `") for row in rows}


def test_the_example_without_a_package_runs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    [code] = [each for each in EXAMPLES if "urlopen" in each]
    assert SERVER in code
    exec(compile(code.replace(SERVER, url), "guide", "exec"), {"__name__": "guide"})
    said = capsys.readouterr().out
    assert "'name'" in said
    assert "end_turn" in said


def test_every_reason_for_the_end_is_told() -> None:
    assert column("How an answer ends", 1) == set(get_args(StopReason))


def test_every_type_of_error_is_told() -> None:
    assert column("Errors", 2) == {*_TYPES.values(), "api_error", "invalid_request_error"}
