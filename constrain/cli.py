"""The command line: ``constrain generate``, ``constrain check`` and ``constrain example``.

What was asked for goes to standard output and nothing else; everything about it goes to standard error.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

from constrain._errors import ConstrainError, LimitError, PatternError, SchemaError, UnsupportedSchemaError

try:
    import typer
    from rich.console import Console
    from rich.table import Table
except ModuleNotFoundError as error:
    raise SystemExit(f"constrain: {error.name} is missing; pip install 'constrain-llm[cli]'") from error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain._api import Completion, Options
    from constrain.constraint import Constraint, Report

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

_FAILED, _INTERRUPTED = 1, 130

_HARMLESS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
"""Control characters, which a terminal would obey, are not for a model to write."""

_MOST_REFUSALS = 100
"""Refused keywords that ``check`` looks for; each is found by compiling again without those before it."""


def main() -> None:
    """Runs the command line. Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    try:
        app()
    except (ConstrainError, OSError, ValueError) as error:
        Console(stderr=True, soft_wrap=True).print(f"error: {error}", style="bold red", markup=False, highlight=False)
        sys.exit(_FAILED)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


@app.callback()
def about() -> None:
    """Makes a local language model answer in exactly the shape you asked for."""


@app.command()
def generate(
    prompt: Annotated[str, typer.Argument(help='What to ask the model; "-" reads it from standard input.')],
    schema: Annotated[Path | None, typer.Option(help="File with the JSON Schema of the answer.")] = None,
    model: Annotated[Path | None, typer.Option(help="GGUF file; by default the model of the demo extra.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of the answer.")] = None,
    temperature: Annotated[float, typer.Option(min=0, help="0 takes the most likely token.")] = 0.8,
    top_k: Annotated[int, typer.Option(min=0, help="Sample from this many tokens; 0 for all.")] = 40,
    top_p: Annotated[float, typer.Option(min=0, max=1, help="Sample from tokens of this probability.")] = 0.95,
    min_p: Annotated[float, typer.Option(min=0, max=1, help="Least probability beside the greatest.")] = 0.05,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes sampling reproducible.")] = None,
    repeat_penalty: Annotated[float, typer.Option(help="Divides the logits of recent tokens.")] = 1.0,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds until the answer is ended.")] = None,
    n_ctx: Annotated[int | None, typer.Option("--ctx", min=0, help="Context in tokens; 0 for the model's.")] = None,
    show_schema: Annotated[bool, typer.Option(help="Whether the prompt shows the schema.")] = True,  # noqa: FBT002
) -> None:
    """Asks a model, and prints its answer: JSON that matches the schema."""
    asked = sys.stdin.read() if prompt == "-" else prompt
    text = None if schema is None else schema.read_text(encoding="utf-8")
    options: Options = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "seed": seed,
        "repeat_penalty": repeat_penalty,
        "timeout": timeout,
        "show_schema": show_schema,
    }
    console = Console(stderr=True)
    with _progress(console, f"Loading {model.name if model else 'the default model'}"):
        from constrain.llama.model import Model

        loaded = Model(model, n_ctx=n_ctx)
    completion = _answer(console, loaded, asked, text, options)
    note = f"{completion.usage.completion_tokens} tokens in {completion.timings.generation:.2f} s"
    if completion.timings.generation > 0 and completion.usage.completion_tokens > 1:
        note += f" ({completion.usage.completion_tokens / completion.timings.generation:.0f} per second)"
    if completion.finish_reason != "stop":
        note += f", brought to its end by {completion.finish_reason}"
    if console.is_terminal:
        console.print(note, style="dim", highlight=False)


def _answer(console: Console, model: Any, prompt: str, schema: str | None, options: Options) -> Completion:
    """Writes the answer to standard output: as it grows on a terminal, otherwise when it is whole."""
    from constrain._api import Finished, stream

    live = sys.stdout.isatty()
    events = stream(model, prompt, schema=schema, **options)
    with contextlib.ExitStack() as waiting:
        waiting.enter_context(_progress(console, "Reading the prompt" if live else "Writing the answer"))
        for event in events:
            if isinstance(event, Finished):
                break
            if live:
                waiting.close()
                sys.stdout.write(event.text.translate(_HARMLESS))
                sys.stdout.flush()
    assert isinstance(event, Finished)
    sys.stdout.write("\n" if live else event.completion.text + "\n")
    return event.completion


@app.command()
def example() -> None:
    """Reads a person out of a sentence, with the model of the demo extra: the first example of the README."""
    from constrain.example import main as run

    run()


@app.command()
def check(schema: Annotated[Path, typer.Argument(help="File with a JSON Schema.")]) -> None:
    """Says what of a schema is enforced, what is refused and where, and under which policies."""
    document = _read_schema(schema)
    constraint, refused = _compile_what_can_be(document)
    console = Console(highlight=False)
    if constraint is not None:
        table = Table("keyword", "times", "places", title="Enforced")
        for keyword, places in sorted(_keywords(document, {pointer for pointer, _ in refused}).items()):
            more = ", ..." if len(places) > _SHOWN_PLACES else ""
            table.add_row(keyword, str(len(places)), ", ".join(p or "/" for p in places[:_SHOWN_PLACES]) + more)
        console.print(table)
        _print_report(console, constraint.report)
    if refused:
        table = Table("where", "why", title="Refused")
        for pointer, reason in refused:
            table.add_row(pointer or "/", reason)
        console.print(table)
        raise typer.Exit(_FAILED)


@contextlib.contextmanager
def _progress(console: Console, what: str) -> Iterator[None]:
    """Shows that something takes its time, on a terminal."""
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} ..."):
        yield


def _read_schema(path: Path) -> Any:
    import json

    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{path} is not JSON: {error}") from error


def _compile_what_can_be(document: Any) -> tuple[Constraint | None, list[tuple[str, str]]]:
    """The constraint without the keywords that are refused, and these: pointer and reason.

    There is none if what is left is no schema, or has no value at all.
    """
    from constrain.constraint import compile as compile_schema
    from constrain.vocabulary import Vocabulary

    # What can be enforced does not depend on the tokens; single bytes are the smallest vocabulary.
    vocabulary = Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b""], eos=[256])
    refused: list[tuple[str, str]] = []
    document = copy.deepcopy(document)
    while len(refused) < _MOST_REFUSALS:
        try:
            return compile_schema(document, vocabulary), refused
        except ConstrainError as error:  # noqa: PERF203
            if error.pointer is None:
                raise
            refused.append((error.pointer, error.message))
            removable = isinstance(error, (UnsupportedSchemaError, PatternError, LimitError))
            if not removable or not _remove(document, error.pointer):
                break
    return None, refused


def _remove(document: Any, pointer: str) -> bool:
    """Takes the keyword at a JSON Pointer out of a schema; ``False`` if that is not possible."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for part in parts[:-1]:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list) and part.isdecimal() and int(part) < len(document):
            document = document[int(part)]
        else:
            return False
    if not parts or not isinstance(document, dict) or parts[-1] not in document:
        return False
    del document[parts[-1]]
    return True


_SHOWN_PLACES = 3

_SCHEMA_MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
"""Keywords whose value has schemas under names of the author's own."""

_VALUES = frozenset(("enum", "const"))
"""Keywords whose value is data, no schema."""


def _keywords(document: Any, without: set[str]) -> dict[str, list[str]]:
    """The places of every keyword of a schema that is enforced, by keyword."""
    from constrain.json_schema.dialects import DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020
    from constrain.json_schema.keywords import keywords_of

    drafts = (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020)
    enforced = {keyword for draft in drafts for keyword, handler in keywords_of(draft).items() if handler is not None}
    places: dict[str, list[str]] = {}
    pending: list[tuple[str, Any]] = [("", document)]
    while pending:
        pointer, schema = pending.pop()
        if isinstance(schema, list):
            pending.extend((f"{pointer}/{index}", part) for index, part in enumerate(schema))
            continue
        if not isinstance(schema, dict):
            continue
        for keyword, value in schema.items():
            place = f"{pointer}/{keyword.replace('~', '~0').replace('/', '~1')}"
            if place in without:
                continue
            if keyword in enforced:
                places.setdefault(keyword, []).append(place)
            elif keyword not in _SCHEMA_MAPS:
                continue
            if keyword in _SCHEMA_MAPS and isinstance(value, dict):
                names = ((name.replace("~", "~0").replace("/", "~1"), part) for name, part in value.items())
                pending.extend((f"{place}/{name}", part) for name, part in names)
            elif keyword not in _VALUES:
                pending.append((place, value))
    return places


def _print_report(console: Console, report: Report) -> None:
    table = Table("policy", "value", title="Policies")
    for name, value in report.policies.items():
        table.add_row(name, str(value))
    console.print(table)
    for warning in report.warnings:
        console.print(f"warning: {warning}", style="yellow", markup=False)
    console.print(
        f"{report.rules} rules with {report.states} states over {report.terminals} terminals; "
        f"the shortest answer has {report.min_tokens} bytes"
    )
