"""Processes beside the server, one for each request that has something to be read or compiled for the first time."""

from __future__ import annotations

import atexit
import pickle
import socket
import subprocess
import sys
import threading
from functools import cache
from typing import TYPE_CHECKING

from constrain import core
from constrain.server.worker import FORK, LEARN, LENGTH, NUMBER, STATUS, UNKNOWN
from constrain.vocabulary import TokenTable

if TYPE_CHECKING:
    from constrain.vocabulary import Vocabulary

_PROGRAM = """
import socket, sys
sys.path[:] = {path!r}
from constrain.server.worker import main
main(socket.socket(fileno={descriptor}))
"""

_END_SECONDS = 5.0
"""Seconds that the program has to end by itself; then it is killed."""

_PATIENCE = 60.0
"""Seconds that the program may take to read or answer a message; beyond, another one takes its place."""


class Workers:
    """The program that they are forked from, started when the first one is needed. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._program: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._known: set[bytes] = set()

    def start(self, vocabulary: Vocabulary | None = None) -> None:
        """Starts the program, if it does not run, and has it learn a vocabulary, if it does not know it."""
        with self._lock:
            try:
                self._running(vocabulary)
            except OSError:  # somebody has ended the program
                self._end()
                self._running(vocabulary)

    def fork(self, vocabulary: Vocabulary | None) -> tuple[socket.socket, frozenset[bytes]]:
        """A new process: its socket, and the fingerprints of vocabularies that it knows, the given one among them.

        See ``constrain.server.worker``. Raises OSError.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                try:
                    known = self._fork(theirs, vocabulary)
                except OSError:  # somebody has ended the program
                    known = self._fork(theirs, vocabulary)
        except BaseException:
            ours.close()
            raise
        return ours, known

    def exit_code(self, process: int) -> int | None:
        """How a process has ended that has closed its socket, in the terms of ``os.waitstatus_to_exitcode``.

        ``None`` if that is not known, for instance because the program has ended as well.
        """
        with self._lock:
            if self._control is None:
                return None
            try:
                self._control.sendall(STATUS + NUMBER.pack(process))
                data = self._control.recv(NUMBER.size, socket.MSG_WAITALL)
            except OSError:
                data = b""
            if len(data) < NUMBER.size:
                self._end()
                return None
        (code,) = NUMBER.unpack(data)
        return None if code == UNKNOWN else int(code)

    def close(self) -> None:
        """Ends the program, and with it all processes."""
        with self._lock:
            self._end()

    def _fork(self, connection: socket.socket, vocabulary: Vocabulary | None) -> frozenset[bytes]:
        with self._lock:
            try:
                socket.send_fds(self._running(vocabulary), [FORK], [connection.fileno()])
            except OSError:
                self._end()
                raise
            return frozenset(self._known)

    def _running(self, vocabulary: Vocabulary | None) -> socket.socket:
        if self._control is None:
            self._control = self._begin()
        if vocabulary is not None and vocabulary.fingerprint not in self._known:
            message = pickle.dumps((vocabulary.fingerprint, _table(vocabulary)))
            self._control.sendall(LEARN + LENGTH.pack(len(message)) + message)
            self._known.add(vocabulary.fingerprint)
        return self._control

    def _begin(self) -> socket.socket:
        """Starts the program; the socket to control it by. Raises OSError."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                text = _PROGRAM.format(path=sys.path, descriptor=theirs.fileno())
                command = [sys.executable, "-c", text]
                self._program = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])  # noqa: S603
            ours.settimeout(_PATIENCE)
            ours.sendall(core.seed())
        except BaseException:
            ours.close()
            raise
        return ours

    def _end(self) -> None:
        if self._control is None:
            return
        self._control.close()
        self._control = None
        self._known.clear()
        assert self._program is not None
        try:
            self._program.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._program.kill()
            self._program.wait()


@cache
def workers() -> Workers:
    """Those of this process."""
    made = Workers()
    atexit.register(made.close)
    return made


def _table(vocabulary: Vocabulary) -> TokenTable:
    texts = [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]
    names = {token: name for name, token in vocabulary.special_tokens.items()}
    return TokenTable(texts, frozenset(vocabulary.special), vocabulary.eos, names)
