"""The program in which requests are read and compiled: it forks a process for each, which knows what it knows.

    server --control--> this program --fork--> a process for one request
       ^                                                |
       +--------------------- socket -------------------+

Nothing of a request stays in here. What a process may take is limited by the system, which ends it without asking; so
nothing that it does, in Python or below, can be without end.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrain import core
from constrain._errors import ConstrainError
from constrain._job import Language
from constrain.chat.openai import tool_from_json
from constrain.regex.source import Regex
from constrain.server.errors import ApiError
from constrain.server.reading import on_place
from constrain.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from constrain.server.reading import Place
    from constrain.vocabulary import TokenTable

LENGTH = struct.Struct("!Q")
"""In front of each message, which is pickled."""

FORK = b"f"
LEARN = b"l"
STATUS = b"s"
"""What the server asks for: a process for the socket that comes with it; a vocabulary to be known from now on; how a
process has ended, whose id follows (``NUMBER``), as ``os.waitstatus_to_exitcode`` has it."""

NUMBER = struct.Struct("!i")

OUT_OF_MEMORY = 3
"""Exit code of a process that could not even say that it took too much memory."""

UNKNOWN = 255
"""In place of the exit code of a process that the program does not know."""

_REMEMBERED = 256
"""Processes whose exit codes are kept for the server to ask for; the others are forgotten, first ended first."""

SEED_BYTES = 16

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
    """What a call raised."""

    error: Exception


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A call took more memory than it may."""


_vocabularies: dict[bytes, Vocabulary] = {}


def vocabulary_of(fingerprint: bytes) -> Vocabulary:
    """A vocabulary that was learned."""
    return _vocabularies[fingerprint]


def main(control: socket.socket) -> None:
    """Forks processes until the server is gone."""
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group, they are meant for the server
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICE)
    children: set[int] = set()
    ended: dict[int, int] = {}
    with control:
        core.offer_seed(_exactly(control, SEED_BYTES))
        _warm_up()
        while True:
            kind, descriptors, _, _ = socket.recv_fds(control, 1, 1)
            _reap(children, ended)
            if kind == FORK:
                with suppress(OSError):  # The system has no process for it: the server finds its socket closed.
                    children.add(_fork(control, descriptors[0]))
                os.close(descriptors[0])
            elif kind == LEARN:
                fingerprint, table = pickle.loads(_message(control))  # noqa: S301 - from our own processes
                _learn(fingerprint, table)
            elif kind == STATUS:
                (child,) = NUMBER.unpack(_exactly(control, NUMBER.size))
                if child in children:
                    _note_end(child, children, ended, 0)  # it has closed its socket, and is about to end
                control.sendall(NUMBER.pack(ended.pop(child, UNKNOWN)))
            else:
                break
    _reap(children, ended)
    for child in children:  # also those that stand still
        os.kill(child, signal.SIGKILL)


def _fork(control: socket.socket, descriptor: int) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        control.close()
        with socket.socket(fileno=descriptor) as connection:
            _serve(connection.makefile("rb"), connection.makefile("wb"))
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(status)


def _reap(children: set[int], ended: dict[int, int]) -> None:
    """Takes out the processes that are gone. The system gives their ids to no other process before."""
    for child in list(children):
        _note_end(child, children, ended, os.WNOHANG)
    while len(ended) > _REMEMBERED:
        del ended[next(iter(ended))]


def _note_end(child: int, children: set[int], ended: dict[int, int], options: int) -> None:
    """Takes out a process, if it is gone, and notes its exit code. ``options``: of ``os.waitpid``."""
    pid, status = os.waitpid(child, options)
    if pid:
        children.discard(child)
        ended[child] = os.waitstatus_to_exitcode(status)


def _learn(fingerprint: bytes, table: TokenTable) -> None:
    vocabulary = _vocabularies[fingerprint] = Vocabulary(table)
    for schema in (_TYPICAL, Regex("[^a]*")):
        matcher = Language(schema).compile(vocabulary, cache=False).matcher(max_tokens=1000)
        matcher.shortest_completion()
    _settle()


def _warm_up() -> None:
    """Imports what requests will need, and no more than once."""
    parameters = {"type": "function", "name": "typical", "parameters": _TYPICAL}
    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: (WORD " "?)+\n%import common.WORD'}
    for document in (parameters, {"type": "custom", "name": "typical", "format": grammar}):
        tool_from_json(document)
    import constrain.chat.answer_grammar
    import constrain.json_schema.lint
    import constrain.json_schema.strict
    import constrain.server.chat_request
    import constrain.server.responses_request  # noqa: F401

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
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)  # SIGPROF ends a process that does not handle it
    most = _size() + limits.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    on_place(lambda place: _send(answers, At(place, time.process_time())))
    while (call := _receive(calls)) is not None:
        _send(answers, _outcome(*call))


def _outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Done | Failed | TooLarge:
    try:
        return Done(function(*args))
    except MemoryError:
        return TooLarge()
    except Exception as error:  # noqa: BLE001 - the server raises it again
        if not isinstance(error, ApiError | ConstrainError | RecursionError):
            traceback.print_exc()
        return Failed(error)


def _size() -> int:
    """Bytes of address space in use."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _send(stream: BinaryIO, value: object) -> None:
    data = pickle.dumps(value)
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
