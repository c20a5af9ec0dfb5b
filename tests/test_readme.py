"""The examples of the README, as they stand there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guide import SERVER

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python_examples_run(tmp_path: Path) -> None:
    program = tmp_path / "readme.py"
    examples = [each for each in EXAMPLES if SERVER not in each]  # the others: tests/server/test_guide.py
    program.write_text("\n".join(examples), encoding="utf-8")
    run(tmp_path, str(program))


def test_the_first_command_prints_what_the_readme_says(tmp_path: Path) -> None:
    command = re.search(r'^    pip install "\.\[demo\]" && constrain (\S+)$', README, re.MULTILINE)
    assert command is not None
    said = re.search(r"^    (Person\(name='Ada', age=36), hobbies=\[.*\]\)$", README, re.MULTILINE)
    assert said is not None
    # hobbies may be told otherwise on another processor
    assert run(tmp_path, "-m", "constrain", command[1]).startswith(said[1])


@pytest.mark.parametrize("command", re.findall(r"^    constrain (.*)$", README, re.MULTILINE))
def test_command_lines_run(command: str, tmp_path: Path) -> None:
    for name, language in (("person.json", "json"), ("people.jsonl", "jsonl")):
        content = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
        assert content is not None
        (tmp_path / name).write_text(content[1], encoding="utf-8")
    assert run(tmp_path, "-m", "constrain", *shlex.split(command)) or (tmp_path / "answers.jsonl").stat().st_size


NOT_KEPT = {"masks", "generation", "batch", "budget", "serving"}
"""Tables whose reports are not in ``benchmarks/results``; whoever keeps one removes it here."""


def test_tables_are_written_from_kept_reports(tmp_path: Path) -> None:
    tables, results = set(re.findall(r"^<!-- (\w+): benchmarks/", README, re.MULTILINE)), ROOT / "benchmarks/results"
    kept = tables & {path.stem for path in results.glob("*.json")}
    assert tables - kept == NOT_KEPT
    copy = tmp_path / "README.md"
    copy.write_text(README, encoding="utf-8")
    reports = [str(results / f"{name}.json") for name in sorted(kept)]
    run(tmp_path, str(ROOT / "benchmarks/readme.py"), *reports, "--readme", str(copy))
    assert copy.read_text(encoding="utf-8") == README
