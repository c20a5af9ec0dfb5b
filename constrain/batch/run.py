"""Runs a batch: answers every prompt of a file once, even if it is interrupted and started again.

Answers are written in the order in which they finish; each names the line of the input that it belongs to.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from constrain.batch.lines import LineError
from constrain.batch.records import answer_object, error_object
from constrain.errors import ConstrainError
from constrain.given import read_given
from constrain.language.digest import spell_source

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from pathlib import Path

    from constrain.batch.answering import Answerer
    from constrain.batch.files import BatchFiles
    from constrain.batch.inputs import Input
    from constrain.batch.lines import Id
    from constrain.batch.scanning import Scan
    from constrain.generation.completion import Completion
    from constrain.generation.options import Options
    from constrain.language.source import Source

_MODEL_BEGINNING = 1 << 20
"""Bytes at the start of a model file that are hashed to recognize it: 1 MiB, which spares reading gigabytes."""

_TICK_SECONDS = 1
"""Seconds after which a batch without new answers shows its progress, and looks whether to upload something."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a batch.

    Attributes:
        known: number of lines that an earlier run answered.
        answered: number of lines that this run has answered.
        failed: number of lines that this run could not answer.
        failure: number and reason of the latest line, if it failed.
        warnings: warnings about the latest line's schema and tools that no earlier line caused.
    """

    known: int
    answered: int = 0
    failed: int = 0
    failure: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Outcome:
    line: int
    id: Id
    result: Completion | ConstrainError | LineError


def run(
    prompts: Input,
    files: BatchFiles,
    answer: Answerer,
    schema: str | Source | None,
    options: Options,
    *,
    voters: int | None = None,
    threads: int,
    rows: int | None = None,
) -> Iterator[Progress]:
    """Answers all lines that have no answer yet.

    Yields once before the first line, once after each, and each ``_TICK_SECONDS`` in between.

    Args:
        prompts: input: see ``read_task``.
        files: files that the answers are written to.
        answer: function that answers one line; ``threads`` threads call it.
        schema: JSON text or another source, for lines without a schema of their own.
        options: options for lines without options of their own. ``seed`` is the seed of line 1; each later line adds
            the number of its answers, so that equal prompts get different answers.
        voters: number of answers that vote, for lines that do not say it themselves; ``None`` for no vote.
        threads: number of lines that are answered at the same time.
        rows: number of rows to read, all by default. Rows that are added during this run wait for the next one.
    """
    progress = Progress(len(files.answered))
    yield progress
    remaining = ((number, line) for number, line in islice(prompts.read(), rows) if number not in files.answered)

    def attempt(number: int, line: Any, stop: Future[None]) -> _Outcome:
        found: Id = None
        try:
            task = prompts.task(number, line, schema, options, voters)
            found = task.id
            return _Outcome(number, found, answer(task, stop))
        except LineError as error:
            return _Outcome(number, found if error.id is None else error.id, error)
        except ConstrainError as error:
            return _Outcome(number, found, error)

    with contextlib.closing(_outcomes(remaining, attempt, threads, files.flush_due)) as outcomes:
        reported: set[str] = set()
        for each in outcomes:
            if each is None:
                yield replace(progress, failure=None, warnings=())
                continue
            named: dict[str, object] = {"line": each.line} if each.id is None else {"line": each.line, "id": each.id}
            if isinstance(each.result, Exception):
                files.error({**named, **error_object(each.result)})
                failure = f"line {each.line}: {each.result}"
                progress = replace(progress, failed=progress.failed + 1, failure=failure, warnings=())
            else:
                files.answer({**named, **answer_object(each.result)})
                report = each.result.report
                new = () if report is None else tuple(warning for warning in report.warnings if warning not in reported)
                reported.update(new)
                progress = replace(progress, answered=progress.answered + 1, failure=None, warnings=new)
            yield progress


def _outcomes(
    remaining: Iterable[tuple[int, Any]],
    attempt: Callable[[int, Any, Future[None]], _Outcome],
    threads: int,
    tick: Callable[[], None],
) -> Generator[_Outcome | None, None, None]:
    """Yields the outcome of each line as soon as it is known; reads only a little further ahead than it answers.

    ``tick``: function that is called at least each ``_TICK_SECONDS``; ``None`` is yielded if nothing is new by then.
    """
    stop: Future[None] = Future()
    waiting = iter(remaining)
    pending: set[Future[_Outcome]] = set()
    with ThreadPoolExecutor(threads, thread_name_prefix="constrain-batch") as pool:
        try:
            while True:
                for number, line in islice(waiting, 2 * threads - len(pending)):
                    pending.add(pool.submit(attempt, number, line, stop))
                if not pending:
                    return
                if not wait(pending, _TICK_SECONDS, return_when=FIRST_COMPLETED).done:
                    yield None
                yield from _take_answered(pending)
                for future in [future for future in pending if future.done()]:
                    future.result()  # raises
                tick()
        except (Exception, KeyboardInterrupt):
            yield from _take_answered(pending)  # no answer that is known is lost
            raise
        finally:
            stop.set_result(None)
            pool.shutdown(wait=False, cancel_futures=True)


def _take_answered(pending: set[Future[_Outcome]]) -> Iterator[_Outcome]:
    """Yields the known outcomes, by line, and takes them out of ``pending``; futures with errors stay there."""
    while done := [future for future in pending if future.done() and not future.exception()]:
        for future in sorted(done, key=lambda each: each.result().line):
            pending.remove(future)
            yield future.result()


def settings(scan: Scan, schema: str | Source | None, model: Path, options: Options) -> dict[str, object]:
    """Returns everything that answers depend on as JSON values, so that a change is noticed. Raises ``OSError``.

    ``scan``: facts about the input.
    """
    with model.open("rb") as weights:
        beginning = hashlib.sha256(weights.read(_MODEL_BEGINNING)).hexdigest()
    written = None if schema is None else schema.encode() if isinstance(schema, str) else spell_source(schema)
    return {
        "input": scan.settled,
        "schema": {"sha256": None if written is None else hashlib.sha256(written).hexdigest()},
        "model": {"name": model.name, "bytes": model.stat().st_size, "sha256 of the first MiB": beginning},
        **options,
        **({"sources": {"sha256": _digest(options["sources"])}} if "sources" in options else {}),
        **({"tables": {"sha256": _digest(read_given(options).bound)}} if "tables" in options else {}),
        **({"registry": {"sha256": _digest(options["registry"])}} if "registry" in options else {}),
    }


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
