"""``constrain export``: writes a schema or grammar in the notation of other programs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from constrain.cli import flags, shared
from constrain.engine.export import export
from constrain.language.policies import CompileOptions  # noqa: TC001 - typer reads the annotations

_TARGETS = ("gbnf", "lark", "regex")


@flags.takes(policies=flags.policies)
def export_(
    schema: Annotated[
        str | None,
        typer.Argument(help="A JSON Schema: a file, JSON, MODULE:CLASS, or keys with types ('name, age int')."),
    ] = None,
    *,
    to: Annotated[
        str,
        flags.one_of(
            _TARGETS,
            "Notation: of llama.cpp; of llguidance, OpenAI and constrain itself; or a regular expression that Rust's "
            "regex crate and Python's re read.",
        ),
    ] = _TARGETS[0],
    regex: shared.Pattern = None,
    dialect: shared.PatternDialect = None,
    lark: shared.LarkGrammar = None,
    gbnf: shared.GbnfFile = None,
    structural_tag: shared.TagFile = None,
    closed: Annotated[
        bool,
        typer.Option(
            "--closed/--open", help="Exclude undeclared keys, as generation does, or allow them where the schema does."
        ),
    ] = True,
    repeated_keys: Annotated[
        bool,
        typer.Option("--repeated-keys", help="Allow undeclared keys of an object to repeat; else they are refused."),
    ] = False,
    policies: CompileOptions,
    registry: shared.RegistryFile = None,
) -> None:
    """Writes a schema or grammar as GBNF, Lark or a regular expression with the very same language.

    A language that the notation cannot say is refused, with the place.
    """
    language = shared.Language(schema, regex, dialect, lark, gbnf, structural_tag)
    wanted = language.read(schema_option="SCHEMA")
    if wanted is None:
        raise typer.BadParameter("no schema, pattern or grammar to export")
    options: CompileOptions = {**policies, **shared.read_registry(registry)}
    with shared.name_file(language.file), shared.show_progress(Console(stderr=True), f"Writing {to}"):
        text = export(wanted, to, closed=closed, repeated_keys=repeated_keys, **options)  # type: ignore[arg-type]  # checked by the option
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
