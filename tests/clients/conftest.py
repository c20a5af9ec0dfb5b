"""The server that all clients ask, and where they are installed.

The clients' own tests, in folders, are no part of this run: ``test_clients.py`` runs them, each in its environment.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from constrain.llama.model import default_model_path
from tests.clients.environments import KEYS, MODEL, SECONDS, THINKER
from tests.support.server.ollama import THINKING

collect_ignore = [folder.name for folder in Path(__file__).parent.iterdir() if folder.is_dir()]
"""Not even looked into: their own ``conftest.py`` import the clients."""

TOKENS = 4096
SEQUENCES = 4


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server, a process of its own."""
    options = ["--alias", MODEL, "--ctx", str(TOKENS), "--parallel", str(SEQUENCES)]
    with serving(tmp_path_factory.mktemp("server"), MODEL, *options) as url:
        yield url


@pytest.fixture(scope="session")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server whose model reasons before its answers."""
    folder = tmp_path_factory.mktemp("thinker")
    (folder / "thinking.jinja").write_text(THINKING)
    config = folder / "server.toml"
    table = {"path": default_model_path(), "name": THINKER, "chat_template": folder / "thinking.jinja"}
    config.write_text("[[models]]\nctx = 1024\nparallel = 1\n" + "".join(f'{k} = "{v}"\n' for k, v in table.items()))
    with serving(folder, THINKER, "--config", str(config)) as url:
        yield url


@contextlib.contextmanager
def serving(folder: Path, model: str, *options: str) -> Iterator[str]:
    """Runs a server with a model, keys, and files in a folder; its URL."""
    keys = folder / "keys"
    keys.write_text("\n".join(KEYS))
    shared = ["--port", "0", "--threads", "1", "--api-key-file", str(keys), "--cors-origin", "*"]
    command = [sys.executable, "-m", "constrain", "serve", *options, *shared]
    environment = {**os.environ, "NO_COLOR": "1", "CONSTRAIN_CACHE": str(folder / "cache")}
    said: list[str] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder) as program:
        url: Future[str] = Future()
        listener = threading.Thread(target=_listen, args=(program, model, said, url))
        listener.start()
        try:
            yield url.result(SECONDS)
        finally:
            program.send_signal(signal.SIGTERM)
            listener.join()
    log = "".join(said)
    assert "Traceback" not in log, log


def _listen(program: subprocess.Popen[str], model: str, said: list[str], url: Future[str]) -> None:
    """Notes what a server says, and where it is as soon as that is said."""
    assert program.stderr is not None
    for line in program.stderr:
        said.append(line)
        if (found := re.search(rf"{model} at (http://127\.0\.0\.1:\d+/v1)$", line)) and not url.done():
            url.set_result(found[1])
    if not url.done():
        url.set_exception(RuntimeError("The server ended: " + "".join(said)))


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which clients are installed."""
    kept = os.environ.get("CONSTRAIN_CLIENT_ENVIRONMENTS")
    return Path(kept).resolve() if kept else tmp_path_factory.mktemp("environments")
