"""``constrain batch``: a file of prompts, and a file of answers."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from constrain.cli import shared
from constrain.generation.options import Options  # noqa: TC001 - typer reads the annotations
from constrain.language.policies import CompileOptions  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.batch.run import Progress as Counts

_LISTED = 10
"""Lines without an answer that are listed on the terminal; the file of errors has all."""

_READY = 2
"""Lines that are made ready while ``parallel`` others are answered, so that the model never waits for them."""


@shared.takes(options=shared.options, policies=shared.policies)
def batch(
    prompts: Annotated[Path, typer.Argument(help="JSON Lines: each a string, or an object with prompt or messages.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Takes an answer a line, as they are finished.")],
    errors: Annotated[
        Path | None, typer.Option(help="Takes the lines that have no answer, and why; by default beside the output.")
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Throw away the answers that are there.")] = False,
    parallel: Annotated[int, typer.Option(min=1, help="Lines that are answered at the same time.")] = 8,
    schema: shared.SchemaFile = None,
    regex: shared.Pattern = None,
    dialect: shared.PatternDialect = None,
    lark: shared.LarkGrammar = None,
    model: shared.ModelFile = None,
    options: Options,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Makes sampling reproducible: line n has this seed, plus n - 1.")
    ] = None,
    policies: CompileOptions,
    registry: shared.RegistryFile = None,
    n_ctx: shared.Context = None,
    n_threads: shared.Threads = None,
) -> None:
    """Answers a file of prompts; after an interruption, the same command goes on where it was.

    A line of the input is a JSON string, or an object with "prompt" or "messages", and maybe "id", "schema",
    "tools", "max_tokens", "temperature" and so on. Exit status 3 if some lines could not be answered.
    """
    from constrain.batch import run as batches
    from constrain.batch.files import BatchFiles, check_paths
    from constrain.llama.model import Model, default_model_path

    model = model or default_model_path()
    errors = errors or output.with_name(f"{output.stem}.errors{output.suffix}")
    read = [schema, model, Path(lark) if lark and Path(lark).is_file() else None]
    check_paths(prompts, (output, errors), read=[path for path in read if path is not None])
    wanted = shared.read_wanted(schema, regex, dialect, lark)
    options = {**options, **policies, **shared.read_registry(registry), "seed": seed}
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    made_from = {**batches.settings(prompts, wanted, model, options), "ctx": n_ctx}
    with BatchFiles(output, errors, made_from, restart=restart) as files, contextlib.ExitStack() as loaded:
        with shared.working(console, f"Loading {model.name}"):
            used = loaded.enter_context(Model(model, n_ctx=n_ctx, n_threads=n_threads, parallel=parallel))
            with shared.naming(shared.file_of(schema, lark)):
                answer = batches.answerer(used, wanted, options)
        run = batches.run(prompts, files, answer, wanted, options, threads=parallel + _READY)
        counts = _follow(console, prompts, run)
    console.print(_summary(counts, output, errors), markup=False)
    if counts.failed:
        raise typer.Exit(shared.LINES_FAILED)


def _follow(console: Console, prompts: Path, run: Iterator[Counts]) -> Counts:
    """Shows how far the batch is, and the first lines that fail."""
    from constrain.batch.lines import read_lines

    columns = (TextColumn("answers"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=sum(1 for _ in read_lines(prompts)))
        for counts in run:
            bar.update(task, completed=counts.known + counts.answered + counts.failed)
            if counts.failure is not None and counts.failed <= _LISTED:
                console.print(counts.failure, style="yellow", markup=False)
            shared.show_warnings(counts.warnings, console)
    return counts


def _summary(counts: Counts, output: Path, errors: Path) -> str:
    said = f"{output}: {counts.answered} answers"
    if counts.known:
        said += f", and {counts.known} that were there"
    if counts.failed:
        said += f"; {counts.failed} lines have none, see {errors}"
    return said
