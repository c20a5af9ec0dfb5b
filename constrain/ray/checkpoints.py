"""Checkpoints of a job: which datasets can have one, and whether each of their rows has an id of its own."""

from __future__ import annotations

import importlib
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from constrain.generation.exclusions import refuse_together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ray.data import Dataset

_READERS = ("Read", "ReadFiles")
"""Names of the operators of Ray behind which it leaves out the rows that were written."""

_NAMED = 1_000
"""Ids that are counted to name one that occurs twice: 1,000; one suffices, unless its hash deceives."""


def with_checkpoint(dataset: Dataset, id_column: str | None, path: str) -> Dataset:
    """Returns a copy of a dataset with a checkpoint; others that come from the same dataset have none.

    Reads the column of ids once. Raises ``ValueError`` if rows could be lost or answered again: if ids are missing or
    occur twice, or if rows do not come from files, since Ray checks only rows from files against the checkpoint.
    """
    refuse_together(checkpoint=True, id_column=id_column is not None)
    assert id_column is not None
    from ray.data import Dataset
    from ray.data.checkpoint import CheckpointConfig

    _require_ids([_leaf(dataset, each) for each in _readers(dataset._logical_plan.dag)], id_column)
    found: Dataset = Dataset.copy(dataset, _deep_copy=True)  # a shallow copy shares its context
    found.context.checkpoint_config = CheckpointConfig(id_column, path, delete_checkpoint_on_success=False)
    return found


def _readers(operator: Any) -> Iterator[Any]:
    """Yields the operators that read the files of a dataset. Raises ``ValueError`` if rows come from elsewhere."""
    left = [operator]
    while left:
        each = left.pop()
        if type(each).__name__ in _READERS:
            yield each
        elif each.input_dependencies:
            left.extend(each.input_dependencies)
        else:
            raise ValueError(
                "checkpoint is for rows that are read from files, and some of these rows are in memory, so that none "
                "would be left out; write them with write_parquet, and give answers what read_parquet reads"
            )


def _leaf(dataset: Dataset, reader: Any) -> Dataset:
    """Returns the dataset of the rows of files, as they are before the functions that a dataset applies to them."""
    from ray.data import Dataset
    from ray.data._internal.logical.interfaces import LogicalPlan
    from ray.data._internal.stats import DatasetStats

    context = dataset.context.copy()
    context.checkpoint_config = None
    return Dataset(LogicalPlan(reader, context), context, DatasetStats(metadata={}, parent=None))


def _require_ids(files: list[Dataset], column: str) -> None:
    """Raises ``ValueError`` unless each row has an id of its own."""
    hashes, missing = [], 0
    for each in files:
        if column not in (names := each.columns() or []):
            raise ValueError(
                f"id_column is {column!r}, and the files have the columns {', '.join(names)}; with a checkpoint, ids "
                "are in the files"
            )
        for found in _map(each, column, _hash_ids):
            hashes.append(found["hash"])
            missing += int(found["missing"].sum())
    if missing:
        raise ValueError(
            f"{missing} rows have no id in the column {column!r} (null); with a checkpoint, each row needs one"
        )
    if not hashes:
        return
    ordered = np.sort(np.concatenate(hashes))
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])[:_NAMED]
    if not len(repeated):
        return
    counts: Counter[Any] = Counter()
    for each in files:
        for found in _map(each, column, partial(_count_ids, hashes=repeated)):
            counts.update(dict(zip(found["id"].tolist(), found["count"].tolist(), strict=True)))
    [(name, count)] = counts.most_common(1)
    if count > 1:
        raise ValueError(
            f"the id {name!r:.80} occurs {count} times in the column {column!r}; with a checkpoint, each row needs an "
            "id of its own, since all rows of an id count as done once one is written"
        )


def _map(dataset: Dataset, column: str, function: Any) -> Any:
    """Returns the results of a function of blocks with ids, as dicts of NumPy arrays."""
    mapped = dataset.select_columns([column]).map_batches(function, batch_format="pyarrow", batch_size=None)
    return mapped.iter_batches(batch_size=None, batch_format="numpy")


def _hash_ids(table: pa.Table) -> pa.Table:
    """Returns a hash of 64 bits for each id, and whether it is missing: 9 bytes a row instead of a text."""
    return pa.table({"hash": _hashes(table), "missing": table[0].to_pandas().isna().to_numpy()})


def _count_ids(table: pa.Table, hashes: Any) -> pa.Table:
    """Returns the ids with some hashes, and how often they occur."""
    chosen = table[0].filter(pa.array(np.isin(_hashes(table), hashes)))
    counted = chosen.combine_chunks().value_counts()
    return pa.table({"id": counted.field(0), "count": counted.field(1)})


def _hashes(table: pa.Table) -> Any:
    pandas: Any = importlib.import_module("pandas")
    return pandas.util.hash_pandas_object(table[0].to_pandas(), index=False, categorize=False).to_numpy()
