"""The command line, its exit statuses, and its commands: ``constrain generate``, ``batch``, ``serve``, ``check``, ...

Standard output receives only the result of a command; progress, warnings and errors go to standard error.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

from constrain.arguments import Flag, option
from constrain.errors import ConstrainError, pointer_to
from constrain.generation.exclusions import MIN_VOTERS
from constrain.generation.options import Options  # noqa: TC001
from constrain.language.policies import CompileOptions  # noqa: TC001

try:
    import typer
    from rich.console import Console
    from typer.core import TyperCommand

    from constrain.cli import flags, shared
    from constrain.cli.batch import batch
    from constrain.cli.chat.command import chat
    from constrain.cli.check import check
    from constrain.cli.compile import compile_
    from constrain.cli.doctor import doctor
    from constrain.cli.explain import explain
    from constrain.cli.export import export_
    from constrain.cli.grammars import grammars
    from constrain.cli.models import models
    from constrain.cli.play import play
    from constrain.cli.serve import serve
    from constrain.cli.streams import read_prompt, settle_streams, write_out
    from constrain.cli.tracing import print_trace, require_place, write_run
    from constrain.cli.verify import require_certificate, verify, write_certificate
except ModuleNotFoundError as error:
    raise SystemExit(f"constrain: {error.name} is missing; pip install 'constrain-llm[cli]'") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from constrain.arguments import Function
    from constrain.generation.completion import Completion
    from constrain.generation.observers.confidence.fields import FieldConfidence
    from constrain.language.source import Source


class _Command(TyperCommand):
    """A command whose usage line has its arguments in capitals: ``PROMPT``, ``[TEXT]``, ``FILES...``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Returns no arguments: those that are left are an error, which tells the usual reason for them."""
        ctx.allow_extra_args = True
        left = super().parse_args(ctx, args)
        if left and not ctx.resilient_parsing:
            ctx.fail(
                f"unexpected arguments: {' '.join(left)}; quotation marks keep the words of one argument together, as "
                "in --schema 'name str, age int'"
            )
        return left

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Returns the parts of the usage line; Typer writes ``{prompt}`` for an argument that must be given."""
        return [
            piece.translate({ord("{"): None, ord("}"): None}).upper() for piece in super().collect_usage_pieces(ctx)
        ]


class _Program(typer.Typer):
    def command(self, name: str | None = None, **options: Any) -> Callable[[Function], Function]:
        """Returns the decorator that makes a function a command."""
        return super().command(name, cls=_Command, **options)


app = _Program(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def main() -> None:
    """Runs the command line.

    Exit status: 0 for success; 1 for failure, wrong schemas and grammars included (``explain``: 2); 2 for wrong usage;
    3 for a finished batch with failed lines; 4 for a certificate whose answer the model writes differently now; 130 for
    an interruption.
    """
    try:
        settle_streams()
        try:
            app()
        finally:
            write_out()
    except (ConstrainError, OSError, ValueError) as error:
        shared.show_error(error)
        sys.exit(shared.FAILED)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - an option's value
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        known = version("constrain-llm")
    except PackageNotFoundError:
        known = "(not installed: run from its sources)"
    sys.stdout.write(f"constrain {known}\n")
    raise typer.Exit


@app.callback()
def about(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Makes a local language model answer in exactly the shape you asked for."""


@dataclass(frozen=True)
class _Generating:
    """The flags of ``generate`` that no other command has."""

    seed: int | None = option(None, Flag("Makes sampling reproducible."), least=0)
    show_prompt: bool = option(False, Flag("Print the text that the model would read, and do not generate."))
    vote: int | None = option(
        None,
        Flag("Write this many answers, and print the one that they agree on, field by field.", metavar="N"),
        least=MIN_VOTERS,
    )
    explain: bool = option(
        False, Flag("Print a row for each token: where it comes from, how likely it was, how many were allowed.")
    )
    trace: Path | None = option(
        None, Flag("Write a page that shows the answer token by token, and opens offline.", metavar="FILE")
    )
    certificate: Path | None = option(
        None, Flag("Write the proof that the answer is one of its schema; see constrain verify.", metavar="FILE")
    )
    certificate_prompt: bool = option(False, Flag("Keep the token ids of the prompt in the certificate."))
    sign: Path | None = option(None, Flag("PEM file with an Ed25519 key that signs the certificate.", metavar="FILE"))
    stream: str | None = option(
        None,
        Flag(
            "What to print while the model writes: its text, as on a terminal; or a line of JSON for each part of the "
            "value that begins, grows or is complete, with its JSON Pointer."
        ),
        choices=("text", "fields"),
    )


@app.command()
@flags.takes(
    language=shared.Language,
    machine=shared.Machine,
    options=flags.options_without_tools,
    policies=flags.policies,
    further=shared.Further,
    own=_Generating,
)
def generate(
    prompt: Annotated[str, typer.Argument(help='What to ask the model; "-" reads it from standard input.')],
    *,
    language: shared.Language,
    machine: shared.Machine,
    options: Options,
    policies: CompileOptions,
    further: shared.Further,
    own: _Generating,
) -> None:
    """Asks a model and prints its answer: JSON that matches the schema, or text that matches the grammar."""
    asked = read_prompt(prompt)
    wanted = language.read()
    stream, vote, trace, certificate = own.stream, own.vote, own.trace, own.certificate
    flags.refuse_together(**{"--stream fields": stream == "fields", "--schema": isinstance(wanted, str)})
    flags.refuse_together(
        vote=vote is not None,
        unbias=options.get("unbias"),
        confidence=options.get("confidence"),
        stream=stream is not None,
        trace=own.explain or trace is not None,
        certificate=certificate is not None,
    )
    if trace is not None:
        require_place(trace, "--trace")
    certifies = require_certificate(certificate, own.sign, with_prompt=own.certificate_prompt)
    found = further.read()
    console = Console(stderr=True)
    with shared.show_progress(console, f"Loading {machine.name}"):
        from constrain.llama.model import Model

        loaded = Model(machine.model, **machine.sizes())
    settings: Options = {**options, **policies, **found, "seed": own.seed, "trace": own.explain or trace is not None}
    if certifies:
        settings["certificate"] = certifies
    if own.show_prompt:
        from constrain.generation.planning import shown_prompt

        with shared.name_file(language.file):
            sys.stdout.write(shown_prompt(loaded, asked, schema=wanted, **settings) + "\n")
        return
    with shared.name_file(language.file):
        if stream == "fields":
            completion = _answer_in_fields(loaded, asked, wanted, settings)
        elif vote is not None:
            completion = _answer_by_vote(console, loaded, asked, wanted, settings, vote)
        else:
            completion = _answer(console, loaded, asked, wanted, settings, live=stream == "text")
    if own.explain:
        print_trace(Console(stderr=True, highlight=False), completion)
    if trace is not None:
        write_run(trace, loaded, asked, wanted, settings, completion, machine.name)
    if certificate is not None:
        write_certificate(certificate, completion, own.sign)
    if completion.fields is not None:
        _show_fields(completion.fields)
    shared.show_warnings(() if completion.report is None else completion.report.warnings)
    if console.is_terminal:
        console.print(_describe_run(completion), style="dim", highlight=False)


def _describe_run(completion: Completion) -> str:
    """Says how long an answer took, and which limits it met."""
    note = f"{completion.usage.completion_tokens} tokens in {completion.timings.generation:.2f} s"
    if completion.timings.generation > 0 and completion.usage.completion_tokens > 1:
        note += f" ({completion.usage.completion_tokens / completion.timings.generation:.0f} per second)"
    if completion.agreement is not None:
        note += f"; {_describe_agreement(completion)}"
    if completion.finish_reason != "stop":
        note += f", ended early by {completion.finish_reason}"
    if completion.shortened:
        note += f"; {completion.shortened} strings or numbers were ended early"
    if completion.limited_masks:
        note += f"; {completion.limited_masks} masks were limited by {' and '.join(completion.limits_met)}"
    elif completion.limits_met:
        note += f"; limits met: {' and '.join(completion.limits_met)}"
    return note


def _answer_in_fields(model: Any, prompt: str, wanted: str | Source | None, options: Options) -> Completion:
    """Writes a line of JSON to standard output for each event of a field."""
    import json

    from constrain.generation.completion import Finished
    from constrain.generation.generate import stream
    from constrain.partial.reader import FieldEvent

    for event in stream(model, prompt, schema=wanted, partial=True, **options):
        if isinstance(event, FieldEvent):
            line = {"event": event.kind, "path": pointer_to(event.path)}
            if event.kind == "grow":
                line["text"] = event.text
            elif event.kind == "complete":
                line["value"] = event.value
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    assert isinstance(event, Finished)
    return event.completion


def _answer_by_vote(
    console: Console, model: Any, prompt: str, wanted: str | Source | None, options: Options, voters: int
) -> Completion:
    """Writes the answer that several answers agree on to standard output."""
    from constrain.generation.generate import complete

    with shared.show_progress(console, f"Writing {voters} answers"):
        completion = complete(model, prompt, schema=wanted, n=voters, vote=True, **options)
    text = completion.text.translate(shared.HARMLESS) if sys.stdout.isatty() else completion.text
    sys.stdout.write(text + "\n")
    return completion


def _show_fields(fields: Mapping[tuple[str | int, ...], FieldConfidence]) -> None:
    """Writes a line for each part of an answer to standard error: its place, its probability, and other values."""
    import json

    console = Console(stderr=True, soft_wrap=True)
    for path, field in fields.items():
        said = "forced" if field.is_forced else f"{field.probability:.3f}"
        own = json.dumps(field.value)
        others = [
            f"{json.dumps(other.value, ensure_ascii=False)} {other.probability:.3f}"
            for other in field.alternatives
            if json.dumps(other.value) != own
        ]
        line = "; ".join([f"{pointer_to(path) or 'whole answer'}: {said}", *others])
        console.print(line.translate(shared.HARMLESS), style="dim", markup=False, highlight=False)


def _describe_agreement(completion: Completion) -> str:
    """Says how many answers agree with the whole value, and with the part on which fewest agree."""
    agreement, n = completion.agreement or {}, len(completion.votes)
    said = f"{round(agreement[()] * n)} of {n} answers agree"
    path, share = min(agreement.items(), key=lambda each: (each[1], -len(each[0])))
    return f"{said}, fewest ({round(share * n)}) on {pointer_to(path)}" if path else said


def _answer(
    console: Console, model: Any, prompt: str, wanted: str | Source | None, options: Options, *, live: bool = False
) -> Completion:
    """Writes the answer to standard output: piece by piece if ``live`` or on a terminal, otherwise all at once.

    A draft appears on standard error, if that is a terminal.
    """
    from constrain.chat.reading.events import ReasoningDelta, TextDelta
    from constrain.errors import OutputValidationError
    from constrain.generation.completion import Finished
    from constrain.generation.generate import stream

    live = live or sys.stdout.isatty()
    drafted = False
    events = stream(model, prompt, schema=wanted, **options)
    with contextlib.ExitStack() as waiting:
        waiting.enter_context(shared.show_progress(console, "Reading the prompt" if live else "Writing the answer"))
        try:
            for event in events:
                if drafted and not isinstance(event, ReasoningDelta):
                    console.print()
                    drafted = False
                if isinstance(event, Finished):
                    break
                if console.is_terminal and isinstance(event, ReasoningDelta):
                    waiting.close()
                    thoughts = event.text.translate(shared.HARMLESS)
                    console.print(thoughts, style="dim", end="", markup=False, highlight=False, soft_wrap=True)
                    drafted = True
                if live and isinstance(event, TextDelta):
                    waiting.close()
                    sys.stdout.write(event.text.translate(shared.HARMLESS))
                    sys.stdout.flush()
        except OutputValidationError as error:  # the text has no value, but this command prints the text
            sys.stdout.write("\n" if live else error.text + "\n")
            raise
    assert isinstance(event, Finished)
    sys.stdout.write("\n" if live else event.completion.text + "\n")
    return event.completion


app.command()(batch)
app.command()(chat)
app.command()(check)
app.command(name="compile")(compile_)
app.command()(doctor)
app.command()(explain)
app.command(name="export")(export_)
app.command()(grammars)
app.command()(models)
app.command()(play)
app.command()(serve)
app.command()(verify)


@app.command()
def example() -> None:
    """Extracts a person from a sentence with the model of the demo extra: the first example of the README."""
    from constrain.example import main as run

    run()
