"""The forked processes, and reports to the server about their ends.

A session signals its process by number. The system must not give the number to another process meanwhile. So an exited
child is reaped only after its session has closed the report socket.
"""

from __future__ import annotations

import selectors
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass

from constrain.system import exit_code_of, kill, reap, watch_ends

EXIT_CODE = struct.Struct("!i")
"""A report of an end: the exit status, or minus the number of the signal that ended the process."""


@dataclass(eq=False, slots=True)
class _Child:
    """A forked process. ``report``: socket to its session; ``None`` once the session has closed its end."""

    process: int
    report: socket.socket | None
    has_ended: bool = False


class Children:
    """The forked children of this process, which must fork no others. For the main thread only."""

    def __init__(self) -> None:
        self._children: list[_Child] = []
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        for each in (self._woken, self._waker):
            each.settimeout(0)
        self._selector.register(self._woken, selectors.EVENT_READ)
        watch_ends(self._waker)

    def add(self, process: int, report: socket.socket) -> None:
        """Takes charge of a forked process: its ``EXIT_CODE`` is sent to ``report`` when it ends.

        ``process``: the process id. ``report``: socket to the session that the process serves.
        """
        report.settimeout(0)
        child = _Child(process, report)
        self._children.append(child)
        self._selector.register(report, selectors.EVENT_READ, child)

    def wait_for(self, control: socket.socket) -> None:
        """Reports ends of children until a socket has data to read."""
        self._selector.register(control, selectors.EVENT_READ)
        is_readable = False
        while not is_readable:
            ready = self._selector.select()
            with suppress(BlockingIOError):
                self._woken.recv(1 << 12)
            for key, _ in ready:
                is_readable |= key.fileobj is control
                if isinstance(key.data, _Child):
                    self._release(key.data)
            self._report_ends()
        self._selector.unregister(control)

    def forget(self) -> None:
        """Closes, in a forked process, the files of its parent."""
        watch_ends(None)
        self._selector.close()
        for child in self._children:
            if child.report is not None:
                child.report.close()
        self._woken.close()
        self._waker.close()

    def kill(self) -> None:
        """Kills all children, including stopped ones. This process is about to end and reports no further ends."""
        watch_ends(None)
        for child in self._children:
            if not child.has_ended:
                kill(child.process)

    def _report_ends(self) -> None:
        for child in self._children.copy():
            if child.has_ended:
                continue
            code = exit_code_of(child.process)
            if code is None:
                continue
            child.has_ended = True
            if child.report is None:
                self._reap(child)
                continue
            with suppress(OSError):  # the session may have closed its end in the meantime
                child.report.send(EXIT_CODE.pack(code))

    def _release(self, child: _Child) -> None:
        """Reaps a child, since its session no longer signals it."""
        assert child.report is not None
        self._selector.unregister(child.report)
        child.report.close()
        child.report = None
        if child.has_ended:
            self._reap(child)

    def _reap(self, child: _Child) -> None:
        reap(child.process)
        self._children.remove(child)
