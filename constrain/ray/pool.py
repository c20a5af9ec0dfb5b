"""A pool of actors that answers the tasks of ``constrain batch --ray``, as ``batch.answering`` does in one process."""

from __future__ import annotations

import importlib
import logging
import math
import os
import socket
import threading
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from typing import TYPE_CHECKING, Any

from constrain.batch.answering import READY, write_answers
from constrain.batch.lines import LineError
from constrain.errors import ConstrainError
from constrain.llama.model import Model
from constrain.ray.shipping import Shipped, receive, ship

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from typing_extensions import Self

    from constrain.batch.lines import Task
    from constrain.generation.completion import Completion
    from constrain.generation.options import Options
    from constrain.language.source import Source

_log = logging.getLogger("constrain.ray")

CONNECT_SECONDS = 10
"""Seconds to wait for the address of a cluster."""


class _Worker:
    """One actor, with a model of its own."""

    def __init__(
        self, model_options: Mapping[str, Any], schema: str | Source | None, options: Options, shipped: Shipped | None
    ) -> None:
        self._never: Future[None] = Future()
        self._error: Exception | None = None  # Ray would tell a text in its place
        try:
            self._model = Model(**model_options)
            receive(self._model, schema, options, shipped)
        except (ConstrainError, ValueError) as error:
            self._error = error

    def answer(self, task: Task) -> Completion | ConstrainError | LineError:
        """Returns the answer to a task, or the error in its place."""
        try:
            (found,) = write_answers(self._model, task, self._never)
        except (ConstrainError, LineError) as error:
            return error
        return found

    def begin(self) -> Exception | None:
        """Returns the error of the model or schema, if there is one, once both are loaded."""
        return self._error


def _require_reachable(address: str) -> None:
    """Raises ``ConnectionError`` if nothing listens at an address; Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():
        return  # auto, or a name that Ray knows
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise ConnectionError(f"no Ray cluster listens at {address}: {error}") from error


class Pool:
    """Actors on a Ray cluster. Threads call ``answer``; a task whose actor dies is answered by its successor.

    Args:
        address: address of a cluster; ``"local"`` starts one on this machine, ``"auto"`` finds the running one.
        actors: number of actors.
        cpus: CPUs of an actor, and threads of its model.
        model_options: arguments of ``Model``.
        schema: schema of most tasks, compiled once.
        options: options of most tasks.

    Raises the errors of ``Model`` and of the schema, and ``ConnectionError`` if there is no cluster at the address.
    """

    def __init__(
        self,
        address: str,
        actors: int,
        cpus: float,
        model_options: Mapping[str, Any],
        schema: str | Source | None,
        options: Options,
    ) -> None:
        ray: Any = importlib.import_module("ray")
        self._ray = ray
        needed = actors * cpus
        if address == "local":
            own_cpus = max(os.cpu_count() or 1, math.ceil(needed))
            ray.init(address, num_cpus=own_cpus, include_dashboard=False, log_to_driver=False)
        else:
            _require_reachable(address)
            ray.init(address, log_to_driver=False)
        if needed > (found := ray.cluster_resources().get("CPU", 0)):
            _log.warning("%s actors take %s CPUs, and the cluster has %s; some wait for a node", actors, needed, found)
        threads = model_options["parallel"] + READY
        made: Any = ray.remote(_Worker).options(
            num_cpus=cpus, max_restarts=-1, max_task_retries=-1, max_concurrency=threads
        )
        try:
            self._shipped = ship(model_options["model"], schema, options)  # kept for actors that begin again
        except Exception:
            ray.shutdown()
            raise
        given = {"n_threads": max(1, int(cpus)), **model_options}
        self._waiting = {made.remote(given, schema, options, self._shipped): 0 for _ in range(actors)}
        self._lock = threading.Lock()
        self.threads = actors * threads
        errors: list[Exception | None] = ray.get([actor.begin.remote() for actor in self._waiting])
        for error in errors:
            if error is not None:
                self.close()
                raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the actors."""
        for actor in self._waiting:
            self._ray.kill(actor)
        self._ray.shutdown()

    def answer(self, task: Task, stop: Future[None]) -> Completion:
        """Returns the answer to a task. Raises its errors, and ``CancelledError`` once ``stop`` is done."""
        with self._lock:
            actor = min(self._waiting, key=lambda each: self._waiting[each])
            self._waiting[actor] += 1
        try:
            found: Future[Any] = actor.answer.remote(task).future()
            wait((found, stop), return_when=FIRST_COMPLETED)
            if not found.done():
                raise CancelledError
            result = found.result()
        finally:
            with self._lock:
                self._waiting[actor] -= 1
        if isinstance(result, Exception):
            raise result
        completion: Completion = result
        return completion
