"""The guides on transformers and mlx-lm run, with a small model of random weights in the place of the reader's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import blocks
from tests.support.small_transformers import make_model, make_tokenizer


def run_page(page: str, folder: Path, *, parts: int) -> list[str]:
    """Runs all Python on a page as one program; the lines that it prints."""
    tokenizer = make_tokenizer("left")
    tokenizer.save_pretrained(folder / "my-model")
    make_model(len(tokenizer)).save_pretrained(folder / "my-model")
    code = [block.code for block in blocks() if block.page == page and block.language == "python"]
    assert len(code) == parts
    (folder / "page.py").write_text("\n\n".join(code), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_guide_on_transformers_runs_as_one_program(tmp_path: Path) -> None:
    age, colour = run_page("guides/transformers.md", tmp_path, parts=4)
    assert 0 <= int(age) <= 120
    assert colour in ('"red"', '"green"', '"blue"')


@pytest.mark.slow
def test_the_guide_on_mlx_runs_as_one_program(tmp_path: Path) -> None:
    pytest.importorskip("mlx_lm")
    first, age, colour = run_page("guides/mlx.md", tmp_path, parts=2)
    assert 0 <= int(first) <= 120
    assert 0 <= int(age) <= 120
    assert colour in ('"red"', '"green"', '"blue"')
