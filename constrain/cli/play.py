"""``constrain play``: opens the playground in the browser, on a server of its own."""

from __future__ import annotations

import sys
import threading
import webbrowser
from dataclasses import dataclass

from constrain.arguments import Flag, option
from constrain.cli import flags, shared
from constrain.cli.serve import require_server, run_server


@dataclass(frozen=True)
class _Playing:
    """The flags of ``play`` that no other command has."""

    port: int = option(0, Flag("Port of the page on this machine; 0 for any free one."), least=0, most=65535)
    browser: bool = option(True, Flag("Open the page, or only print its address."))


@flags.takes(machine=shared.Machine, own=_Playing)
def play(*, machine: shared.Machine, own: _Playing) -> None:
    """Opens a page for trying schemas and prompts, which shows answers token by token.

    The page, and everything it sends, stays on this machine. Ctrl-C ends it.
    """
    require_server()
    from constrain.server.config import read_config
    from constrain.server.http.listening import listen

    asked = {"ctx": machine.n_ctx, "threads": machine.n_threads, "gpu_layers": machine.n_gpu_layers, "port": own.port}
    config = read_config(None, {name: value for name, value in asked.items() if value is not None})

    def show(url: str) -> None:
        sys.stdout.write(f"{url}/\n")
        sys.stdout.flush()
        if own.browser:
            # some browsers run in this terminal, and come back when they are closed
            threading.Thread(target=webbrowser.open, args=(f"{url}/",), daemon=True).start()

    run_server(config, machine.model, [], listen(config.host, config.port), started=show)
