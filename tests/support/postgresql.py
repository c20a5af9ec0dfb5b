"""A PostgreSQL server of its own, for the tests of shared stores. Skipped, visibly, where none is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ports import free_port


def _programs() -> Path | None:
    """The folder with ``initdb`` and ``pg_ctl``, where Debian or the path has one."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


@contextmanager
def running() -> Iterator[str]:
    """Runs a server; yields the address of an empty database, as SQLAlchemy reads it."""
    programs = _programs()
    if programs is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    pytest.importorskip("psycopg")
    user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="constrain-postgresql-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        port = free_port()

        def call(*command: str) -> None:
            subprocess.run(command, cwd=folder, user=user, check=True, stdout=subprocess.DEVNULL, timeout=60)

        call(str(programs / "initdb"), "-D", "data", "-U", "tester", "-A", "trust", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        control = str(programs / "pg_ctl")
        call(control, "-D", "data", "-o", options, "-l", "log", "-w", "start")
        try:
            yield f"postgresql+psycopg://tester@127.0.0.1:{port}/postgres"
        finally:
            call(control, "-D", "data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)
