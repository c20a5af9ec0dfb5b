"""Code in processes of their own, whose crashes, time and memory are their own: forks of one that has imported all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

WORKS = "works"

SECONDS = 60
"""Seconds after which a fork is ended."""

_FORKING = """
import json, os, resource, signal, sys, time
import constrain
PRELUDE
for line in sys.stdin:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # a runaway ends soon
        start = time.process_time()
        try:
            exec(json.loads(line), globals())
            outcome = {"error": "works", "message": ""}
        except BaseException as error:
            ours = isinstance(error, constrain.ConstrainError)
            outcome = {"error": type(error).__name__, "message": str(error), "ours": ours}
            outcome["pointer"] = getattr(error, "pointer", None)
        outcome["seconds"] = time.process_time() - start
        outcome["memory"] = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) << 10
        os.write(writing, json.dumps(outcome).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as told:
        outcome = told.read()
    print(json.dumps([os.waitpid(child, 0)[1], outcome]), flush=True)
"""


@dataclass(frozen=True)
class Outcome:
    """Error (``WORKS`` for none), message and place; processor seconds and the greatest resident bytes."""

    error: str
    message: str
    seconds: float
    memory: int
    ours: bool = True
    pointer: str | None = None


class Apart:
    """A program that runs each code it is given in a fork of itself. ``stack``: KiB of its stack, if not the usual."""

    def __init__(self, prelude: str, *, stack: int | None = None) -> None:
        program = _FORKING.replace("PRELUDE", prelude).replace("SECONDS", str(SECONDS))
        limit = "" if stack is None else f"ulimit -s {stack}; "
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "CONSTRAIN_CACHE": ""}
        self._program = subprocess.Popen(
            ["bash", "-c", f'{limit}exec "$0" -c "$1"', sys.executable, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd="/",  # Python looks here first, and in the sources there may be no kernel
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._program.communicate()

    def run(self, code: str) -> Outcome:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps(code) + "\n")
        self._program.stdin.flush()
        line = self._program.stdout.readline()
        assert line, f"the program ended:\n{self._program.communicate()[1][-2000:]}"
        status, told = json.loads(line)
        code_of_exit = os.waitstatus_to_exitcode(status)
        assert code_of_exit == 0, f"the fork ended with {signal.Signals(-code_of_exit).name}"
        return Outcome(**json.loads(told))
