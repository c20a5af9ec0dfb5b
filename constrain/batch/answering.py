"""Answers to the tasks of a batch, by a model in this process."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, TypeAlias

from constrain.batch.lines import LineError
from constrain.errors import ConstrainError

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.batch.lines import Task
    from constrain.generation.completion import Completion
    from constrain.generation.options import Options
    from constrain.language.source import Source
    from constrain.llama.model import Model

Answerer: TypeAlias = "Callable[[Task, Future[None]], Completion]"
"""A function that answers one task, or gives up once the future is done.

A ``ConstrainError`` or ``LineError`` fails this task only; every other exception ends the batch.
"""


READY = 2
"""Tasks prepared ahead while ``parallel`` others are answered: 2, so that the model never waits for one."""


def depends_on_task(schema: object, options: Options) -> bool:
    """Returns whether the language of a schema may depend on each task: on its sources, or on its own tables."""
    from constrain.generation.options import is_json_schema
    from constrain.given import may_name_tables
    from constrain.language.schema_text import schema_text
    from constrain.quotes.keyword import may_have_quotes

    if not is_json_schema(schema):
        return False
    text = schema_text(schema)
    return may_have_quotes(text) or (may_name_tables(text) and not options.get("tables"))


def compile_ahead(model: Model, schema: object, options: Options) -> None:
    """Compiles the schema of most tasks. Raises the errors of ``complete`` if it is invalid."""
    from constrain.engine.compiling import compile_any
    from constrain.generation.options import compile_options

    if schema is None or depends_on_task(schema, options):
        return
    compile_any(schema, model.vocabulary, close_objects=True, **compile_options(options, schema))


def answerer(model: Model, schema: str | Source | None, options: Options) -> Answerer:
    """Returns a function that lets a model answer tasks.

    Raises the errors of ``complete`` if ``schema``, the schema of most tasks, is invalid.
    """
    compile_ahead(model, schema, options)

    def answer(task: Task, stop: Future[None]) -> Completion:
        (found,) = write_answers(model, task, stop)
        if isinstance(found, ConstrainError):
            raise found
        return found

    return answer


def write_answers(model: Model, task: Task, stop: Future[None], n: int = 1) -> list[Completion | ConstrainError]:
    """Returns ``n`` answers to a task, or the one that its voters agree on, with errors in the place of answers.

    Answer ``i`` is sampled with the seed of the task plus ``i``. Once ``stop`` is done, unfinished answers are given
    up. Raises ``LineError`` if the task cannot be answered at all, and its ``ConstrainError``.
    """
    from constrain.generation.batch import decide_outcomes, outcome_of
    from constrain.generation.planning import prepare
    from constrain.generation.running import Run

    try:
        plan = prepare(model, task.prompt, task.schema, task.options)
    except ValueError as error:
        raise LineError(str(error)) from error
    samples = plan.samples(task.voters or n) if task.voters is not None or n > 1 else [plan]
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
    return outcomes if task.voters is None else [decide_outcomes(samples[0], outcomes)]
