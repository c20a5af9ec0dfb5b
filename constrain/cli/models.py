"""``constrain models``: lists the models on this machine."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from constrain.cli.shared import HARMLESS


def models(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False) -> None:
    """Lists the models on this machine: of installed packages and of other programs, and prepared copies.

    Searched are installed Python packages, the folders of llama.cpp, Hugging Face, LM Studio and Ollama, prepared
    copies, and the folders in the environment variable CONSTRAIN_MODELS. Any other GGUF file can be given by its path.
    """
    from constrain.llama.finding import find_models

    found = find_models()
    if as_json:
        listed = [{"name": one.name, "bytes": one.size, "source": one.source, "path": str(one.path)} for one in found]
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
        return
    if not found:
        text = "no models found; install a small one: pip install 'constrain-llm[demo]'"
        Console(stderr=True, soft_wrap=True).print(text, markup=False, highlight=False)
        return
    table = Table("model", "MiB", "found in", "file")
    for one in found:
        table.add_row(
            Text(one.name.translate(HARMLESS)),
            Text(str(round(one.size / 2**20)), justify="right"),
            Text(one.source),
            Text(str(one.path).translate(HARMLESS), overflow="fold"),
        )
    Console(highlight=False).print(table)
