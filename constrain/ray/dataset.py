"""``answers``: a model answers the rows of a Ray dataset, in as many processes as the cluster has room for."""

from __future__ import annotations

import importlib
import logging
import math
from typing import TYPE_CHECKING, Any

from constrain.llama.model import DEFAULT_PARALLEL
from constrain.ray.checkpoints import with_checkpoint
from constrain.ray.rows import RowReader
from constrain.ray.shipping import Shipped, receive, ship
from constrain.ray.worker import Answers, check_options

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from ray.data import Dataset
    from typing_extensions import Unpack

    from constrain.generation.options import ChatOptions
    from constrain.llama.model import Model
    from constrain.ray.rows import PromptOf

_log = logging.getLogger("constrain.ray")

ROWS_AT_ONCE = 8
"""Rows of one call of an actor, for each answer that it writes at once: 8, so that few wait for the last ones."""

MOST_CPUS = 4
"""CPUs of an actor, if the cluster has a node with so many: 4. A small model gains little from more."""


def answers(
    dataset: Dataset,
    *,
    model: str | os.PathLike[str] | None = None,
    schema: Any = None,
    prompt: PromptOf = "prompt",
    id_column: str | None = None,
    source_columns: Mapping[str, str] | None = None,
    n: int | None = None,
    vote: bool = False,
    column_prefix: str = "",
    concurrency: int | tuple[int, int] = (1, 16),
    cpus_per_actor: float | None = None,
    batch_size: int | None = None,
    checkpoint: str | None = None,
    model_options: Mapping[str, Any] | None = None,
    actor_options: Mapping[str, Any] | None = None,
    **options: Unpack[ChatOptions],
) -> Dataset:
    """Has a model answer the rows of a Ray dataset; returns a dataset with the columns of the answers besides.

    Each row gets its answer, or the reason why it has none in the column ``error``. Answers depend on the row, the
    options and the model only, so that a batch that Ray tries again gives the same rows.

    Args:
        dataset: dataset of rows.
        model: path of a GGUF file on each node; ``None`` for the small model of the ``demo`` extra.
        schema: schema or grammar of all answers, as for ``complete``.
        prompt: column with texts or messages, template, or function, as for ``Answers``.
        id_column: column that names the rows, for seeds and checkpoints.
        source_columns: columns with the texts to quote from, by name of the source.
        n: number of answers to each row.
        vote: whether the ``n`` answers become one.
        column_prefix: beginning of the names of the new columns.
        concurrency: number of actors, or the least and the most; each has a model of its own. Actors without work may
            end below the least, so that reading has a CPU where a node was lost.
        cpus_per_actor: CPUs of an actor, and threads of its model; by default 4, or those of the largest node.
        batch_size: rows of one call of an actor, and of a block of the result, which is written at once; by default 8
            for each answer that the model writes at once.
        checkpoint: folder of Ray's checkpoint, which all nodes see: a later run leaves out the rows whose answers
            were written. It needs rows that are read from files, and an ``id_column`` of these files, in which each
            row has another text or number. The column is read once before the job.
        model_options: further arguments of ``Model``, such as ``{"n_ctx": 8192}``.
        actor_options: further arguments of ``map_batches`` for the actors, such as ``{"num_gpus": 1}``.
        options: options of ``complete``, for all answers. ``seed`` is 0 by default.

    Raises the errors of ``complete`` for options and schemas that no answer can have, and ``ValueError`` for columns
    that are not there, as far as the dataset knows its columns before it is read, and for a checkpoint of rows that are
    not read from files, or whose ids are missing or occur twice.
    """
    from ray.data import ActorPoolStrategy

    check_options(n, vote=vote, options=options)
    reader = RowReader(prompt, id_column, dict(source_columns or {}), schema, options)
    known = dataset.columns(fetch_if_missing=False)
    if known is not None:
        reader.check(known)
    if checkpoint is not None:
        dataset = with_checkpoint(dataset, id_column, checkpoint)
    least, most = (concurrency, concurrency) if isinstance(concurrency, int) else concurrency
    parallel = (model_options or {}).get("parallel", DEFAULT_PARALLEL)
    cpus = choose_cpus(cpus_per_actor, "cpus_per_actor")
    shipped = ship(model, schema, options)
    sizes = {"n_threads": max(1, int(cpus)), **(model_options or {})}
    given = {
        "model": model, "schema": schema, "prompt": prompt, "id_column": id_column, "n": n, "vote": vote,
        "source_columns": source_columns, "column_prefix": column_prefix, "model_options": sizes, **options
    }  # fmt: skip
    rows = ROWS_AT_ONCE * parallel if batch_size is None else batch_size
    spare = 1 if checkpoint is None else 2  # CPUs for reading and for the checkpoint
    fewest = max(1, least - math.ceil(spare / cpus))  # idle actors make room where a lost node had CPUs to spare
    return dataset.repartition(target_num_rows_per_block=rows).map_batches(  # Ray's blocks have 128 MB: whole jobs
        _Actor,
        fn_constructor_args=(shipped,),
        fn_constructor_kwargs=given,
        batch_format="pyarrow",
        batch_size=rows,
        compute=ActorPoolStrategy(min_size=fewest, max_size=most, initial_size=least),
        num_cpus=_reserved_cpus(cpus, least, spare),
        udf_modifying_row_count=bool(n and not vote and n > 1),
        **(actor_options or {}),
    )


class _Actor(Answers):
    """``Answers`` with a constraint that the program which started the job has compiled."""

    def __init__(self, shipped: Shipped | None, **given: Any) -> None:
        self._shipped = shipped
        super().__init__(**given)

    def compile(self, model: Model, schema: Any, options: ChatOptions) -> None:
        receive(model, schema, options, self._shipped)


def choose_cpus(wanted: float | None, name: str) -> float:
    """Returns the CPUs of an actor. Warns if no node has as many as wanted: the actors then wait for one.

    ``name``: name of the argument.
    """
    ray: Any = importlib.import_module("ray")
    if not ray.is_initialized():
        ray.init()
    largest = max((node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]), default=0)
    if wanted is None:
        return min(MOST_CPUS, largest) or 1
    if wanted > largest:
        _log.warning("%s is %s; no node has more than %s CPUs, so actors wait for one", name, wanted, largest)
    return wanted


def _reserved_cpus(cpus: float, actors: int, spare: int) -> float:
    """Returns the CPUs that Ray reserves for an actor: fewer than it uses, where the cluster would have none left.

    Actors that take every CPU would wait for rows forever, since reading takes a CPU, and a checkpoint another.
    """
    ray: Any = importlib.import_module("ray")
    total: float = sum(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"])
    if cpus > total:  # a node that is still to come has them
        return cpus
    return min(cpus, max(0.0, total - spare) / actors)
