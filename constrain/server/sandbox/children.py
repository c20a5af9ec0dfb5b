"""The forked processes: the longer they compute, the lower their priority; and the ends of their connections.

Nobody else signals a process or waits for its end, so the system cannot give its number to another one meanwhile.
"""

from __future__ import annotations

import select
import socket
import struct
from contextlib import suppress

from constrain.system import cpu_seconds_of, kill, lower_thread, reap

LENGTH = struct.Struct("!Q")
"""Length in front of each pickled message on a connection."""

END = (1 << 64) - 1
"""In place of the length of a message: the process has ended, and ``EXIT_CODE`` follows."""

EXIT_CODE = struct.Struct("!i")
"""The last bytes on a connection: the exit status of its process, or minus the number of the signal that ended it."""

_TICK_MILLISECONDS = 20
"""Milliseconds between two looks at the processes."""

_PRIORITIES = ((0.5, 10), (0.03, 5))
"""CPU seconds from which a process has a priority (``nice``) that is lower by so much. 49 of 50 schemas in practice
take less than 0.03 seconds, 298 of 299 schemas of MaskBench less than 0.5.
"""


class Children:
    """The forked children of this process, which must fork no others. For the main thread only.

    ``nice``: priority of this process, which its children begin with.
    """

    def __init__(self, nice: int) -> None:
        self._nice = nice
        self._connections: dict[int, socket.socket] = {}  # by process id

    def add(self, process: int, connection: socket.socket) -> None:
        """Takes charge of a forked process: its ``EXIT_CODE`` is sent when it ends; it ends when its session does."""
        self._connections[process] = connection

    def wait_for(self, control: socket.socket) -> None:
        """Looks after the processes until a socket has data to read."""
        is_readable = False
        while not is_readable:
            poll = select.poll()
            poll.register(control, select.POLLIN)
            for connection in self._connections.values():
                poll.register(connection, 0)  # reports that the session has closed its end
            ready = {number for number, _ in poll.poll(_TICK_MILLISECONDS if self._connections else None)}
            is_readable = control.fileno() in ready
            for process, connection in list(self._connections.items()):
                self._look_at(process, connection, is_left=connection.fileno() in ready)

    def forget(self) -> None:
        """Closes, in a forked process, the connections of the others."""
        for connection in self._connections.values():
            connection.close()

    def kill(self) -> None:
        """Kills all children. This process is about to end and reports no further ends."""
        for process in self._connections:
            kill(process)

    def _look_at(self, process: int, connection: socket.socket, *, is_left: bool) -> None:
        if is_left:
            kill(process)
        code = reap(process, waits=is_left)
        if code is None:
            seconds = cpu_seconds_of(process)
            lower_thread(process, self._nice + next((more for least, more in _PRIORITIES if seconds >= least), 0))
            return
        with suppress(OSError):  # the session has closed its end, or has not read for long
            connection.send(LENGTH.pack(END) + EXIT_CODE.pack(code), socket.MSG_DONTWAIT)
        connection.close()
        del self._connections[process]
