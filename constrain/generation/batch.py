"""``generate_batch`` and ``complete_batch``: answers to many prompts, several at once."""

from __future__ import annotations

from concurrent.futures import ALL_COMPLETED, FIRST_EXCEPTION, wait
from typing import TYPE_CHECKING, Any, TypeVar, overload

from constrain.errors import ConstrainError, OutputValidationError
from constrain.generation.exclusions import refuse_together
from constrain.generation.options import options_beside, read_voters, takes_options
from constrain.generation.planning import prepare
from constrain.generation.running import Run
from constrain.llama.lookup import as_model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Unpack

    from constrain.chat.prompt.messages import Prompt
    from constrain.generation.completion import Completion
    from constrain.generation.options import ChatOptions, ValueOptions
    from constrain.generation.plan import Plan
    from constrain.llama.lookup import AnyModel

T = TypeVar("T")


@overload
def generate_batch(
    model: AnyModel, prompts: Iterable[Prompt], *, schema: type[T], **options: Unpack[ValueOptions]
) -> list[T]: ...


@overload
def generate_batch(
    model: AnyModel,
    prompts: Iterable[Prompt],
    *,
    schema: Any = None,
    schemas: Iterable[Any] | None = None,
    n: int | None = None,
    vote: bool = False,
    return_errors: bool = False,
    **options: Unpack[ChatOptions],
) -> list[Any]: ...


@takes_options
def generate_batch(
    model: AnyModel,
    prompts: Iterable[Prompt],
    *,
    schema: Any = None,
    schemas: Iterable[Any] | None = None,
    n: int | None = None,
    vote: bool = False,
    return_errors: bool = False,
    **options: Unpack[ChatOptions],
) -> list[Any]:
    """Has a model answer many prompts, several at once, and returns the values in the order of the prompts.

    Arguments and errors are those of ``complete_batch``. With ``n``, the list has a list of ``n`` values per prompt;
    with ``vote``, too, the value that they agree on.

    >>> generate_batch(None, ["Is the sky blue?", "Is grass red?"], schema={"const": "yes"})
    ['yes', 'yes']
    """
    try:
        return _values(
            complete_batch(
                model, prompts, schema=schema, schemas=schemas, n=n, vote=vote, return_errors=return_errors, **options
            )
        )
    except OutputValidationError as error:
        error.outcomes = None if error.outcomes is None else _values(error.outcomes)
        raise


@overload
def complete_batch(
    model: AnyModel, prompts: Iterable[Prompt], *, schema: type[T], **options: Unpack[ValueOptions]
) -> list[Completion[T]]: ...


@overload
def complete_batch(
    model: AnyModel,
    prompts: Iterable[Prompt],
    *,
    schema: Any = None,
    schemas: Iterable[Any] | None = None,
    n: int | None = None,
    vote: bool = False,
    return_errors: bool = False,
    **options: Unpack[ChatOptions],
) -> list[Any]: ...


@takes_options
def complete_batch(
    model: AnyModel,
    prompts: Iterable[Prompt],
    *,
    schema: Any = None,
    schemas: Iterable[Any] | None = None,
    n: int | None = None,
    vote: bool = False,
    return_errors: bool = False,
    **options: Unpack[ChatOptions],
) -> list[Any]:
    """Has a model answer many prompts, several at once, and returns a ``Completion`` for each.

    ``Model(..., parallel=...)`` sets how many answers are generated at once. Beginnings that prompts have in common are
    evaluated once. Answers are those of ``complete``, except for differences from rounding in llama.cpp.

    Args:
        model: as for ``complete``.
        prompts: prompts, each as for ``complete``.
        schema: shape of all answers, as for ``complete``.
        schemas: shapes of the answers instead of ``schema``, one for each prompt; ``None`` stands for free text.
        n: number of answers to each prompt. With a ``seed``, answer ``i`` is sampled with ``seed + i``.
        vote: whether the ``n`` answers to a prompt become one: of JSON values the majority of each field (a valid value
            of the schema; the nearest answer where the majorities together are none), of other answers the one that
            has most in common with all. ``Completion.agreement`` tells how many agree, ``Completion.votes`` has all.
        return_errors: whether the list has an error in the place of an answer that failed (``OutputValidationError``,
            ``BudgetError``, or a prompt that does not fit into the context). Otherwise the first such error is raised
            and ends the batch. An ``OutputValidationError`` is raised only when all prompts are answered; its
            ``outcomes`` has the other answers.
        options: options of ``complete``, for all answers. The seconds of ``timeout`` count for each answer from its
            own beginning.

    Returns a list in the order of the prompts: a ``Completion`` for each, or with ``n`` and without ``vote`` a list of
    ``n`` of them. Raises the errors of ``complete``.
    """
    read_voters(options, n if vote else None, vote=vote)
    plans = _make_plans(model, prompts, schema, schemas, n, options)
    if not vote:
        return _arrange(_complete(plans, return_errors=return_errors), n, return_errors=return_errors)
    samples = _arrange(_complete(plans, return_errors=True), n, return_errors=True)
    decided = [decide_outcomes(plan, each) for plan, each in zip(plans[::n], samples, strict=True)]
    return _arrange(decided, None, return_errors=return_errors)


def decide_outcomes(plan: Plan, samples: list[Completion | ConstrainError]) -> Completion | ConstrainError:
    """Returns what those answers agree on that have not failed; the first error if all of them have."""
    from constrain.generation.voting import decide

    answered = [each for each in samples if not isinstance(each, ConstrainError)]
    return decide(plan, answered) if answered else samples[0]


def _make_plans(
    model: AnyModel,
    prompts: Iterable[Prompt],
    schema: Any,
    schemas: Iterable[Any] | None,
    n: int | None,
    options: ChatOptions,
) -> list[Plan]:
    """Returns one plan per answer; plans for the same prompt are adjacent."""
    if isinstance(prompts, str):
        raise TypeError("prompts is a single text; it must be a list of prompts")
    prompts = list(prompts)
    schemas = None if schemas is None else list(schemas)
    if n is not None and n < 1:
        raise ValueError(f"n is {n}; it must be 1 or more")
    lengths = schemas is not None and len(schemas) != len(prompts)
    given = {"schemas": schemas is not None, "schema": schema is not None, "lengths": lengths}
    refuse_together(**given, prompts=len(prompts))
    loaded = as_model(model)
    each = [schema] * len(prompts) if schemas is None else schemas
    plans = [
        prepare(loaded, prompt, one, options if schemas is None else options_beside(options, one))
        for prompt, one in zip(prompts, each, strict=True)
    ]
    return plans if n is None else [sample for plan in plans for sample in plan.samples(n)]


def _complete(plans: list[Plan], *, return_errors: bool) -> list[Completion | ConstrainError]:
    """Returns the answers, or errors in their places. Without ``return_errors``, unfinished answers are left out."""
    runs = [Run(plan) for plan in plans]
    try:
        for run in runs:
            _submit(run, return_errors=return_errors)
        futures = [run.request.done for run in runs]
        finished, _ = wait(futures, return_when=ALL_COMPLETED if return_errors else FIRST_EXCEPTION)
        for future in finished:
            if not return_errors:
                future.result()  # raises the error, if any
        return [outcome_of(run) for run in runs]
    finally:
        for run in runs:  # After an error or Ctrl-C, the remaining answers are cancelled: the caller gets none of them.
            run.request.done.cancel()


def _arrange(outcomes: list[Any], n: int | None, *, return_errors: bool) -> list[Any]:
    """Returns the list for the caller. Raises its first error unless ``return_errors`` is set."""
    listed = outcomes if n is None else [outcomes[start : start + n] for start in range(0, len(outcomes), n)]
    error = next((one for one in outcomes if isinstance(one, ConstrainError)), None)
    if error is None or return_errors:
        return listed
    if isinstance(error, OutputValidationError):
        error.outcomes = listed
    raise error


def _submit(run: Run, *, return_errors: bool) -> None:
    try:
        run.submit()
    except ConstrainError as error:
        if not return_errors:
            raise
        run.request.done.set_exception(error)


def outcome_of(run: Run) -> Completion | ConstrainError:
    """Returns the answer of a run that has ended, or the error that ended it."""
    try:
        run.request.done.result()
        return run.finish()[1]
    except ConstrainError as error:
        return error


def _values(outcomes: list[Any]) -> list[Any]:
    return [_values(each) if isinstance(each, list) else _value(each) for each in outcomes]


def _value(outcome: Completion | ConstrainError) -> Any:
    return outcome if isinstance(outcome, ConstrainError) else outcome.value
