"""``constrain prepare``, and the part of ``constrain check`` that is about the weights of a model."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

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

from constrain.cli import shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from constrain.llama.weights.inspection import WeightsReport
    from constrain.llama.weights.preparing import Prepared

_MILLISECONDS = 1000.0


def prepare(
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL", callback=shared.find_model, help="GGUF file; by default the model of the demo extra."
        ),
    ] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write; by default a file in the cache directory, which --prepare finds again."),
    ] = None,
    max_divergence: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="NATS",
            help="How far the probabilities of the copy may be from the original's, per token; inf for the fastest.",
            show_default="0.02",
        ),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="File with a sample of prompts and answers; repeat the option for two files or more."),
    ] = None,
    threads: shared.Threads = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Makes a copy of a model in the formats that this machine computes fastest, and prints its path.

    The copy is compared with the original before it is kept. If no faster copy is close enough, the path of the
    original is printed. The original is never changed.
    """
    from constrain.llama.model import default_model_path
    from constrain.llama.weights.copies import prepare as make_copy
    from constrain.llama.weights.preparing import ALLOWED_DIVERGENCE

    texts = [shared.read_text(path) for path in text] if text else None
    try:
        with show_steps("Loading") as report:
            found = make_copy(
                default_model_path() if model is None else model,
                output,
                n_threads=threads,
                max_divergence=ALLOWED_DIVERGENCE if max_divergence is None else max_divergence,
                texts=texts,
                report=report,
            )
    except KeyboardInterrupt:
        Console(stderr=True).print("no copy was written; run the same command again")
        raise
    if as_json:
        sys.stdout.write(json.dumps(asdict(found), default=str, indent=2) + "\n")
        return
    _describe(Console(stderr=True, highlight=False, soft_wrap=True), found)
    sys.stdout.write(f"{found.path}\n")


@contextlib.contextmanager
def show_steps(first: str) -> Iterator[Callable[[str, float], None]]:
    """Shows steps on standard error; yields the function that reports a step and the share of it that is done."""
    console, pace = Console(stderr=True), shared.Pace()
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


def _describe(console: Console, found: Prepared) -> None:
    from constrain.llama.weights.plan import TOKENS

    if found.trials:
        table = Table("change", "divergence, nats a token", title="One change at a time")
        for change, divergence in found.trials.items():
            table.add_row(change, f"{divergence:.3f}")
        console.print(table)
    if found.comparison is None:
        console.print(f"No copy: {found.note}.", markup=False)
        return
    comparison = found.comparison
    changed = ", ".join(f"{role} in {form}" for role, form in found.formats.items())
    gains = ", ".join(f"{gain:.2f} times for {n} at once" for n, gain in zip(TOKENS, found.speedup, strict=True))
    console.print(f"Changed: {changed}.", markup=False)
    console.print(f"Faster: {gains} (tokens; measured).", markup=False)
    console.print(
        f"Alike: on {comparison.n_tokens} tokens of text, the likeliest next token is the same for "
        f"{comparison.agreement:.1%}; divergence {comparison.divergence:.3f} nats a token; perplexity "
        f"{comparison.perplexity[0]:.2f} before, {comparison.perplexity[1]:.2f} after.",
        markup=False,
    )


def measure(path: Path, threads: int | None, gpu_layers: int | None) -> WeightsReport:
    """Loads and measures a model, with progress on a terminal. Raises ``ModelError``."""
    from constrain.llama.weights.inspection import inspect_weights

    with show_steps("Loading") as report:
        layers = shared.ALL_LAYERS if gpu_layers is None else gpu_layers
        return inspect_weights(path, n_threads=threads, n_gpu_layers=layers, report=partial(report, "Measuring"))


def print_report(console: Console, found: WeightsReport) -> None:
    """Prints what a model's weights are, what they cost here, and what would be faster."""
    weights = found.weights
    console.print(
        f"{weights.path}: {weights.architecture}, {weights.n_parameters / 1e6:,.0f} million parameters, "
        f"{weights.n_bytes / 2**20:,.0f} MiB of weights, about {found.memory_bytes / 2**20:,.0f} MiB in memory",
        style="bold",
        markup=False,
        soft_wrap=True,
    )
    table = Table("role", "format", "tensors", "MiB", "stored as", title="Weights")
    for group in found.groups:
        stored = group.layout or "in the file"
        table.add_row(group.role, group.format, str(group.count), f"{group.n_bytes / 2**20:,.1f}", stored)
    console.print(table)
    table = Table("tokens at once", *map(str, found.costs.every), title="Milliseconds of an evaluation")
    for label, costs in (("logits of all", found.costs.every), ("logits of the last", found.costs.last)):
        table.add_row(label, *(f"{seconds * _MILLISECONDS:.1f}" for seconds in costs.values()))
    console.print(table)
    one, several = found.costs.n_threads
    console.print(f"Threads: {one} for one token, {several} for several. {found.system}", markup=False)
    if found.timings is None:
        console.print("Formats are not compared, because layers are on a GPU.")
    elif not found.faster:
        console.print("No format is clearly faster on this processor.")
    else:
        table = Table("role", "format", "1 token", "8 tokens", "faster", "1 token", "8 tokens", title="Faster formats")
        for present, other in found.faster:
            shown = [f"{seconds * _MILLISECONDS:.2f} ms" for seconds in (*present.seconds, *other.seconds)]
            table.add_row(present.role, present.format, *shown[:2], other.format, *shown[2:])
        console.print(table)
        console.print(
            "Get the file in these formats, quantized from 16 bits, if there is one. Otherwise, constrain prepare "
            "makes a copy and tells how far it is from this file.",
            soft_wrap=True,
        )


def report_as_json(found: WeightsReport) -> dict[str, Any]:
    """Returns the report of a model's weights as JSON."""
    weights = found.weights
    timings = None
    if found.timings is not None:
        timings = [
            {**asdict(each), "in_file": each is present}
            for role, present in found.timings.present.items()
            for each in (present, *found.timings.others[role])
        ]
    return {
        "model": str(weights.path),
        "architecture": weights.architecture,
        "parameters": weights.n_parameters,
        "bytes": weights.n_bytes,
        "memory_bytes": found.memory_bytes,
        "system": found.system,
        "weights": [asdict(group) for group in found.groups],
        "threads": found.costs.n_threads,
        "seconds": {"all_logits": found.costs.every, "last_logits": found.costs.last},
        "products": timings,
        "faster": [{"role": present.role, "format": other.format} for present, other in found.faster],
    }
