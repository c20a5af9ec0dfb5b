"""Programs that compute beside what is tested or measured."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

_BUSY = "print(flush=True)\nwhile True: pass"


@contextlib.contextmanager
def busy_programs(count: int) -> Iterator[None]:
    """Has so many programs compute; returns when all of them do."""
    with contextlib.ExitStack() as stack:
        programs = []
        for _ in range(count):
            program = stack.enter_context(subprocess.Popen([sys.executable, "-c", _BUSY], stdout=subprocess.PIPE))
            stack.callback(program.kill)
            programs.append(program)
        for program in programs:
            assert program.stdout is not None
            program.stdout.readline()
        yield
