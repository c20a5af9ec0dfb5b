"""``constrain export``: writes a schema or grammar in the notation of other programs."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Annotated

import typer
from rich.console import Console

from constrain.arguments import Flag, option
from constrain.cli import flags, shared
from constrain.engine.export import export
from constrain.language.policies import CompileOptions  # noqa: TC001 - typer reads the annotations


@dataclass(frozen=True)
class _Exporting:
    """The flags of ``export`` that no other command has."""

    to: str = option(
        "gbnf",
        Flag(
            "Notation: of llama.cpp; of llguidance, OpenAI and constrain itself; or a regular expression that Rust's "
            "regex crate and Python's re read."
        ),
        choices=("gbnf", "lark", "regex"),
    )
    closed: bool = option(
        True, Flag("Exclude undeclared keys, as generation does, or allow them where the schema does.", "closed/--open")
    )
    repeated_keys: bool = option(False, Flag("Allow undeclared keys of an object to repeat; else they are refused."))


@flags.takes(
    language=flags.only(shared.Language, "regex", "dialect", "lark", "gbnf", "structural_tag", "sql"),
    own=_Exporting,
    policies=flags.policies,
    further=flags.only(shared.Further, "registry"),
)
def export_(
    schema: Annotated[
        str | None,
        typer.Argument(help="A JSON Schema: a file, JSON, MODULE:CLASS, or keys with types ('name, age int')."),
    ] = None,
    *,
    language: shared.Language,
    own: _Exporting,
    policies: CompileOptions,
    further: shared.Further,
) -> None:
    """Writes a schema or grammar as GBNF, Lark or a regular expression with the very same language.

    A language that the notation cannot say is refused, with the place.
    """
    language = replace(language, schema=schema)
    wanted = language.read(schema_option="SCHEMA")
    if wanted is None:
        raise typer.BadParameter("no schema, pattern or grammar to export")
    options: CompileOptions = {**policies, **further.read()}
    with shared.name_file(language.file), shared.show_progress(Console(stderr=True), f"Writing {own.to}"):
        text = export(wanted, own.to, closed=own.closed, repeated_keys=own.repeated_keys, **options)  # type: ignore[arg-type]  # checked by the option
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
