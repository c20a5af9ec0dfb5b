"""The guide on transformers runs, with a small model of random weights in the place of the reader's."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.pages import blocks
from tests.support.small_transformers import make_model, make_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "guides/transformers.md"


@pytest.mark.slow
def test_the_guide_runs_as_one_program(tmp_path: Path) -> None:
    tokenizer = make_tokenizer("left")
    tokenizer.save_pretrained(tmp_path / "my-model")
    make_model(len(tokenizer)).save_pretrained(tmp_path / "my-model")
    parts = [block.code for block in blocks() if block.page == PAGE and block.language == "python"]
    assert len(parts) == 4
    (tmp_path / "page.py").write_text("\n\n".join(parts), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    age, colour = done.stdout.splitlines()
    assert 0 <= int(age) <= 120
    assert colour in ('"red"', '"green"', '"blue"')
