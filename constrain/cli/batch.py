"""``constrain batch``: answers a file of prompts, one per line or row."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from constrain.arguments import Flag, option
from constrain.cli import flags, shared
from constrain.cli.streams import keep_input
from constrain.generation.exclusions import MIN_VOTERS
from constrain.generation.options import Options  # noqa: TC001
from constrain.language.policies import CompileOptions  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from constrain.batch.finishing import Target
    from constrain.batch.inputs import Input
    from constrain.batch.lines import Id
    from constrain.batch.locations import Location
    from constrain.batch.run import Progress as Counts
    from constrain.language.source import Source
    from constrain.llama.model import Model
    from constrain.ray.pool import Pool

_LISTED = 10
"""Failed lines that the terminal lists: 10. The file of errors has all of them."""

_NAMED = 3
"""Ids of several lines that a warning names, and lines of each: 3."""


@dataclass(frozen=True)
class _Batch:
    """The flags of ``batch`` that no other command has."""

    output: str = option(
        ...,
        Flag(
            "File for the answers: JSON Lines in the order they finish, or a table in .parquet or .csv.",
            metavar="FILE or URL",
            short="o",
        ),
    )
    errors: str | None = option(
        None, Flag("File for failed lines with the reasons; by default next to the output.", metavar="FILE or URL")
    )
    prompt: str | None = option(
        None,
        Flag(
            "Column of the prompts, or a template such as 'Who is {name}?'; other columns are ignored.",
            metavar="COLUMN or TEMPLATE",
        ),
    )
    id_column: str | None = option(None, Flag("Column that names the rows, in place of id.", metavar="COLUMN"))
    restart: bool = option(False, Flag("Throw away existing answers."))
    parallel: int = option(8, Flag("Lines that are answered at the same time."), least=1)
    vote: int | None = option(
        None, Flag("Write this many answers to a line, and keep one that they agree on.", metavar="N"), least=MIN_VOTERS
    )
    certificates: bool = option(False, Flag("Add the certificate of each answer, which verify checks."))
    certificate_prompts: bool = option(False, Flag("Keep the token ids of prompts in certificates."))
    seed: int | None = option(
        None, Flag("Makes sampling reproducible: line n uses this seed plus n - 1 (times N of --vote)."), least=0
    )
    ray: str | None = option(
        None,
        Flag("Answer on a Ray cluster: its address, auto for the running one, local for a new one.", metavar="ADDRESS"),
    )
    actors: int | None = option(
        None, Flag("With --ray: number of actors, each with a model of its own. [default: 1]"), least=1
    )
    cpus_per_actor: float | None = option(
        None, Flag("With --ray: CPUs of an actor, and threads of its model. [default: 1]"), least=0.1
    )


@flags.takes(
    own=_Batch,
    language=shared.Language,
    machine=shared.Machine,
    options=flags.options,
    policies=flags.policies,
    further=shared.Further,
)
def batch(
    context: typer.Context,
    prompts: Annotated[
        str,
        typer.Argument(
            metavar="PROMPTS",
            help="JSON Lines, or a table in .parquet or .csv: a file, or a URL such as s3://bucket/in.jsonl; "
            '"-" reads JSON Lines from standard input.',
        ),
    ],
    *,
    own: _Batch,
    language: shared.Language,
    machine: shared.Machine,
    options: Options,
    policies: CompileOptions,
    further: shared.Further,
) -> None:
    """Answers a file of prompts. After an interruption, or with more lines, the same command goes on where it stopped.

    A line of the input is a JSON string, or an object with "prompt" or "messages", and optionally "id", "schema",
    "tools", "max_tokens", "temperature", "n" with "vote" and so on. A row of a table has these as columns. The exit
    status is 3 if some lines could not be answered.
    """
    from constrain.batch import run as batches
    from constrain.batch.answering import READY, answerer
    from constrain.batch.files import BatchFiles
    from constrain.batch.finishing import finish
    from constrain.llama.model import Model, default_model_path

    model, vote = machine.model or default_model_path(), own.vote
    read = [path for path in (language.file, model) if path is not None]
    read += further.files()
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if prompts == "-":
        with shared.show_progress(console, "Reading standard input"):
            prompts = context.with_resource(keep_input())
    with _tell_missing_extra():
        given, target, failures = _locate(prompts, own, read)
    flags.refuse_together(
        vote=vote is not None,
        confidence=options.get("confidence"),
        certificate=own.certificates,
        **{"--certificates": own.certificates, "--certificate-prompts": own.certificate_prompts},
        **{"--ray": own.ray is not None, "--actors": own.actors is not None},
        **{"--cpus-per-actor": own.cpus_per_actor is not None},
    )
    wanted = language.read()
    if own.certificates:
        options = {**options, "certificate": "prompt" if own.certificate_prompts else True}
    options = {**options, **policies, **further.read(), "seed": own.seed}
    with shared.show_progress(console, "Reading the prompts"):
        scan = given.scan(find_languages=target.table is not None)
    shared.show_warnings(_describe_repeated(scan.repeated_ids), console)
    made_from = {
        **batches.settings(scan, wanted, model, options),
        "ctx": machine.n_ctx,
        "vote": vote,
        "prompt": own.prompt,
        "id_column": own.id_column,
    }
    sizes: dict[str, Any] = {"model": model, **machine.sizes(), "parallel": own.parallel}
    files = BatchFiles(target.lines, failures.lines, made_from, restart=own.restart, prompts=given)
    try:
        with files, contextlib.ExitStack() as opened:
            loaded = None
            if own.ray is None:
                with shared.show_progress(console, f"Loading {model.name}"):
                    loaded = opened.enter_context(Model(**sizes))
                with shared.show_progress(console, "Compiling the schema"), shared.name_file(language.file):
                    answer = answerer(loaded, wanted, options)
                threads = own.parallel + READY
            else:
                with shared.show_progress(console, "Starting the actors"), shared.name_file(language.file):
                    pool = opened.enter_context(_pool(own, sizes, wanted, options))
                answer, threads = pool.answer, pool.threads
            run = batches.run(given, files, answer, wanted, options, voters=vote, threads=threads, rows=scan.rows)
            counts = _follow(console, scan.rows, run, loaded)
            finish(files, target, failures, wanted, scan)
    except KeyboardInterrupt:
        done = f"{files.answers.count} of {scan.rows} are done"
        goes_on = "the same command without --restart goes on" if own.restart else "the same command goes on"
        console.print(f"{target.location}: {done}; {goes_on}", markup=False)
        raise
    console.print(_summary(counts, target.location, failures.location), markup=False)
    if counts.failed:
        raise typer.Exit(shared.LINES_FAILED)


def _locate(prompts: str, own: _Batch, read: list[Path]) -> tuple[Input, Target, Target]:
    """Returns the input, and the targets of answers and errors. Raises ``ValueError`` and ``OSError``."""
    from constrain.batch.files import check_locations
    from constrain.batch.finishing import errors_beside, target_of
    from constrain.batch.inputs import open_input
    from constrain.batch.locations import locate
    from constrain.batch.prompts import NamedColumns

    if own.output == "-":
        raise typer.BadParameter("answers need a file, from which an interrupted batch goes on", param_hint="--output")
    source = locate(prompts)
    given = open_input(source, NamedColumns(own.prompt, own.id_column))
    target = target_of(locate(own.output))
    failures = target_of(errors_beside(target.location) if own.errors is None else locate(own.errors))
    check_locations(source, [*target.written(), *failures.written()], read=read)
    target.require_known(restart=own.restart)
    failures.require_errors()
    return given, target, failures


@contextlib.contextmanager
def _tell_missing_extra() -> Iterator[None]:
    """Ends the program if pyarrow is needed and not there."""
    from constrain.batch.locations import MissingExtraError

    try:
        yield
    except MissingExtraError as error:
        raise SystemExit(f"constrain: {error}") from error


def _pool(own: _Batch, sizes: dict[str, Any], wanted: str | Source | None, options: Options) -> Pool:
    """Returns the actors on a Ray cluster. Raises ``BadParameter`` if there is no cluster at the address."""
    try:
        import ray  # noqa: F401 - is it installed?

        from constrain.ray.pool import Pool
    except ModuleNotFoundError as error:
        raise SystemExit(f"constrain: {error.name} is missing; pip install 'constrain-llm[ray]'") from error

    assert own.ray is not None
    flags.refuse_together(**{"--threads": sizes["n_threads"] is not None, "--ray": True})
    given = {**sizes, "model": str(sizes["model"].resolve())}
    try:
        sizes = {name: value for name, value in given.items() if value is not None}
        return Pool(own.ray, own.actors or 1, own.cpus_per_actor or 1, sizes, wanted, options)
    except ConnectionError as error:
        raise typer.BadParameter(str(error), param_hint="--ray") from error


def _describe_repeated(ids: Mapping[Id, list[int]]) -> Iterator[str]:
    """Yields a warning that names ids of several lines."""
    if ids:
        named = [f"{json.dumps(name)} in lines {_enumerate(lines)}" for name, lines in islice(ids.items(), _NAMED)]
        more = f"; and {len(ids) - _NAMED} other ids" if len(ids) > _NAMED else ""
        yield f"ids occur more than once: {'; '.join(named)}{more}; tell their answers apart by line"


def _enumerate(lines: list[int]) -> str:
    return ", ".join([*map(str, lines[:_NAMED]), *(["..."] if len(lines) > _NAMED else [])])


def _follow(console: Console, rows: int, run: Iterator[Counts], model: Model | None) -> Counts:
    """Shows the progress of the batch and its first failed lines. ``model``: the model that answers, if it is here."""
    pace, counts = shared.Pace(), next(run)
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    columns = (TextColumn("answers"), BarColumn(), MofNCompleteColumn(), *times, TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=rows, completed=counts.known)
        for counts in run:
            done = counts.known + counts.answered + counts.failed
            tokens = "" if model is None else f"{model.tokens_in_progress()} tokens of the next ones"
            bar.update(task, completed=done, description=tokens)
            if bar.disable and pace.is_due():
                console.print(f"{done} of {rows} lines" + (tokens and f", and {tokens}"), markup=False)
            if counts.failure is not None and counts.failed <= _LISTED:
                console.print(counts.failure, style="yellow", markup=False)
            shared.show_warnings(counts.warnings, console)
    return counts


def _summary(counts: Counts, output: Location, errors: Location) -> str:
    said = f"{output}: {counts.answered} {'answer' if counts.answered == 1 else 'answers'}"
    if counts.known:
        said += f", and {counts.known} from before"
    if counts.failed:
        said += f"; {counts.failed} {'line has' if counts.failed == 1 else 'lines have'} none, see {errors}"
    return said
