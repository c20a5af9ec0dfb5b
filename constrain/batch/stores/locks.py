"""A lock in a store: one command at a time writes the answers of an output.

Stores have no locks of their own, so the lock is a file with its owner and a time, which the owner renews. Two commands
that begin within the same moment may both see no lock and write theirs; the first one finds the other's name in the
lock before its next upload, and ends. Clocks of machines must agree within a minute.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from constrain.batch.locations import StoreError
from constrain.system import is_running, name_processes

if TYPE_CHECKING:
    from constrain.batch.locations import StoredFile

LOCK_SECONDS = 120
"""Seconds after which a lock that was not renewed counts as abandoned."""

RENEW_SECONDS = 30
"""Seconds between two renewals of a lock."""

_held: set[str] = set()
"""Owners in this process."""


class StoreLock:
    """A lock that this process holds until it is released, the process ends, or another one takes it over.

    Raises ``ValueError`` if another command holds the lock, and ``StoreError``.
    """

    def __init__(self, file: StoredFile) -> None:
        self._file = file
        self.token = secrets.token_hex(4)
        found = self._read()
        if found is not None and not _is_abandoned(found):
            age = max(0, round(time.time() - found["time"]))
            raise ValueError(
                f"another command, on {found['host']} (process {found['process']}), was writing this output {age} s "
                f"ago; if it has ended, try again in {max(1, LOCK_SECONDS - age)} s, or delete {file}"
            )
        _held.add(self.token)
        try:
            self._write()
            self.require()
        except BaseException:
            _held.discard(self.token)
            raise
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="constrain-batch-lock", daemon=True)
        self._thread.start()

    def require(self) -> None:
        """Raises ``StoreError`` if another command has taken over the lock."""
        found = self._read()
        if found is None or found["owner"] != self.token:
            by = "deleted" if found is None else f"taken over on {found['host']} (process {found['process']})"
            raise StoreError(f"{self._file}: this lock was {by}; the answers that were uploaded are kept")

    def release(self) -> None:
        """Gives up the lock. Raises ``StoreError``."""
        self.abandon()
        found = self._read()
        if found is not None and found["owner"] == self.token:
            self._file.delete()

    def abandon(self) -> None:
        """Leaves the lock in the store, where this command can no longer reach it; it does not renew it."""
        self._released.set()
        self._thread.join()
        _held.discard(self.token)

    def _renew(self) -> None:
        """Renews the lock. A failure is left to the next upload, which meets it, too, and says so."""
        while not self._released.wait(RENEW_SECONDS):
            with contextlib.suppress(StoreError, ValueError):
                self.require()
                self._write()

    def _read(self) -> dict[str, Any] | None:
        content = self._file.read()
        if not content:  # some stores show a file before it has its content
            return None
        try:
            found = json.loads(content)
            float(found["time"]), found["owner"], found["host"], found["process"]
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{self._file}: this is not a lock of a batch; delete it") from error
        known: dict[str, Any] = found
        return known

    def _write(self) -> None:
        now = time.time()
        shown = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="seconds")
        lock = {"owner": self.token, "host": socket.gethostname(), "process": os.getpid()}
        whole = {**lock, "processes": name_processes(), "time": now, "date": shown}
        self._file.write(json.dumps(whole, indent=2).encode() + b"\n")


def _is_abandoned(lock: dict[str, Any]) -> bool:
    """Returns whether the owner of a lock has ended, or has not renewed it for long."""
    if time.time() - lock["time"] > LOCK_SECONDS:
        return True
    here = name_processes()
    if here is None or lock.get("processes") != here:
        return False
    if lock["process"] == os.getpid():
        return lock["owner"] not in _held
    return not is_running(lock["process"])
