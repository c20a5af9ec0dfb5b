"""A pool of actors that answers the tasks of ``constrain batch --ray``, as ``batch.answering`` does in one process."""

from __future__ import annotations

import importlib
import logging
import math
import os
import socket
import time
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from typing import TYPE_CHECKING, Any

from constrain.batch.answering import READY, write_answers
from constrain.batch.lines import LineError
from constrain.errors import ConstrainError, ModelError
from constrain.llama.model import Model
from constrain.ray.seats import Seats
from constrain.ray.shipping import Shipped, receive, ship

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from constrain.batch.lines import Task
    from constrain.generation.completion import Completion
    from constrain.generation.options import Options
    from constrain.language.source import Source

_log = logging.getLogger("constrain.ray")

CONNECT_SECONDS = 10
"""Seconds to wait for the address of a cluster."""

ATTEMPTS = 3
"""Actors that are asked for one answer: 3; then its line fails. The last one answers no other line meanwhile, so that a
line that ends its process fails alone."""

START_SECONDS = 60
"""Seconds after which the log names the actors that have not begun."""

_LONGEST_REASON = 300
"""Characters of an error of Ray that the log has."""


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
    """Actors on a Ray cluster. Threads call ``answer``; a task whose actor is lost is answered by another one.

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
            num_cpus=cpus, max_restarts=-1, max_task_retries=0, max_concurrency=threads
        )
        try:
            self._shipped = ship(model_options["model"], schema, options)  # kept for actors that begin again
        except Exception:
            ray.shutdown()
            raise
        given = {"n_threads": max(1, int(cpus)), **model_options}
        self._actors = [made.remote(given, schema, options, self._shipped) for _ in range(actors)]
        self._seats = Seats(self._actors, self._recall, _tell_waiting)
        self._is_closed = False
        self.threads = actors * threads
        try:
            self._await_start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the actors."""
        self._is_closed = True
        for actor in self._actors:
            self._ray.kill(actor)
        self._ray.shutdown()

    def answer(self, task: Task, stop: Future[None]) -> Completion:
        """Returns the answer to a task. Raises its errors, and ``CancelledError`` once ``stop`` is done."""
        for attempt in range(1, ATTEMPTS + 1):
            alone = attempt == ATTEMPTS
            seat = self._seats.take(stop, alone=alone)
            lost = False
            try:
                return self._ask(seat.actor, task, stop)
            except _lost_errors() as error:
                lost = True
                _log.warning("line %s: its actor was lost (%s of %s): %s", task.line, attempt, ATTEMPTS, _short(error))
            finally:
                self._seats.give_back(seat, alone=alone, lost=lost)
        raise ModelError(
            f"{ATTEMPTS} processes that wrote this answer were lost, the last one while it had no other line; the line "
            "may crash them, or need more memory than they have"
        )

    @staticmethod
    def _ask(actor: Any, task: Task, stop: Future[None]) -> Completion:
        found: Future[Any] = actor.answer.remote(task).future()
        wait((found, stop), return_when=FIRST_COMPLETED)
        if not found.done():
            raise CancelledError
        result = found.result()
        if isinstance(result, Exception):
            raise result
        completion: Completion = result
        return completion

    def _await_start(self) -> None:
        """Waits until all actors have begun. Raises the error of the model or the schema, if there is one."""
        waiting = {_begin(actor): number for number, actor in enumerate(self._actors, 1)}
        begun = time.monotonic()
        while waiting:
            done, _ = self._ray.wait([*waiting], num_returns=len(waiting), timeout=START_SECONDS)
            for each in done:
                del waiting[each]
                error: Exception | None = self._ray.get(each)
                if error is not None:
                    raise error
            if waiting:
                named = ", ".join(map(str, waiting.values()))
                seconds = time.monotonic() - begun
                _log.warning("actors %s of %s have not begun after %.0f s", named, len(self._actors), seconds)

    def _recall(self, actor: Any, returned: Callable[[bool], None]) -> None:
        """Calls a function once the successor of a lost actor has begun, with whether it can answer."""

        def tell(found: Future[Any]) -> None:
            try:
                error = found.result()
            except BaseException as raised:  # noqa: BLE001 - nobody would see it here
                error = raised
            if error is not None and not self._is_closed:
                _log.error("an actor cannot begin again: %s", _short(error))
            returned(error is None)

        _begin(actor).future().add_done_callback(tell)


def _begin(actor: Any) -> Any:
    """Asks for the error of an actor; the answer waits until the actor, or its successor, has begun."""
    return actor.begin.options(max_task_retries=-1).remote()


def _tell_waiting(seconds: float) -> None:
    _log.warning(
        "a line has waited for %.0f s for an actor; all of them were lost or are answering lines alone", seconds
    )


def _lost_errors() -> tuple[type[Exception], ...]:
    """Returns the errors of Ray for an actor, its process or its node that is gone, perhaps with an answer."""
    found = importlib.import_module("ray.exceptions")
    names = ("RayActorError", "WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ObjectLostError")
    return tuple(getattr(found, name) for name in names)


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:_LONGEST_REASON]
