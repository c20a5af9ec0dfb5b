"""The README, and the commands and tables of the docs: examples run, and numbers are those of the reports."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import call
from tests.support.guide import SERVER
from tests.support.server.attack import Fate, Report

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
PAGES = [README, *(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))]
COMMANDS = re.findall(r"^    constrain (.*)$", README, re.MULTILINE)


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_python_examples_print_what_stands_below_them(tmp_path: Path) -> None:
    program = tmp_path / "readme.py"
    examples = [each for each in EXAMPLES if SERVER not in each]  # the others: tests/server/test_guide.py
    program.write_text("\n".join(examples), encoding="utf-8")
    shown = re.findall(r"^```\n\n((?:    .*\n)+)", README, re.MULTILINE)
    assert len(shown) == len(examples)
    assert run(tmp_path, str(program)) == textwrap.dedent("".join(shown))


@pytest.mark.slow
def test_the_first_command_prints_what_the_readme_says(tmp_path: Path) -> None:
    command = re.search(
        r'^    pip install .* && pip install "\.\[demo,prebuilt\]" && constrain (\S+)$', README, re.MULTILINE
    )
    assert command is not None
    said = re.search(r"^    (Person\(name='Ada', age=36\))$", README, re.MULTILINE)
    assert said is not None
    # hobbies may be told otherwise on another processor
    assert run(tmp_path, "-m", "constrain", command[1]).startswith(said[1])


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_model")
def test_command_lines_run() -> None:
    assert {command.split()[0] for command in COMMANDS} >= {"generate", "explain", "grammars"}
    for command in COMMANDS:
        done = call(*shlex.split(command))
        assert (done.returncode, done.stdout != "") == (0, True), done.stderr


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that calls ``benchmarks/readme.py`` and returns what it says, or fails with it."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")

    def said(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["readme.py", *map(str, arguments)])
        runpy.run_path(str(ROOT / "benchmarks/readme.py"), run_name="__main__")
        return capsys.readouterr().out

    return said


@pytest.mark.slow
def test_tables_are_those_of_the_kept_reports(tables: Callable[..., str]) -> None:
    marks = re.compile(r"^<!-- (\w+): benchmarks/", re.MULTILINE)
    kept = {path.stem for path in (ROOT / "benchmarks/results").glob("*.json")}
    assert sorted(name for page in PAGES for name in marks.findall(page)) == sorted({*kept, "comparison", "right"})
    assert marks.findall(README) == ["comparison", "right"]
    tables("--check")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["processes", "comparison", "accuracy", "right"])
def test_a_table_that_is_not_its_report_is_told_and_written(
    name: str, tmp_path: Path, tables: Callable[..., str]
) -> None:
    pages = {tmp_path / f"{number}.md": page for number, page in enumerate(PAGES) if "<!-- /" in page}
    for path, text in pages.items():
        path.write_text(
            re.sub(rf"^(<!-- {name}: .*-->)$", r"\1\nNo table.", text, flags=re.MULTILINE), encoding="utf-8"
        )
    chosen = [argument for path in pages for argument in ("--page", path)]
    with pytest.raises(SystemExit, match=f"not those of their reports: {name};"):
        tables(*chosen, "--check")
    assert tables(*chosen, "--write") == f"written: {name}\n"
    assert {path: path.read_text(encoding="utf-8") for path in pages} == pages


@pytest.mark.slow
def test_the_table_of_an_attack_has_its_numbers(tmp_path: Path, tables: Callable[..., str]) -> None:
    fates = [Fate("first", 400, 0.5), Fate("second", 429, 7.25)]
    report = Report(fates, [1.0, 1.0, 1.0], [1.5, 2.0, 1.5], (500.0, 512.0))
    origin = {"commit": "1234567", "date": "2026-11-25", "processor": "One", "cores": 2}
    written = {**origin, "server": ["--threads", "1"], **report.numbers()}
    (tmp_path / "attack.json").write_text(json.dumps(written), encoding="utf-8")
    (tmp_path / "README.md").write_text("<!-- attack: benchmarks/attack.py -->\n<!-- /attack -->\n", encoding="utf-8")
    tables("--write", "--results", tmp_path, "--page", tmp_path / "README.md")
    table = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "during 2 hostile requests, 4 at a time; refused within 5 seconds: 1, the slowest after 7.2 s" in table
    assert "options of the server: --threads 1. 2 cores (One); commit 1234567, 2026-11-25." in table
    assert "| alone | 3 | 1.00 s (1.00) | 1.00 s (1.00) | 500 MiB |" in table
    assert "| attacked | 3 | 1.50 s (1.50) | 1.95 s (1.95) | 512 MiB |" in table
