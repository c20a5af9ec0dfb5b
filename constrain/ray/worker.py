"""``Answers``: the class that answers tables of rows in one process, with a model of its own; and its columns."""

from __future__ import annotations

import logging
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from constrain.batch.answering import READY, compile_ahead, write_answers
from constrain.batch.lines import LineError
from constrain.batch.tables.cells import read_rows
from constrain.batch.tables.columns import answer_columns
from constrain.certificates.certificate import chain
from constrain.errors import ConstrainError
from constrain.generation.completion import Completion
from constrain.generation.exclusions import refuse_together
from constrain.generation.options import read_voters, split_options
from constrain.llama.model import DEFAULT_PARALLEL, Model
from constrain.ray.metrics import make_metrics
from constrain.ray.rows import RowReader

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from typing_extensions import Unpack

    from constrain.batch.tables.cells import RawRow
    from constrain.generation.options import ChatOptions
    from constrain.ray.rows import PromptOf

_log = logging.getLogger("constrain.ray")

_Outcomes: TypeAlias = "list[Completion | ConstrainError | LineError]"


class Answers:
    """Answers tables of rows: for ``map_batches`` of Ray Data, ``mapInArrow`` of Spark, ``map_partitions`` of Dask.

    Each process that makes an object has one model. Rows never raise: an answer that failed has its reason in the
    column ``error``. An answer depends on its row, the options and the model only.

    Args:
        model: path of a GGUF file on each machine; ``None`` for the small model of the ``demo`` extra.
        schema: schema or grammar of all answers, as for ``complete``.
        prompt: column with texts or lists of messages; a template with columns in braces, such as
            ``"Who is {name}?"``; or a function from a row (a dict) to a text or messages.
        id_column: column that names the rows, each with another text or number. The name makes the seed of a row:
            ``seed`` plus the number (times ``n``). Without it, rows with equal prompts have equal seeds.
        source_columns: columns with the texts to quote from, by name of the source (``constrain.Quote``).
        n: number of answers to each row. Without ``vote``, each is a row of its own, numbered from 0 in the column
            ``sample``.
        vote: whether the ``n`` answers become one, as for ``complete``.
        column_prefix: beginning of the names of the new columns.
        model_options: further arguments of ``Model``, such as ``{"n_ctx": 8192}``. ``n_threads`` is by default the
            number of CPUs that Ray gives to the process.
        options: options of ``complete``, for all answers. ``seed`` is 0 by default.

    The columns of an answer are ``value`` (in a type that follows the schema; JSON as text if the values of the schema
    have no type in common, and with tools; the text itself for other answers), ``text``, ``finish_reason`` and
    ``usage`` as in ``Completion``, ``confidence`` (the probability of the whole value, with the option), ``details``
    (other members of an answer of ``constrain batch`` as JSON: fields, quotes, agreement, captures and more),
    ``certificate`` (with the option: JSON, which names the certificate before it in the table), and ``error`` (null,
    or what ``constrain batch`` writes to its file of errors).

    Raises the errors of ``complete`` for options and schemas that no answer can have, and ``ValueError`` for columns
    that are not there, and for two columns of one name.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        schema: Any = None,
        prompt: PromptOf = "prompt",
        id_column: str | None = None,
        source_columns: Mapping[str, str] | None = None,
        n: int | None = None,
        vote: bool = False,
        column_prefix: str = "",
        model_options: Mapping[str, Any] | None = None,
        **options: Unpack[ChatOptions],
    ) -> None:
        check_options(n, vote=vote, options=options)
        voters = n if vote else None
        self._n = 1 if vote else n or 1
        self._reader = RowReader(prompt, id_column, dict(source_columns or {}), schema, options, voters, self._n)
        self._columns = answer_columns(
            schema,
            has_tools=bool(options.get("tools")),
            has_samples=self._n > 1,
            has_certificates=bool(options.get("certificate")),
        )
        self._prefix = column_prefix
        given = {"parallel": DEFAULT_PARALLEL, "n_threads": _assigned_cpus(), **(model_options or {})}
        self._model = Model(model, **given)
        self._metrics = make_metrics()
        self.compile(self._model, schema, options)

    def compile(self, model: Model, schema: Any, options: ChatOptions) -> None:
        """Compiles the schema of all rows. Raises the errors of ``constrain.compile``."""
        compile_ahead(model, schema, options)

    def __call__(self, batch: Any) -> Any:
        """Returns a table with the columns of a table and those of the answers.

        ``batch``: a ``pyarrow.Table``, a ``pandas.DataFrame``, or a dict of NumPy arrays; the result is of the same
        kind. Data frames keep their index.
        """
        table = _as_table(batch)
        self._reader.check(table.column_names)
        added = self._columns.schema()
        names = [self._prefix + name for name in added.names]
        if taken := sorted({*names} & {*table.column_names}):
            raise ValueError(f"the table has a column {taken[0]!r} already; give a column_prefix, such as 'answer_'")
        outcomes = self._answer(read_rows(table.select(self._reader.needed(table.column_names))))
        kept = table if self._n == 1 else table.take([row for row in range(len(table)) for _ in range(self._n)])
        records = self._records(outcomes)
        for name, column, kind in zip(names, added.names, added.types, strict=True):
            kept = kept.append_column(name, pa.array([record[column] for record in records], kind))
        return _like(batch, kept, self._n)

    def _records(self, outcomes: list[_Outcomes]) -> list[dict[str, Any]]:
        """Returns the values of the columns; each certificate names the one before it in the table."""
        found, last = [], None
        for row in outcomes:
            for sample, each in enumerate(row):
                outcome = each
                if isinstance(each, Completion) and each.certificate is not None:
                    certificate = chain(each.certificate, last)
                    outcome, last = replace(each, certificate=certificate), certificate["sha256"]
                found.append(self._columns.record(outcome, sample))
        return found

    def _answer(self, rows: list[RawRow]) -> list[_Outcomes]:
        """Returns the answers to each row, or errors in their places. If the call ends early, so do the answers."""
        stop: Future[None] = Future()
        threads = self._model.parallel + READY
        with ThreadPoolExecutor(threads, thread_name_prefix="constrain-rows") as pool:
            try:
                return list(pool.map(partial(self._answer_row, stop=stop), rows))
            finally:
                stop.set_result(None)
                pool.shutdown(wait=False, cancel_futures=True)

    def _answer_row(self, row: RawRow, stop: Future[None]) -> _Outcomes:
        name, begun = None, time.monotonic()
        outcomes: _Outcomes
        try:
            task = self._reader.read(row)
            name = task.id
            outcomes = [*write_answers(self._model, task, stop, self._n)]
        except (ConstrainError, LineError) as error:
            name = getattr(error, "id", None) if name is None else name
            outcomes = [error] * self._n
        for outcome in outcomes:
            if not isinstance(outcome, Completion):
                _log.warning("row %r has no answer: %s", name, outcome)
        self._metrics.note(outcomes, time.monotonic() - begun)
        return outcomes


def answer_schema(
    schema: Any = None,
    *,
    n: int | None = None,
    vote: bool = False,
    column_prefix: str = "",
    **options: Unpack[ChatOptions],
) -> pa.Schema:
    """Returns the columns that ``Answers`` adds to a table, as a ``pyarrow.Schema``; no model is needed.

    Spark and Dask ask for the columns of a result before they compute it.

    Args:
        schema: schema or grammar of all answers, as for ``Answers``.
        n: number of answers to each row, as for ``Answers``.
        vote: whether these become one.
        column_prefix: beginning of the names of the columns.
        options: options of ``complete``, as for ``Answers``.

    Raises the errors of ``Answers`` for options that no answer can have, and ``SchemaError`` for a schema that cannot
    be read.
    """
    check_options(n, vote=vote, options=options)
    has_samples = not vote and (n or 1) > 1
    columns = answer_columns(
        schema,
        has_tools=bool(options.get("tools")),
        has_samples=has_samples,
        has_certificates=bool(options.get("certificate")),
    )
    added = columns.schema()
    return pa.schema([field.with_name(column_prefix + field.name) for field in added])


def check_options(n: int | None, *, vote: bool, options: ChatOptions) -> None:
    """Raises ``TypeError`` and ``ValueError`` for options that no answer can have."""
    read_voters(options, n if vote else None, vote=vote)
    if n is not None and n < 1:
        raise ValueError(f"n is {n}; it must be 1 or more")
    refuse_together(trace=options.get("trace"), table=True)
    split_options(options)


def _as_table(batch: Any) -> pa.Table:
    if isinstance(batch, pa.Table):
        return batch
    if isinstance(batch, dict):
        return pa.table({name: list(column) for name, column in batch.items()})
    return pa.Table.from_pandas(batch, preserve_index=False)


def _like(given: Any, table: pa.Table, n: int) -> Any:
    """Returns a table as another one is kept; its rows stand ``n`` times, and so does the index of a data frame."""
    if isinstance(given, pa.Table):
        return table
    if isinstance(given, dict):
        return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    return table.to_pandas().set_axis(given.index.repeat(n))


def _assigned_cpus() -> int | None:
    """Returns the CPUs that Ray gives to this process; ``None`` outside of Ray."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    if context.get_actor_id() is None and context.get_task_id() is None:  # the program that started Ray
        return None
    found = context.get_assigned_resources().get("CPU")
    return None if not found else max(1, int(found))
