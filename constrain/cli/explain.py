"""``constrain explain``: shows where a text stops matching, and what was expected and allowed there."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from constrain.arguments import Flag, option
from constrain.cli import flags, shared
from constrain.cli.streams import read_input
from constrain.errors import ConstrainError
from constrain.language.policies import CompileOptions  # noqa: TC001 - typer reads the annotations

if TYPE_CHECKING:
    from constrain.inspection.explanation import TokenStep
    from constrain.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True)
class _Explaining:
    """The flags of ``explain`` that no other command has."""

    file: Path | None = option(None, Flag("File with the text, instead of the argument."))
    model: Path | None = option(None, Flag("GGUF file whose tokens are listed; only its vocabulary is read."))
    closed: bool = option(
        False,
        Flag("Exclude undeclared keys, as generation does, or allow them where the schema does.", "closed/--open"),
    )


@flags.takes(
    language=shared.Language, own=_Explaining, policies=flags.policies, further=flags.only(shared.Further, "registry")
)
def explain(
    text: Annotated[str | None, typer.Argument(help='The text; "-" reads it from standard input.')] = None,
    *,
    language: shared.Language,
    own: _Explaining,
    policies: CompileOptions,
    further: shared.Further,
) -> None:
    """Shows where a text stops matching a schema or grammar, what was expected there, and what is missing.

    The text is used unchanged, including a line end. The exit status is 0 if it matches and 1 if it does not. It is 2
    for wrong usage, and for a schema, grammar or file that cannot be used.
    """
    from constrain.inspection.explanation import explain as explain_text

    try:
        given, wanted = _read(text, own.file), language.read()
        if wanted is None:
            raise typer.BadParameter("no schema, pattern or grammar to explain the text by")
        vocabulary = None if own.model is None else _vocabulary(own.model)
        options: CompileOptions = {**policies, **further.read()}
        progress = shared.show_progress(Console(stderr=True), "Compiling the schema or grammar")
        with shared.name_file(language.file), progress:
            found = explain_text(wanted, given, vocabulary, closed=own.closed, **options)
    except (ConstrainError, OSError, ValueError) as error:
        shared.show_error(error)
        raise typer.Exit(shared.WRONG_INPUT) from error
    sys.stdout.write(f"{found}\n".translate(shared.HARMLESS))
    if found.steps:
        sys.stdout.flush()
        Console(highlight=False).print(_table(found.steps))
    if not found.matches:
        raise typer.Exit(shared.FAILED)


def _read(text: str | None, file: Path | None) -> bytes:
    flags.refuse_together(**{"explain": True, "TEXT": text is not None, "--file": file is not None})
    if file is not None:
        return file.read_bytes()
    assert text is not None
    return read_input() if text == "-" else text.encode(errors="surrogateescape")


def _vocabulary(model: Path) -> Vocabulary:
    from constrain.llama.loading import load_vocabulary

    return load_vocabulary(model)


def _table(steps: tuple[TokenStep, ...]) -> Table:
    """Makes a table with one row per token; the last row is the first token that fails, or the end."""
    table = Table("byte", "token", "text", "allowed", "to finish", "", title="Tokens")
    for step in steps:
        cells = (str(step.offset), str(step.token), Text(_format_token(step.text)), f"{step.n_allowed:,}")
        verdict = "" if step.is_allowed else "not allowed"
        table.add_row(*cells, str(step.min_tokens_left), verdict, style="" if step.is_allowed else "bold red")
    return table


def _format_token(token: bytes) -> str:
    """Returns the text of a token, or its bytes if these are not whole characters."""
    if not token:
        return "(end)"
    try:
        return repr(token.decode())
    except UnicodeDecodeError:
        return repr(token)
