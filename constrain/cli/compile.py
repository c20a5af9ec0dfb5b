"""``constrain compile``: compiles schemas, patterns and grammars ahead of time."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from constrain.arguments import Flag, option
from constrain.cli import flags, shared
from constrain.gbnf.source import Gbnf
from constrain.language.policies import CompileOptions  # noqa: TC001 - typer reads the annotations
from constrain.language.schema_text import schema_text
from constrain.structural.source import StructuralTag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.language.source import Source
    from constrain.regex.source import Regex


@dataclass(frozen=True)
class _Compiling:
    """The flags of ``compile`` that no other command has."""

    regex: list[str] | None = option(None, Flag("A regular expression; any number.", metavar="PATTERN"))
    dialect: str | None = option(
        None, Flag("Syntax of --regex: the regex crate's, JSON Schema's, or re's."), choices=shared.DIALECTS
    )
    lark: list[str] | None = option(
        None, Flag('A Lark grammar: a file, or one of "constrain grammars"; any number.', metavar="FILE or NAME")
    )
    gbnf: list[Path] | None = option(None, Flag("File with a grammar of llama.cpp; any number.", metavar="FILE"))
    structural_tag: list[Path] | None = option(
        None, Flag("File with a structural tag of XGrammar; any number.", metavar="FILE")
    )
    model: Path | None = option(None, Flag("GGUF file of the model, or of its vocabulary; by default the demo model."))
    cache: Path | None = option(None, Flag("Directory to store them in, instead of the one in CONSTRAIN_CACHE."))
    max_masks: int | None = option(None, Flag("Masks to compute at most, likeliest first."), least=0)
    max_mib: int | None = option(None, Flag("MiB that the tables of one schema may take."), least=0)
    closed: bool = option(
        True,
        Flag("Exclude undeclared keys, as generation does, or allow them, as constrain.compile does.", "closed/--open"),
    )


@flags.takes(own=_Compiling, policies=flags.policies)
def compile_(
    schemas: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCHEMA", help="JSON Schemas: files, JSON, or keys with types ('name, age int')."),
    ] = None,
    *,
    own: _Compiling,
    policies: CompileOptions,
) -> None:
    """Compiles schemas ahead of time and stores them, so that later processes need not wait for them.

    A later process finds a schema whether it passes the text of the file or the JSON parsed from it.
    """
    if not (schemas or own.regex or own.lark or own.gbnf or own.structural_tag):
        raise typer.BadParameter("no schema, pattern or grammar to compile")
    patterns = [shared.read_pattern(pattern, own.dialect) for pattern in own.regex or []]
    from constrain.engine.compiling import compile_any
    from constrain.engine.constraint import PRECOMPUTED_BYTES, PRECOMPUTED_MASKS
    from constrain.vocabulary.vocabulary import Vocabulary

    model = own.model
    if model is None:
        from constrain.llama.model import default_model_path

        model = default_model_path()
    console = Console(stderr=True)
    with shared.show_progress(console, f"Reading the vocabulary of {model.name}"):
        vocabulary = Vocabulary.from_gguf(model)
    reported: set[str] = set()  # a schema is compiled twice, as two texts
    files: list[_File] = [
        *((path, Gbnf) for path in own.gbnf or []),
        *((path, StructuralTag) for path in own.structural_tag or []),
    ]
    for name, file, wanted, options in _list_sources(schemas or [], patterns, own.lark or [], files, policies):
        with shared.name_file(file), shared.show_progress(console, f"Compiling {name}"):
            constraint = compile_any(wanted, vocabulary, close_objects=own.closed, cache=own.cache, **options)
            done = constraint.precompute(
                max_masks=PRECOMPUTED_MASKS if own.max_masks is None else own.max_masks,
                max_bytes=PRECOMPUTED_BYTES if own.max_mib is None else own.max_mib << 20,
            )
        if done.file is None:
            raise OSError(
                f"{name} was compiled but not stored: no cache directory can be written to; name one with --cache"
            )
        note = f"{name}: {done.masks} masks, {done.file.stat().st_size >> 10} KiB"
        console.print(note, style="dim", markup=False, highlight=False)
        shared.show_warnings((warning for warning in constraint.warnings if warning not in reported), console)
        reported.update(constraint.warnings)
        sys.stdout.write(f"{done.file}\n")


_File = tuple["Path", type[Gbnf] | type[StructuralTag]]
"""A file with a grammar, and the class of its language."""


def _list_sources(
    schemas: list[str], patterns: list[Regex], grammars: list[str], files: list[_File], policies: CompileOptions
) -> Iterator[tuple[str, Path | None, str | Source, CompileOptions]]:
    """Yields the sources to compile: name, file (if any), source, and the policies that apply to it."""
    for given in schemas:
        read = json.dumps(shared.parse_schema_argument(given))
        for text in dict.fromkeys((read, schema_text(shared.read_schema_text(given)))):
            yield given, shared.schema_file(given), text, policies
    others = {} if schemas else policies
    for pattern in patterns:
        yield pattern.pattern, None, pattern, others
    for name in grammars:
        yield name, shared.file_of(name), shared.read_lark(name), others
    for path, kind in files:
        yield str(path), path, kind(shared.read_text(path)), others
