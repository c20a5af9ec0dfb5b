"""``Answers`` in ``mapInArrow`` and ``mapInPandas`` of Spark, whose 430 MB no extra installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import blocks

pytest.importorskip("pyspark", reason="pip install pyspark")


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java"),
]

IN_PANDAS = """

def answer_frames(frames):
    answers = Answers(prompt="Who is this? {about}", model_options={"n_threads": 1}, **ASKED)
    for frame in frames:
        yield answers(frame)


def main():
    in_arrow = people.mapInArrow(answer, columns).collect()
    in_pandas = people.mapInPandas(answer_frames, columns).collect()
    assert in_arrow == in_pandas
    assert [row.value.age for row in in_arrow] == [36, 7]
    assert [row.usage.draft_tokens for row in in_arrow] == [0, 0]
    assert [row.error for row in in_arrow] == [None, None]
    missing = spark.createDataFrame([(2, None)], people.schema)
    assert missing.mapInArrow(answer, columns).collect()[0].error.error == "LineError"


main()
"""


def test_the_guide_runs_with_rows_in_arrow_and_in_pandas(tmp_path: Path) -> None:
    (page,) = (block.code for block in blocks() if block.page == "guides/ray-spark.md" and "pyspark" in block.code)
    (tmp_path / "page.py").write_text(page + IN_PANDAS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Row(name=" in done.stdout
