"""The README, and the commands and tables of the docs: examples run, and numbers are those of the reports."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from concurrent.futures import Future
from pathlib import Path

import pytest
from typing_extensions import Self

from tests.support.guide import SERVER
from tests.support.server import attack as attacks
from tests.support.server.attack import Fate, Report, attack

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
PAGES = [README, *(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))]
FILES = {
    "person.json": ("docs/guides/schemas.md", "json"),
    "people.jsonl": ("docs/guides/batch.md", "jsonl"),
    "people.csv": ("docs/guides/batch-files.md", "csv"),
    "customers.csv": ("docs/guides/batch-files.md", "csv"),
    "answer.json": ("docs/reference/certificate-format.md", "json"),
    "colour.json": ("docs/guides/exporting.md", "json"),
}
"""The files that commands read, each with the page and the language of the block that shows it."""

COMMANDS = dict.fromkeys(
    command for page in PAGES for command in re.findall(r"^    constrain (.*)$", page, re.MULTILINE)
)
"""The commands of all pages."""


RUN_ELSEWHERE = re.compile(r"^serve |^play|s3://|--fetch")
"""Commands that run until they are stopped, or need a hub, or a store, which ``tests/batch/test_remote.py`` has."""


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


def test_commands_of_every_kind_are_shown() -> None:
    shown = {command.split()[0] for command in COMMANDS}
    assert shown >= {"batch", "check", "compile", "example", "explain", "generate", "grammars", "serve"}


@pytest.mark.slow
@pytest.mark.parametrize("command", [each for each in COMMANDS if not RUN_ELSEWHERE.search(each)])
def test_command_lines_run(command: str, tmp_path: Path) -> None:
    for name, (page, language) in FILES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        begin = text.index(f"`{name}`") if language == "csv" else 0  # the page has several
        content = re.search(rf"```{language}\n(.*?)```", text[begin:], re.DOTALL)
        assert content is not None
        (tmp_path / name).write_text(content[1], encoding="utf-8")
    shown, output = run(tmp_path, "-m", "constrain", *shlex.split(command)), shlex.split(command)[-1]
    assert shown or (tmp_path / output).stat().st_size


TABLES = str(ROOT / "benchmarks/readme.py")


@pytest.mark.slow
def test_tables_are_those_of_the_kept_reports(tmp_path: Path) -> None:
    marks = re.compile(r"^<!-- (\w+): benchmarks/", re.MULTILINE)
    kept = {path.stem for path in (ROOT / "benchmarks/results").glob("*.json")}
    assert sorted(name for page in PAGES for name in marks.findall(page)) == sorted({*kept, "comparison", "right"})
    assert marks.findall(README) == ["comparison", "right"]
    run(tmp_path, TABLES, "--check")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["processes", "comparison", "accuracy", "right"])
def test_a_table_that_is_not_its_report_is_told_and_written(name: str, tmp_path: Path) -> None:
    pages = {tmp_path / f"{number}.md": page for number, page in enumerate(PAGES) if "<!-- /" in page}
    for path, text in pages.items():
        path.write_text(
            re.sub(rf"^(<!-- {name}: .*-->)$", r"\1\nNo table.", text, flags=re.MULTILINE), encoding="utf-8"
        )
    chosen = [argument for path in pages for argument in ("--page", str(path))]
    checked = subprocess.run([sys.executable, TABLES, *chosen, "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 1
    assert f"not those of their reports: {name};" in checked.stderr
    assert f"written: {name}\n" in run(tmp_path, TABLES, *chosen, "--write")
    assert {path: path.read_text(encoding="utf-8") for path in pages} == pages


@pytest.mark.slow
def test_the_table_of_an_attack_has_its_numbers(tmp_path: Path) -> None:
    fates = [Fate("first", 400, 0.5), Fate("second", 429, 7.25)]
    report = Report(fates, [1.0, 1.0, 1.0], [1.5, 2.0, 1.5], (500.0, 512.0))
    origin = {"commit": "1234567", "date": "2026-11-25", "processor": "One", "cores": 2}
    written = {**origin, "server": ["--threads", "1"], **report.numbers()}
    (tmp_path / "attack.json").write_text(json.dumps(written), encoding="utf-8")
    (tmp_path / "README.md").write_text("<!-- attack: benchmarks/attack.py -->\n<!-- /attack -->\n", encoding="utf-8")
    run(tmp_path, TABLES, "--write", "--results", str(tmp_path), "--page", str(tmp_path / "README.md"))
    table = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "during 2 hostile requests, 4 at a time; refused within 5 seconds: 1, the slowest after 7.2 s" in table
    assert "options of the server: --threads 1. 2 cores (One); commit 1234567, 2026-11-25." in table
    assert "| alone | 3 | 1.00 s (1.00) | 1.00 s (1.00) | 500 MiB |" in table
    assert "| attacked | 3 | 1.50 s (1.50) | 1.95 s (1.95) | 512 MiB |" in table


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"alone": 1}, "1 requests before the attack tell no quantiles: 2 are needed"),
        ({"requests": 0}, "0 hostile requests are no attack: one is needed"),
    ],
)
def test_an_attack_that_is_too_short_says_what_is_needed(options: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        attack("http://127.0.0.1:9", 0, **options)


def test_an_attack_that_ends_at_once_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Done:
        """An attacker whose work is done once it is given any."""

        def __init__(self, *_: object) -> None: ...
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...
        def submit(self, *_: object) -> Future[list[Fate]]:
            done: Future[list[Fate]] = Future()
            done.set_result([Fate("only", 400, 0.1)])
            return done

    monkeypatch.setattr(attacks, "ProcessPoolExecutor", Done)
    monkeypatch.setattr(attacks, "_ask", lambda _: 1.0)
    with pytest.raises(ValueError, match=r"1 hostile requests was over .* had had 0 answers beside it: 2 are needed"):
        attack("http://127.0.0.1:9", os.getpid())
