"""A server as a program of its own."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from tests.support.server.asking import SECONDS


@dataclass(frozen=True)
class Program:
    """``log``: the lines that it has written so far."""

    url: str
    process: subprocess.Popen[str]
    log: list[str]


@contextlib.contextmanager
def program(*options: str) -> Iterator[Program]:
    """``constrain serve`` with options; killed at the end, unless it has ended before."""
    command = [sys.executable, "-m", "constrain", "serve", "--port", "0", "--alias", "small", *options]
    environment = {**os.environ, "NO_COLOR": "1"}
    log: list[str] = []
    started: Future[str] = Future()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            log.append(line)
            if not started.done() and (found := re.search(r"small at (http://127\.0\.0\.1:\d+)/v1", line)):
                started.set_result(found[1])
        if not started.done():
            started.set_exception(RuntimeError("".join(log)))

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield Program(started.result(SECONDS), process, log)
        finally:
            process.kill()
            reader.join()
