"""The program that forks processes for requests, seen from the server."""

from __future__ import annotations

import atexit
import pickle
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from constrain import kernel
from constrain.remembering import MANY
from constrain.server.sandbox.children import LENGTH
from constrain.server.sandbox.worker import FORK, KEEP, LEARN, LEARN_TOOLS
from constrain.system import send_socket, start_program
from constrain.vocabulary.table import TokenTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.chat.tools.compiled import ToolArguments
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
"""Seconds that the program may take to read a message or to fork: 60; then another one replaces it."""


_TAUGHT_AT_ONCE = 16
"""Tools that the program learns at once: 16, some 10 milliseconds, during which it forks no process."""

_TEACHING_PAUSE = 0.01
"""Seconds between two such pieces, in which the program carries out other orders."""


class Forked(NamedTuple):
    """A new process.

    Attributes:
        connection: connection for calls and their results.
        known: fingerprints of the vocabularies that it knows.
        program: program that it was forked from.
    """

    connection: socket.socket
    known: frozenset[bytes]
    program: subprocess.Popen[bytes]


class Workers:
    """The forking program, started when it is first needed. Any thread may use it.

    ``modules``: modules that the program imports in addition to its own, so that all processes have them.
    """

    modules: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._program: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._known: set[bytes] = set()
        self._kept: list[object] = []
        self._taught: set[int] = set()  # hashes of the arguments of tools

    def start(self, vocabulary: Vocabulary | None = None) -> None:
        """Starts the program unless it runs, and makes it learn a vocabulary unless it knows it. Raises OSError."""
        self._do(lambda _: None, vocabulary)

    def fork(self, vocabulary: Vocabulary | None) -> Forked:
        """Forks a process that knows a vocabulary: see ``constrain.server.sandbox.worker``. Raises OSError."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                known, program = self._do(lambda control: send_socket(control, FORK, theirs), vocabulary)
        except BaseException:
            ours.close()
            raise
        return Forked(ours, known, program)

    def keep(self, objects: Sequence[object]) -> None:
        """Makes the program, and later ones, keep objects, such as columns of tables, which their processes find."""
        with self._lock:
            self._kept += objects
            if self._control is not None:
                with suppress(OSError):  # the next order starts a new program
                    self._control.sendall(_order_to_keep(objects))

    def teach(self, tools: Sequence[ToolArguments]) -> None:
        """Makes the program, if it runs, learn the arguments of tools that it does not know: in pieces, with pauses."""
        if len(self._taught) > MANY:  # the program has forgotten the first of them
            self._taught.clear()
        new = [tool for tool in dict.fromkeys(tools) if hash(tool) not in self._taught]
        for begin in range(0, len(new), _TAUGHT_AT_ONCE):
            piece = new[begin : begin + _TAUGHT_AT_ONCE]
            message = pickle.dumps(piece)
            with self._lock, suppress(OSError):  # the next order starts a new program
                if self._control is None:
                    return
                self._control.sendall(LEARN_TOOLS + LENGTH.pack(len(message)) + message)
                self._taught.update(map(hash, piece))
            time.sleep(_TEACHING_PAUSE)

    def close(self) -> None:
        """Ends the program and all its processes."""
        with self._lock:
            self._end()

    def _do(
        self, order: Callable[[socket.socket], None], vocabulary: Vocabulary | None
    ) -> tuple[frozenset[bytes], subprocess.Popen[bytes]]:
        """Gives an order to the program; to a new one if the program was ended or stopped from outside."""
        with self._lock:
            try:
                order(self._prepare(vocabulary))
            except OSError:
                self._end()
                order(self._prepare(vocabulary))
            assert self._program is not None
            return frozenset(self._known), self._program

    def _prepare(self, vocabulary: Vocabulary | None) -> socket.socket:
        if self._control is None:
            self._control = self._begin()
        if vocabulary is not None and vocabulary.fingerprint not in self._known:
            message = pickle.dumps((vocabulary.fingerprint, _table(vocabulary)))
            self._control.sendall(LEARN + LENGTH.pack(len(message)) + message)
            self._known.add(vocabulary.fingerprint)
        return self._control

    def _begin(self) -> socket.socket:
        """Starts the program; returns the socket that controls it. Raises OSError."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                text = _PROGRAM.format(path=sys.path, descriptor=theirs.fileno(), modules=self.modules)
                self._program = start_program([sys.executable, "-c", text], theirs)
            ours.settimeout(PATIENCE)
            ours.sendall(kernel.seed())
            if self._kept:
                ours.sendall(_order_to_keep(self._kept))
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
        self._taught.clear()
        assert self._program is not None
        try:
            self._program.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._program.kill()
            self._program.wait()


@cache
def workers() -> Workers:
    """Returns the forking program of this process."""
    made = Workers()
    atexit.register(made.close)
    return made


def _order_to_keep(objects: Sequence[object]) -> bytes:
    message = pickle.dumps(list(objects))
    return KEEP + LENGTH.pack(len(message)) + message


def _table(vocabulary: Vocabulary) -> TokenTable:
    texts = [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]
    return TokenTable(texts, frozenset(vocabulary.special), vocabulary.eos, vocabulary.names)
