"""``Answers`` in ``map_partitions`` of Dask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest

from constrain.ray import Answers, answer_schema

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


@pytest.mark.slow
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
