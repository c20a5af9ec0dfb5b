"""``constrain grammars``: lists the grammars that come with the package, and converts others to Lark."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from constrain import grammars as ready
from constrain.cli import shared

_SYNTAXES = ("gbnf", "ebnf")


def grammars(
    name: Annotated[str | None, typer.Argument(help="Grammar to print, instead of the list.")] = None,
    *,
    convert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Convert this file, GBNF or EBNF of ISO 14977, to Lark.")
    ] = None,
    syntax: Annotated[
        str | None, shared.one_of(_SYNTAXES, "Syntax of that file.", "--from", default="by the end of its name")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the converted grammar, instead of standard output.")
    ] = None,
) -> None:
    """Lists the grammars that come with the package, prints one of them, or converts a grammar to Lark."""
    if convert is not None:
        if name is not None:
            raise typer.BadParameter("--convert takes a file, and no name of a grammar")
        _convert(convert, syntax, output)
        return
    if syntax is not None or output is not None:
        raise typer.BadParameter("--from and --output need --convert")
    if name is not None:
        sys.stdout.write(ready.load(name).text)
        return
    table = Table("name", "what", "example")
    for each in ready.names():
        about, example = ready.describe(each)
        first, *more = example.splitlines()
        table.add_row(each, Text(about), Text(f"{first} ..." if more else first))
    Console(highlight=False).print(table)


def _convert(file: Path, syntax: str | None, output: Path | None) -> None:
    meant: Any = syntax or file.suffix.lower().removeprefix(".")
    if meant not in _SYNTAXES:
        raise typer.BadParameter(f"the name of {file} does not say which syntax it has; add --from gbnf or --from ebnf")
    with shared.name_file(file):
        text = ready.convert(shared.read_text(file), meant).text
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")
