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
from typing import TYPE_CHECKING, ClassVar

from constrain.engine import core
from constrain.server.sandbox.worker import FORK, LEARN, LENGTH
from constrain.vocabulary.table import TokenTable

if TYPE_CHECKING:
    from constrain.vocabulary.vocabulary import Vocabulary

_PROGRAM = """
import socket, sys
sys.path[:] = {path!r}
from constrain.server.sandbox.worker import main
main(socket.socket(fileno={descriptor}), {modules!r})
"""

_END_SECONDS = 5.0
"""Seconds that the program has to end by itself; then it is killed."""

PATIENCE = 60.0
"""Seconds that the program may take to read a message, or to fork; then another one takes its place."""


@dataclass(frozen=True, slots=True)
class Forked:
    """A new process.

    Attributes:
        calls: the socket for calls and their results.
        report: the socket on which the end of the process is reported. The process keeps its number until this is
            closed.
        known: the fingerprints of the vocabularies that it knows.
        program: what it is forked from.
    """

    calls: socket.socket
    report: socket.socket
    known: frozenset[bytes]
    program: subprocess.Popen[bytes]


class Workers:
    """The program that they are forked from, started when the first one is needed. Safe to use from any thread.

    ``modules``: names of what the program imports beside its own, so that all processes have it from the beginning.
    """

    modules: ClassVar[tuple[str, ...]] = ()

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
        """A new process, which knows a vocabulary. See ``constrain.server.sandbox.worker``. Raises OSError."""
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as all_theirs:
            calls, their_calls = _pair(ours, all_theirs)
            report, their_report = _pair(ours, all_theirs)
            theirs = [their_calls.fileno(), their_report.fileno()]
            try:
                known, program = self._fork(theirs, vocabulary)
            except OSError:  # somebody has ended the program, or it stands still
                known, program = self._fork(theirs, vocabulary)
            ours.pop_all()
        return Forked(calls, report, known, program)

    def close(self) -> None:
        """Ends the program, and with it all processes."""
        with self._lock:
            self._end()

    def _fork(
        self, sockets: list[int], vocabulary: Vocabulary | None
    ) -> tuple[frozenset[bytes], subprocess.Popen[bytes]]:
        with self._lock:
            try:
                socket.send_fds(self._running(vocabulary), [FORK], sockets)
            except OSError:
                self._end()
                raise
            assert self._program is not None
            return frozenset(self._known), self._program

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
                text = _PROGRAM.format(path=sys.path, descriptor=theirs.fileno(), modules=self.modules)
                command = [sys.executable, "-c", text]
                self._program = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])  # noqa: S603
            ours.settimeout(PATIENCE)
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


def _pair(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[socket.socket, socket.socket]:
    """Two sockets that are connected, each closed with what it belongs to."""
    mine, other = socket.socketpair()
    return ours.enter_context(mine), theirs.enter_context(other)


def _table(vocabulary: Vocabulary) -> TokenTable:
    texts = [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]
    names = {token: name for name, token in vocabulary.special_tokens.items()}
    return TokenTable(texts, frozenset(vocabulary.special), vocabulary.eos, names)
