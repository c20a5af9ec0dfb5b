"""Runs a batch: answers every prompt of a file once, even if it is interrupted and started again.

Answers are written in the order in which they finish; each names the line of the input that it belongs to.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from constrain.batch.lines import LineError, Task, read_lines, read_task
from constrain.chat.reading.reply import Refusal, Reply
from constrain.chat.tools.calls import FunctionCall
from constrain.engine.captures import captures_object
from constrain.errors import ConstrainError, OutputValidationError
from constrain.generation.completion import agreement_object, fields_object, limits_object, quotes_object
from constrain.generation.logprobs import logprob_objects
from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from pathlib import Path

    from constrain.batch.files import BatchFiles
    from constrain.batch.lines import Id
    from constrain.chat.tools.calls import ToolCall
    from constrain.generation.completion import Completion
    from constrain.generation.options import Options
    from constrain.language.source import Source
    from constrain.llama.model import Model

_MODEL_BEGINNING = 1 << 20
"""Bytes at the start of a model file that are hashed to recognize it: 1 MiB, which spares reading gigabytes."""

Answerer: TypeAlias = "Callable[[Task, Future[None]], Completion]"
"""A function that answers one task, or gives up once the future is done.

A ``ConstrainError`` or ``LineError`` fails this task only; every other exception ends the batch.
"""


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
    prompts: Path,
    files: BatchFiles,
    answer: Answerer,
    schema: str | Source | None,
    options: Options,
    *,
    voters: int | None = None,
    threads: int,
) -> Iterator[Progress]:
    """Answers all lines that have no answer yet; yields once before the first line and once after each.

    Args:
        prompts: input as JSON Lines: see ``read_task``.
        files: files that the answers are written to.
        answer: function that answers one line; ``threads`` threads call it.
        schema: JSON text or another source, for lines without a schema of their own.
        options: options for lines without options of their own. ``seed`` is the seed of line 1; each later line adds
            the number of its answers, so that equal prompts get different answers.
        voters: number of answers that vote, for lines that do not say it themselves; ``None`` for no vote.
        threads: number of lines that are answered at the same time.
    """
    progress = Progress(len(files.answered))
    yield progress
    remaining = ((number, line) for number, line in read_lines(prompts) if number not in files.answered)

    def attempt(number: int, line: bytes, stop: Future[None]) -> _Outcome:
        found: Id = None
        try:
            task = read_task(number, line, schema, options, voters)
            found = task.id
            return _Outcome(number, found, answer(task, stop))
        except LineError as error:
            return _Outcome(number, found if error.id is None else error.id, error)
        except ConstrainError as error:
            return _Outcome(number, found, error)

    with contextlib.closing(_outcomes(remaining, attempt, threads)) as outcomes:
        reported: set[str] = set()
        for each in outcomes:
            named: dict[str, object] = {"line": each.line} if each.id is None else {"line": each.line, "id": each.id}
            if isinstance(each.result, Exception):
                files.error({**named, **_reason(each.result)})
                failure = f"line {each.line}: {each.result}"
                progress = replace(progress, failed=progress.failed + 1, failure=failure, warnings=())
            else:
                files.answer({**named, **_answer(each.result)})
                report = each.result.report
                new = () if report is None else tuple(warning for warning in report.warnings if warning not in reported)
                reported.update(new)
                progress = replace(progress, answered=progress.answered + 1, failure=None, warnings=new)
            yield progress


def _outcomes(
    remaining: Iterable[tuple[int, bytes]],
    attempt: Callable[[int, bytes, Future[None]], _Outcome],
    threads: int,
) -> Generator[_Outcome, None, None]:
    """Yields the outcome of each line as soon as it is known; reads only a little further ahead than it answers."""
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
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            stop.set_result(None)
            pool.shutdown(wait=False, cancel_futures=True)


def answerer(model: Model, schema: str | Source | None, options: Options) -> Answerer:
    """Returns a function that lets a model answer tasks.

    Raises the errors of ``complete`` if ``schema``, the schema of most lines, is invalid.
    """
    from constrain.engine.compiling import compile_any
    from constrain.generation.batch import decide_outcomes, outcome_of
    from constrain.generation.job import Run
    from constrain.generation.options import compile_options
    from constrain.generation.planning import prepare
    from constrain.quotes.keyword import may_have_quotes

    if schema is not None and not (isinstance(schema, str) and may_have_quotes(schema)):  # quotes depend on the line
        compile_any(schema, model.vocabulary, close_objects=True, **compile_options(options, schema))

    def answer(task: Task, stop: Future[None]) -> Completion:
        try:
            job = prepare(model, task.prompt, task.schema, task.options)
        except ValueError as error:
            raise LineError(str(error)) from error
        samples = [job] if task.voters is None else job.samples(task.voters)
        runs = [Run(each) for each in samples]
        unfinished = {run.request.done for run in runs}
        try:
            for run in runs:
                run.submit()
            while unfinished and not stop.done():
                unfinished = wait((*unfinished, stop), return_when=FIRST_COMPLETED).not_done - {stop}
        finally:
            for done in unfinished:
                done.cancel()  # The model drops the request before its next step.
        outcomes = [outcome_of(run) for run in runs]
        decided = outcomes[0] if task.voters is None else decide_outcomes(samples[0], outcomes)
        if isinstance(decided, ConstrainError):
            raise decided
        return decided

    return answer


def settings(prompts: Path, schema: str | Source | None, model: Path, options: Options) -> dict[str, object]:
    """Returns everything that answers depend on as JSON values, so that a change is noticed. Raises ``OSError``."""
    with prompts.open("rb") as file, model.open("rb") as weights:
        content = hashlib.sha256()
        while piece := file.read(1 << 20):
            content.update(piece)
        beginning = hashlib.sha256(weights.read(_MODEL_BEGINNING)).hexdigest()
    written = schema if isinstance(schema, str) else repr(schema)
    return {
        "input": {"sha256": content.hexdigest()},
        "schema": {"sha256": None if schema is None else hashlib.sha256(written.encode()).hexdigest()},
        "model": {"name": model.name, "bytes": model.stat().st_size, "sha256 of the first MiB": beginning},
        **options,
        **({"sources": {"sha256": _digest(options["sources"])}} if "sources" in options else {}),
        **({"registry": {"sha256": _digest(options["registry"])}} if "registry" in options else {}),
    }


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _answer(completion: Completion) -> dict[str, object]:
    answer: dict[str, object] = {
        "value": _json_value(completion.value),
        "text": completion.text,
        "finish_reason": completion.finish_reason,
        "usage": asdict(completion.usage),
    }
    if completion.shortened:
        answer["shortened"] = completion.shortened
    answer |= limits_object(completion)
    answer |= captures_object(completion.captures)
    answer |= agreement_object(completion)
    answer |= fields_object(completion)
    answer |= quotes_object(completion)
    if completion.text_logprobs is not None:
        answer["logprobs"] = logprob_objects(completion.text_logprobs)
    texts = {"reasoning": completion.reasoning, "draft": completion.draft}
    return {**answer, **{name: text for name, text in texts.items() if text}}


def _json_value(value: object) -> object:
    """Returns a value as JSON; for a line with tools, the content and the calls."""
    match value:
        case Refusal(text):
            return {"refusal": text}
        case Reply(calls, content, _, refusal):
            said = {"content": content, "calls": [_json_call(call) for call in calls]}
            return said if refusal is None else {**said, "refusal": refusal}
    return value


def _json_call(call: ToolCall) -> dict[str, object]:
    if isinstance(call, FunctionCall):
        return {"id": call.id, "name": call.name, "arguments": read_answer(call.text)}
    return {"id": call.id, "name": call.name, "input": call.text, **captures_object(call.captures)}


def _reason(error: ConstrainError | LineError) -> dict[str, object]:
    if isinstance(error, LineError):
        return {"error": "LineError", "message": str(error)}
    found: dict[str, object] = {"error": type(error).__name__, "message": error.message}
    if error.pointer is not None:
        found["pointer"] = error.pointer
    if isinstance(error, OutputValidationError):
        found["text"] = error.text
    return found
