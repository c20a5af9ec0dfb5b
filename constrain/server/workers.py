"""Processes beside the server, one for each request that has something to be read or compiled for the first time."""

from __future__ import annotations

import atexit
import contextlib
import pickle
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from constrain import core
from constrain.server.worker import FORK, LEARN, LENGTH
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


@dataclass(frozen=True, slots=True)
class Forked:
    """A new process.

    Attributes:
        calls: the socket for calls and their results.
        report: the socket on which the end of the process is reported. The process keeps its number until this is
            closed.
        known: the fingerprints of the vocabularies that it knows.
    """

    calls: socket.socket
    report: socket.socket
    known: frozenset[bytes]


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

    def fork(self, vocabulary: Vocabulary | None) -> Forked:
        """A new process, which knows a vocabulary. See ``constrain.server.worker``. Raises OSError."""
        calls, their_calls = socket.socketpair()
        report, their_report = socket.socketpair()
        with their_calls, their_report:
            theirs = [their_calls.fileno(), their_report.fileno()]
            try:
                known = self._fork(theirs, vocabulary)
            except OSError:  # somebody has ended the program
                known = self._fork(theirs, vocabulary)
        return Forked(calls, report, known)

    def close(self) -> None:
        """Ends the program, and with it all processes."""
        with self._lock:
            self._end()

    def _fork(self, sockets: list[int], vocabulary: Vocabulary | None) -> frozenset[bytes]:
        with self._lock:
            try:
                socket.send_fds(self._running(vocabulary), [FORK], sockets)
            except OSError:
                self._end()
                raise
            return frozenset(self._known)

    def _running(self, vocabulary: Vocabulary | None) -> socket.socket:
        if self._control is None:
            self._control, theirs = socket.socketpair()
            with theirs:
                text = _PROGRAM.format(path=sys.path, descriptor=theirs.fileno())
                command = [sys.executable, "-c", text]
                self._program = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])  # noqa: S603
            self._control.sendall(core.seed())
        if vocabulary is not None and vocabulary.fingerprint not in self._known:
            message = pickle.dumps((vocabulary.fingerprint, _table(vocabulary)))
            self._control.sendall(LEARN + LENGTH.pack(len(message)) + message)
            self._known.add(vocabulary.fingerprint)
        return self._control

    def _end(self) -> None:
        if self._control is None:
            return
        self._control.close()
        self._control = None
        self._known.clear()
        assert self._program is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._program.wait(_END_SECONDS)


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
