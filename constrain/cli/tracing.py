"""The trace of an answer: as a table for a terminal (``--explain``), and as a page in a file (``--trace``)."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from constrain.cli import shared
from constrain.engine.terminals import name_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from constrain.generation.completion import Completion
    from constrain.generation.observers.trace import TokenTrace
    from constrain.generation.options import Options
    from constrain.language.source import Source
    from constrain.llama.model import Model

_LIKELY, _UNLIKELY = 0.5, 0.1
"""Probabilities from which a token is shown as likely, and below which as unlikely."""

_SHOWN_OTHERS = 3
"""Likely tokens that a row has besides the one of the answer."""

_SHOWN_EXPECTED = 2
"""Expected terminals that a row names; beyond them it gives the number of the others."""


def print_trace(console: Console, completion: Completion) -> None:
    """Prints the answer in colours, a legend, and a row for each token."""
    tokens = completion.trace or ()
    answer = Text()
    for token in tokens:
        answer.append(token.text.translate(shared.HARMLESS), style=_style(token))
    console.print(answer, soft_wrap=True)
    legend = Text("likely", "green").append(", ", "default").append("less likely", "yellow").append(", ", "default")
    legend.append("unlikely", "red").append(", ", "default").append("forced", "blue dim").append(", ", "default")
    console.print(legend.append("healed", "magenta").append(", ", "default").append("closing", "cyan"))
    table = Table("token", "origin", "probability", "allowed", "mass", "others", "expected")
    for token in tokens:
        table.add_row(*_cells(token), style="")
    console.print(table)


def _cells(token: TokenTrace) -> tuple[Text | str, ...]:
    return (
        Text(_quote(token.text), style=_style(token)),
        token.origin,
        f"{math.exp(token.logprob):.3f}",
        f"{token.n_allowed:,}",
        f"{token.mass:.3f}",
        Text(_others(token)),
        Text(_expected(token)),
    )


def _style(token: TokenTrace) -> str:
    if token.origin != "chosen":
        return {"forced": "blue dim", "healed": "magenta", "given": "dim", "closing": "cyan"}[token.origin]
    probability = math.exp(token.logprob)
    return "green" if probability >= _LIKELY else "red" if probability < _UNLIKELY else "yellow"


def _others(token: TokenTrace) -> str:
    """Returns the likeliest other tokens; tokens that the mask refuses get a cross."""
    others = [each for each in token.top if each.token != token.token][:_SHOWN_OTHERS]
    return "  ".join(
        f"{'' if each.is_allowed else '✗'}{_quote(each.text)} {math.exp(each.logprob):.3f}" for each in others
    )


def _expected(token: TokenTrace) -> str:
    names = [name_terminal(*each) for each in token.expected]
    more = len(names) - _SHOWN_EXPECTED
    return ", ".join([*names[:_SHOWN_EXPECTED], *([f"{more} more"] if more > 0 else [])])


def _quote(text: str) -> str:
    return repr(text).translate(shared.HARMLESS)


def require_place(path: Path, flag: str) -> None:
    """Raises ``BadParameter`` for a file that cannot be written where it should be; ``flag`` names it."""
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name a file in it", param_hint=flag)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise typer.BadParameter(f"no file can be written in {path.parent}", param_hint=flag)


def write_run(
    path: Path,
    model: Model,
    prompt: Any,
    wanted: str | Source | None,
    options: Options,
    completion: Completion,
    name: str,
) -> None:
    """Writes a finished run as an HTML file, whole or not at all. ``name``: name of the model. Raises ``OSError``."""
    from constrain.generation.options import is_json_schema
    from constrain.generation.planning import make_plan
    from constrain.private_folders import replace_file
    from constrain.server.playground.exporting import export_run
    from constrain.server.playground.objects import TokenObjects, done_object, prompt_object

    plan = make_plan(model, prompt, wanted, options)
    has_value = wanted is not None and is_json_schema(wanted)
    run = {
        "request": {"model": name, "messages": [{"role": "user", "content": prompt}], "language": _language(wanted)},
        "prompt": prompt_object(plan),
        "tokens": TokenObjects(model.vocabulary.n_vocab).add(completion.trace or ()),
        "reasoning": completion.thoughts,
        "done": done_object(completion, has_value=has_value),
    }
    replace_file(path, export_run(run).encode())


def _language(wanted: str | Source | None) -> dict[str, str] | None:
    """Returns a schema or grammar as the page shows it."""
    if wanted is None:
        return None
    if isinstance(wanted, str):
        from constrain.language.short_schema import is_short

        return {"kind": "short" if is_short(wanted) else "json_schema", "text": wanted}
    text: Sequence[str] = [getattr(wanted, each) for each in ("text", "pattern") if hasattr(wanted, each)]
    return {"kind": type(wanted).__name__.lower(), "text": str(text[0]) if text else str(wanted)}
