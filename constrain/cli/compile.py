"""``constrain compile``: compiles schemas, patterns and grammars ahead of time."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from constrain.cli import flags, shared
from constrain.gbnf.source import Gbnf
from constrain.language.policies import CompileOptions  # noqa: TC001 - typer reads the annotations
from constrain.language.schema_text import schema_text
from constrain.structural.source import StructuralTag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.language.source import Source
    from constrain.regex.source import Regex


@flags.takes(policies=flags.policies)
def compile_(
    schemas: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCHEMA", help="JSON Schemas: files, JSON, or keys with types ('name, age int')."),
    ] = None,
    *,
    regex: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="A regular expression; any number.")
    ] = None,
    dialect: shared.PatternDialect = None,
    lark: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE or NAME", help='A Lark grammar: a file, or one of "constrain grammars"; any number.'
        ),
    ] = None,
    gbnf: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="File with a grammar of llama.cpp; any number.")
    ] = None,
    structural_tag: Annotated[
        list[Path] | None,
        typer.Option("--structural-tag", metavar="FILE", help="File with a structural tag of XGrammar; any number."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="GGUF file of the model, or of its vocabulary; by default the demo model.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Directory to store them in, instead of the one in CONSTRAIN_CACHE.")
    ] = None,
    max_masks: Annotated[int | None, typer.Option(min=0, help="Masks to compute at most, likeliest first.")] = None,
    max_mib: Annotated[
        int | None, typer.Option("--max-mib", min=0, help="MiB that the tables of one schema may take.")
    ] = None,
    closed: Annotated[
        bool,
        typer.Option(
            "--closed/--open",
            help="Exclude undeclared keys, as generation does, or allow them, as constrain.compile does.",
        ),
    ] = True,
    policies: CompileOptions,
) -> None:
    """Compiles schemas ahead of time and stores them, so that later processes need not wait for them.

    A later process finds a schema whether it passes the text of the file or the JSON parsed from it.
    """
    if not (schemas or regex or lark or gbnf or structural_tag):
        raise typer.BadParameter("no schema, pattern or grammar to compile")
    patterns = [shared.read_pattern(pattern, dialect) for pattern in regex or []]
    from constrain.engine.compiling import compile_any
    from constrain.engine.constraint import PRECOMPUTED_BYTES, PRECOMPUTED_MASKS
    from constrain.vocabulary.vocabulary import Vocabulary

    if model is None:
        from constrain.llama.model import default_model_path

        model = default_model_path()
    console = Console(stderr=True)
    with shared.show_progress(console, f"Reading the vocabulary of {model.name}"):
        vocabulary = Vocabulary.from_gguf(model)
    reported: set[str] = set()  # a schema is compiled twice, as two texts
    files: list[_File] = [
        *((path, Gbnf) for path in gbnf or []),
        *((path, StructuralTag) for path in structural_tag or []),
    ]
    for name, file, wanted, options in _list_sources(schemas or [], patterns, lark or [], files, policies):
        with shared.name_file(file), shared.show_progress(console, f"Compiling {name}"):
            constraint = compile_any(wanted, vocabulary, close_objects=closed, cache=cache, **options)
            done = constraint.precompute(
                max_masks=PRECOMPUTED_MASKS if max_masks is None else max_masks,
                max_bytes=PRECOMPUTED_BYTES if max_mib is None else max_mib << 20,
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
