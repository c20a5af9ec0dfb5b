"""The guides run on a Ray cluster of this machine, each as one program; ``Answers`` in ``map_partitions`` of Dask."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from constrain.ray import Answers, answer_schema
from tests.support.pages import blocks

pytest.importorskip("ray")

pytestmark = pytest.mark.slow


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


dd = pytest.importorskip("dask.dataframe")

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "name, age int"
MODEL = {"n_ctx": 512, "n_threads": 1, "parallel": 2}
PEOPLE = pd.DataFrame({"id": [3, 4, 5], "about": ["Ada is 36.", "Bo is 7.", None]}, index=[30, 40, 50])


def answer(frame: pd.DataFrame) -> pd.DataFrame:
    found: pd.DataFrame = Answers(schema=SCHEMA, prompt="about", id_column="id", max_tokens=60, model_options=MODEL)(
        frame
    )
    return found


def test_partitions_are_answered_as_one_table() -> None:
    people = dd.from_pandas(PEOPLE, npartitions=2)
    added: pa.Schema = answer_schema(SCHEMA, max_tokens=60)
    meta = pd.concat([people._meta, added.empty_table().to_pandas()], axis=1)
    found = people.map_partitions(answer, meta=meta).compute(scheduler="synchronous")
    assert list(found.index) == [30, 40, 50]
    assert list(found.dtypes) == list(meta.dtypes)
    expected = answer(PEOPLE)
    assert list(found["value"]) == list(expected["value"])
    assert found["text"].equals(expected["text"])
    assert found["error"].iloc[2]["error"] == "LineError"
