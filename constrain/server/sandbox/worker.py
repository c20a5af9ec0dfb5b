"""The program in which requests are read and compiled: it forks a process for each, which knows what it knows.

    server --control--> this program --fork--> a process for one request
       ^  ^                    |                        |
       |  +--- how it ended ---+                        |
       +------------ calls and their results -----------+

Nothing of a request stays in here. What a process may take is limited by the system. A process that has computed for
its time is ended by SIGPROF, one that asks for too much memory has a ``MemoryError``. Every other end of a process is a
mistake of the server's, and the server is told the signal.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrain.chat.tools.openai import tool_from_json
from constrain.engine import core
from constrain.errors import ConstrainError
from constrain.generation.job import Language
from constrain.regex.source import Regex
from constrain.server.http.errors import ApiError
from constrain.server.requests.places import on_place
from constrain.server.sandbox.children import Children
from constrain.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from constrain.server.requests.places import Place
    from constrain.vocabulary.table import TokenTable

LENGTH = struct.Struct("!Q")
"""In front of each message, which is pickled."""

FORK = b"f"
LEARN = b"l"
"""What the server asks for: a process for the two sockets that come with it, one for calls and one for the report of
its end; a vocabulary to be known from now on."""

OUT_OF_MEMORY = 77
"""Exit status of a process that had no memory left to say that it took too much."""

SEED_BYTES = 16

TIME_IS_UP = signal.SIGPROF
"""What a process is sent by its timer. It ends a process that does not handle it."""

NICE = 5
"""How far behind the server all of this is: answers that are being written come first."""

_TYPICAL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "pattern": "^[a-z]{2,5}$"},
        "b": {"type": "array", "items": {"anyOf": [{"type": "integer", "minimum": 3}, {"enum": ["x", "y"]}]}},
        "d": {"type": "string", "format": "date"},
        "c": {"type": ["number", "null"]},
    },
    "required": ["a", "b"],
}
"""What it uses is imported before any process is forked, and known to all of them."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the process for a request may take: seconds of computing, and bytes beside those that it begins with."""

    seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class At:
    """Where in the request a process is, after some seconds of computing."""

    place: Place
    seconds: float


@dataclass(frozen=True, slots=True)
class Done:
    """What a call returned."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """What a call raised. ``trace``: its traceback, where the error is a mistake of the server's."""

    error: Exception
    trace: str = ""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A call took more memory than it may, or than there was to receive it. The process takes no other one."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The process has ended before the call did.

    ``code``: its exit status, or minus the number of the signal that ended it; ``None`` if nobody can tell any more.
    """

    code: int | None

    @property
    def has_used_its_time(self) -> bool:
        """Whether it has computed for as long as it may."""
        return self.code == -TIME_IS_UP

    @property
    def has_used_its_memory(self) -> bool:
        """Whether it has taken so much memory that it could not even say so."""
        return self.code == OUT_OF_MEMORY

    def __str__(self) -> str:
        if self.code is None:
            return "for a reason that is not known, since the program that it was forked from has ended, too"
        if self.code >= 0:
            return f"with exit status {self.code}"
        with suppress(ValueError):
            return f"by {signal.Signals(-self.code).name}"
        return f"by signal {-self.code}"


_TOO_LARGE = pickle.dumps(TooLarge())
"""Made beforehand: there may be no memory to make it in."""

_vocabularies: dict[bytes, Vocabulary] = {}


def vocabulary_of(fingerprint: bytes) -> Vocabulary:
    """A vocabulary that was learned."""
    return _vocabularies[fingerprint]


def main(control: socket.socket, modules: Sequence[str]) -> None:
    """Forks processes until the server is gone. ``modules``: what they need beside what is imported here."""
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group, they are meant for the server
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICE)
    children = Children()
    with control:
        core.offer_seed(_exactly(control, SEED_BYTES))
        _warm_up(modules)
        while True:
            children.wait_for(control)
            kind, descriptors, _, _ = socket.recv_fds(control, 1, 2)
            if kind == FORK:
                _fork(control, children, *descriptors)
            elif kind == LEARN:
                fingerprint, table = pickle.loads(_message(control))  # noqa: S301 - from our own processes
                _learn(fingerprint, table)
            else:
                break
    children.kill()


def _fork(control: socket.socket, children: Children, calls: int, reports: int) -> None:
    """Forks a process for two sockets. Where the system has none to give, the session finds both of them closed."""
    connection, report = socket.socket(fileno=calls), socket.socket(fileno=reports)
    with connection:
        try:
            child = os.fork()
        except OSError:
            traceback.print_exc()
            report.close()
            return
        if child:
            children.add(child, report)
            return
        status = 1
        try:
            for each in (control, report):
                each.close()
            children.forget()
            _serve(connection.makefile("rb"), connection.makefile("wb"))
            status = 0
        except MemoryError:
            status = OUT_OF_MEMORY
        except BaseException:  # noqa: BLE001 - nothing of the program that was forked may go on here
            traceback.print_exc()
        finally:
            os._exit(status)


def _learn(fingerprint: bytes, table: TokenTable) -> None:
    vocabulary = _vocabularies[fingerprint] = Vocabulary(table)
    for schema in (_TYPICAL, Regex("[^a]*")):
        matcher = Language(schema).compile(vocabulary, cache=False).matcher(max_tokens=1000)
        matcher.shortest_completion()
    _settle()


def _warm_up(modules: Sequence[str]) -> None:
    """Imports what requests will need, and no more than once."""
    parameters = {"type": "function", "name": "typical", "parameters": _TYPICAL}
    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: (WORD " "?)+\n%import common.WORD'}
    for document in (parameters, {"type": "custom", "name": "typical", "format": grammar}):
        tool_from_json(document)
    import constrain.chat.answers.grammar
    import constrain.json_schema.lint.linter
    import constrain.json_schema.strict.subset  # noqa: F401

    for module in modules:
        import_module(module)
    _settle()


def _settle() -> None:
    """What is there now is shared with the forked processes: looking it over would copy it."""
    gc.collect()
    gc.freeze()


def _serve(calls: BinaryIO, answers: BinaryIO) -> None:
    """Does what is asked for, call by call, until the server closes the socket."""
    _send(answers, os.getpid())
    limits = _receive(calls)
    if limits is None:
        return
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)  # sends TIME_IS_UP
    most = _size() + limits.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    on_place(lambda place: _send(answers, At(place, time.process_time())))
    while True:
        try:
            call = _receive(calls)
        except MemoryError:  # of the call there may be more to read, so that no other one can follow
            _send_data(answers, _TOO_LARGE)
            return
        if call is None:
            return
        _send_data(answers, _outcome(*call))


def _outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    """What became of a call, pickled."""
    try:
        return pickle.dumps(Done(function(*args)))
    except MemoryError:
        return _TOO_LARGE
    except Exception as error:  # noqa: BLE001 - the server raises it again
        is_expected = isinstance(error, ApiError | ConstrainError | RecursionError)
        return pickle.dumps(Failed(error, "" if is_expected else traceback.format_exc()))


def _size() -> int:
    """Bytes of address space in use."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _send(stream: BinaryIO, value: object) -> None:
    _send_data(stream, pickle.dumps(value))


def _send_data(stream: BinaryIO, data: bytes) -> None:
    with suppress(BrokenPipeError):  # nobody waits for it any more
        stream.write(LENGTH.pack(len(data)) + data)
        stream.flush()


def _receive(stream: BinaryIO) -> Any:
    """The next message, None at the end."""
    head = stream.read(LENGTH.size)
    return pickle.loads(stream.read(LENGTH.unpack(head)[0])) if len(head) == LENGTH.size else None  # noqa: S301 - from our own processes


def _message(control: socket.socket) -> bytes:
    return _exactly(control, LENGTH.unpack(_exactly(control, LENGTH.size))[0])


def _exactly(control: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = control.recv(size - len(data))
        if not piece:
            sys.exit()
        data += piece
    return bytes(data)
