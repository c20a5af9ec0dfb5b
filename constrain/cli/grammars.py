"""``constrain grammars``: lists and prints the grammars that come with the package."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from constrain import grammars as ready


def grammars(
    name: Annotated[str | None, typer.Argument(help="Grammar to print, instead of the list.")] = None,
) -> None:
    """Lists the grammars that come with the package, or prints one of them."""
    if name is not None:
        sys.stdout.write(ready.load(name).text)
        return
    table = Table("name", "what", "example")
    for each in ready.names():
        about, example = ready.describe(each)
        first, *more = example.splitlines()
        table.add_row(each, Text(about), Text(f"{first} ..." if more else first))
    Console(highlight=False).print(table)
