"""``constrain play``: opens the playground in the browser, on a server of its own."""

from __future__ import annotations

import sys
import threading
import webbrowser
from typing import Annotated

import typer

from constrain.cli import shared  # noqa: TC001 - typer reads the annotations
from constrain.cli.serve import require_server, run_server


def play(
    *,
    model: shared.ModelFile = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page on this machine; 0 for any free one.")
    ] = 0,
    ctx: shared.Context = None,
    threads: shared.Threads = None,
    gpu_layers: shared.GpuLayers = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page, or only print its address.")
    ] = True,
) -> None:
    """Opens a page for trying schemas and prompts, which shows answers token by token.

    The page, and everything it sends, stays on this machine. Ctrl-C ends it.
    """
    require_server()
    from constrain.server.config import read_config
    from constrain.server.http.listening import listen

    asked = {"port": port, "ctx": ctx, "threads": threads, "gpu_layers": gpu_layers}
    config = read_config(None, {name: value for name, value in asked.items() if value is not None})

    def show(url: str) -> None:
        sys.stdout.write(f"{url}/\n")
        sys.stdout.flush()
        if browser:
            # some browsers run in this terminal, and come back when they are closed
            threading.Thread(target=webbrowser.open, args=(f"{url}/",), daemon=True).start()

    run_server(config, model, [], listen(config.host, config.port), started=show)
