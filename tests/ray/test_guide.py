"""The guides run on a Ray cluster of this machine, each as one program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import blocks

pytest.importorskip("ray")


def run(page: str, folder: Path) -> list[str]:
    """The lines that the only program of a page prints."""
    (code,) = (block.code for block in blocks() if block.page == f"guides/{page}" and block.language == "python")
    (folder / "page.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.long
def test_the_first_rows_are_answered(tmp_path: Path) -> None:
    first, second = run("ray.md", tmp_path)
    assert first.startswith("0 {'name': ")
    assert second.endswith("} None")


@pytest.mark.long
def test_a_job_leaves_its_answers(tmp_path: Path) -> None:
    run("ray-cluster.md", tmp_path)
    assert list((tmp_path / "job" / "answers").glob("*.parquet"))
