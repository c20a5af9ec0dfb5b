"""What several commands share: options, and a sign that something takes its time."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from constrain._errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

FAILED, LINES_FAILED, INTERRUPTED = 1, 3, 130

SchemaFile = Annotated[Path | None, typer.Option(help="File with the JSON Schema of the answer.")]
ModelFile = Annotated[Path | None, typer.Option(help="GGUF file; by default the model of the demo extra.")]
MaxTokens = Annotated[int | None, typer.Option(min=1, help="Most tokens of the answer.")]
Temperature = Annotated[float, typer.Option(min=0, help="0 takes the most likely token.")]
TopK = Annotated[int, typer.Option(min=0, help="Sample from this many tokens; 0 for all.")]
TopP = Annotated[float, typer.Option(min=0, max=1, help="Sample from tokens of this probability.")]
MinP = Annotated[float, typer.Option(min=0, max=1, help="Least probability beside the greatest.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Makes sampling reproducible.")]
RepeatPenalty = Annotated[float, typer.Option(help="Divides the logits of recent tokens.")]
Timeout = Annotated[float | None, typer.Option(min=0, help="Seconds until the answer is ended.")]
Context = Annotated[int | None, typer.Option("--ctx", min=0, help="Context in tokens; 0 for the model's.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads to compute with.")]
ShowSchema = Annotated[bool, typer.Option(help="Whether the prompt shows the schema.")]


@contextlib.contextmanager
def working(console: Console, what: str) -> Iterator[None]:
    """Shows that something takes its time, on a terminal."""
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} ..."):
        yield


def read_schema(path: Path) -> Any:
    """The JSON in a file. Raises ``SchemaError`` if it is none."""
    import json

    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{path} is not JSON: {error}") from error
