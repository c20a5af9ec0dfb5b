"""``constrain models``: lists the models on this machine, and fetches one from Hugging Face."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from constrain.cli.shared import HARMLESS, Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def models(
    *,
    fetch: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Fetch this model from Hugging Face and print its path: OWNER/REPOSITORY, or OWNER/REPOSITORY:FILE "
            "with a file or quantization, such as Qwen/Qwen3-0.6B-GGUF:Q8_0.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Lists the models on this machine, of installed packages and of other programs; fetches one from Hugging Face.

    Searched are the folders in the environment variable CONSTRAIN_MODELS, fetched models, installed Python packages,
    the folders of llama.cpp, Hugging Face, LM Studio and Ollama. Each name can be given to other
    commands as --model; any other GGUF file by its path.

    Fetched models go into the first folder of CONSTRAIN_MODELS, or into a folder of the user's data. Nothing is fetched
    without --fetch. A fetch that was interrupted goes on where it stopped.
    """
    if fetch is not None:
        try:
            from constrain.llama.fetching import fetch_model
        except ModuleNotFoundError as error:
            raise SystemExit(f"constrain: {error.name} is missing; pip install 'constrain-llm[cli]'") from error
        with _show_steps("Asking Hugging Face") as report:
            path = str(fetch_model(fetch, report))
        sys.stdout.write((json.dumps({"path": path}) if as_json else path) + "\n")
        return
    from constrain.llama.finding import find_models

    found = find_models()
    if as_json:
        listed = [{"name": one.name, "bytes": one.size, "source": one.source, "path": str(one.path)} for one in found]
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
        return
    if not found:
        text = (
            "no models found; install a small one: pip install 'constrain-llm[demo]', or fetch one: constrain models "
            "--fetch OWNER/REPOSITORY:FILE"
        )
        Console(stderr=True, soft_wrap=True).print(text, markup=False, highlight=False)
        return
    table = Table("model", "MiB", "found in", "file")
    for one in found:
        table.add_row(
            Text(one.name.translate(HARMLESS)),
            Text(str(round(one.size / 2**20)), justify="right"),
            Text(one.source),
            Text(str(one.path).translate(HARMLESS), overflow="fold"),
        )
    Console(highlight=False).print(table)


@contextlib.contextmanager
def _show_steps(first: str) -> Iterator[Callable[[str, float], None]]:
    """Shows steps on standard error; yields the function that reports a step and the share of it that is done."""
    console, pace = Console(stderr=True), Pace()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(first, total=1.0)

        def report(step: str, share: float) -> None:
            progress.update(task, description=step, completed=share)
            if progress.disable and pace.is_due():
                console.print(f"{step}: {share:.0%}", markup=False, highlight=False)

        yield report
