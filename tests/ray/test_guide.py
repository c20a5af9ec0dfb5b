"""The guide runs on a Ray cluster of this machine, as one program."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.pages import blocks

pytest.importorskip("ray")

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_the_guide_runs_as_one_program(tmp_path: Path) -> None:
    code = [block.code for block in blocks() if block.page == "guides/ray.md" and block.language == "python"]
    assert len(code) == 3
    last = 'import pandas as pd\nprint(list(next(answer([pd.DataFrame({"about": ["Ada is 36."]})]))["value"]))\n'
    (tmp_path / "page.py").write_text("\n\n".join([*code, last]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert first.startswith("0 {'name': ")
    assert second.endswith("} None")
    assert third.startswith("[{'name': ")
    assert list((tmp_path / "job" / "answers").glob("*.parquet"))
