"""``constrain doctor``: what an installation has, what is wrong with it, and the commands that mend it."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from constrain.cli import flags, shared

_STYLES = {"ok": "green", "note": "yellow", "wrong": "bold red"}


@flags.takes(machine=flags.only(shared.Machine, "model"))
def doctor(
    *,
    machine: shared.Machine,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Checks the installation: Python, llama.cpp, processor, GPU, models, folders, port. Prints what mends the rest.

    A model is loaded and has to choose between two tokens that it would never choose by itself: if another one comes,
    masks do not work, and no answer can be trusted. The exit status is 1 if something is wrong that answers need; notes
    do not change it.
    """
    from constrain.health.checks import examine

    console, rows = Console(highlight=False, soft_wrap=True), []
    with shared.show_progress(Console(stderr=True), "Checking"):
        for row in examine(machine.model):
            rows.append(row)
            if not as_json:
                line = Text(f"{row.state:<6}", style=_STYLES[row.state])
                line.append(f" {row.check:<15} {row.found}".translate(shared.HARMLESS), style="default")
                console.print(line)
                if row.cure:
                    console.print(Text(f"{'':<23}$ {row.cure}".translate(shared.HARMLESS)))
    if as_json:
        sys.stdout.write(json.dumps([row._asdict() for row in rows], indent=2) + "\n")
    if any(row.state == "wrong" for row in rows):
        raise typer.Exit(shared.FAILED)
