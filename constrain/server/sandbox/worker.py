"""The program that forks a process for each request, which reads and compiles it within limits of seconds and memory.

    server --control--> this program --fork--> process of one request
       ^                       |                        |
       +------ how it ended ---+                        |
       +------------ calls and their results -----------+

A forked process inherits the vocabularies and the grammars of tools that this program has learned. Nothing else of a
request stays in this program.
The system limits every process: SIGPROF ends a process that has used its CPU time, and one that asks for too much
memory ends by a ``MemoryError``. Any other end of a process is a fault of the server, which is told the signal. A
process whose session closes the connection is killed.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from constrain import kernel
from constrain.chat.tools.compiled import compile_arguments
from constrain.chat.tools.openai import tool_from_json
from constrain.errors import ConstrainError
from constrain.fields.values import FieldError
from constrain.generation.plan import Language
from constrain.inspection.check import readable_tokens
from constrain.regex.source import Regex
from constrain.server.http.errors import ApiError
from constrain.server.requests.places import on_place
from constrain.server.sandbox.children import LENGTH, Children
from constrain.system import TIME_IS_UP, fork, limit_cpu_seconds, limit_memory, lower_priority, receive_socket
from constrain.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from constrain.chat.tools.compiled import ToolArguments
    from constrain.server.requests.places import Place
    from constrain.vocabulary.table import TokenTable

FORK = b"f"
LEARN = b"l"
LEARN_TOOLS = b"t"
KEEP = b"k"
"""Orders of the server. FORK: fork a process for the attached connection. LEARN: learn a vocabulary, for all later
processes. LEARN_TOOLS: compile the arguments of tools for them, which a process has compiled before in few steps. KEEP:
keep objects that they find by themselves, such as columns of tables.
"""

READY = "ready"
"""First message of a process."""

OUT_OF_MEMORY = 77
"""Exit status of a process that took too much memory."""

SEED_BYTES = 16

NICE = 5
"""Priority below the server's (``nice``): answers that are being written come first."""

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
"""A typical schema. Compiling it before the first fork imports the modules that all processes need."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the process of a request: CPU seconds, and bytes in addition to those at its start."""

    seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class At:
    """A message from the process that reads or compiles a request.

    ``place``: the part that it works on now, such as ``tools[0]``. ``seconds``: its CPU seconds so far.
    """

    place: Place
    seconds: float


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a call."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """The exception of a call. ``trace``: its traceback, if the exception is a fault of the server."""

    error: Exception
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """An end of the process before the end of the call.

    ``code``: exit status, or minus the number of the signal that ended it; ``None`` if it is unknown.
    """

    code: int | None

    @property
    def has_used_its_time(self) -> bool:
        """Whether the process has used all its CPU time."""
        return self.code == -TIME_IS_UP

    @property
    def has_used_its_memory(self) -> bool:
        """Whether the process took more memory than it may."""
        return self.code == OUT_OF_MEMORY

    def __str__(self) -> str:
        if self.code is None:
            return "for a reason that is not known, since the program that it was forked from has ended, too"
        if self.code >= 0:
            return f"with exit status {self.code}"
        with suppress(ValueError):
            return f"by {signal.Signals(-self.code).name}"
        return f"by signal {-self.code}"


_vocabularies: dict[bytes, Vocabulary] = {}
_kept: list[object] = []


def vocabulary_of(fingerprint: bytes) -> Vocabulary:
    """Returns a learned vocabulary."""
    return _vocabularies[fingerprint]


def main(control: socket.socket, modules: Sequence[str]) -> None:
    """Forks processes until the server is gone. ``modules``: modules to import in addition to this module's own."""
    for number in (signal.SIGINT, signal.SIGTERM):  # signals to the whole process group are meant for the server
        signal.signal(number, signal.SIG_IGN)
    children = Children(lower_priority(NICE))
    with control:
        kernel.offer_seed(_exactly(control, SEED_BYTES))
        _warm_up(modules)
        while True:
            children.wait_for(control)
            kind, descriptor = receive_socket(control)
            if kind == FORK:
                _fork(control, children, socket.socket(fileno=descriptor))
            elif kind == LEARN:
                fingerprint, table = pickle.loads(_message(control))  # noqa: S301 - from our own processes
                _learn(fingerprint, table)
            elif kind == LEARN_TOOLS:
                _learn_tools(pickle.loads(_message(control)))  # noqa: S301 - from our own processes
            elif kind == KEEP:
                _kept.append(pickle.loads(_message(control)))  # noqa: S301 - from our own processes
                _settle()
            else:
                break
    children.kill()


def _fork(control: socket.socket, children: Children, connection: socket.socket) -> None:
    """Forks a process for a connection. If the system cannot fork, closes it, which tells the session."""
    try:
        child = fork()
    except OSError:
        traceback.print_exc()
        connection.close()
        return
    if child:
        children.add(child, connection)
        return
    status = 1
    try:
        control.close()
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
    readable_tokens(vocabulary)
    _settle()


def _learn_tools(tools: Sequence[ToolArguments]) -> None:
    for tool in tools:
        with suppress(ConstrainError):
            _ = compile_arguments(tool).grammar
    _settle()


def _warm_up(modules: Sequence[str]) -> None:
    """Imports the modules that requests will need, once for all processes."""
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
    """Excludes existing objects from garbage collection, which would copy memory shared with forked processes."""
    gc.collect()
    gc.freeze()


def _serve(calls: BinaryIO, answers: BinaryIO) -> None:
    """Answers call after call, until the server closes the socket."""
    _send(answers, READY)
    limits = _receive(calls)
    if limits is None:
        return
    limit_cpu_seconds(limits.seconds)
    limit_memory(limits.memory_bytes)
    on_place(lambda place: _send(answers, At(place, time.process_time())))
    while (call := _receive(calls)) is not None:
        _send(answers, _outcome(*call))


def _outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Done | Failed:
    """Returns the outcome of a call, unless there is no memory for it: then the process ends."""
    try:
        return Done(function(*args))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the server raises it again
        is_expected = isinstance(error, ApiError | ConstrainError | FieldError | RecursionError)
        return Failed(error, "" if is_expected else traceback.format_exc())


def _send(stream: BinaryIO, value: object) -> None:
    data = pickle.dumps(value)
    with suppress(BrokenPipeError):  # the session is gone
        stream.write(LENGTH.pack(len(data)) + data)
        stream.flush()


def _receive(stream: BinaryIO) -> Any:
    """Returns the next message; None at the end."""
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
