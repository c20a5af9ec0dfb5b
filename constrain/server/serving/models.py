"""The models of a server by name: listing, loading and unloading.

    not loaded --lease--> loading --> loaded, in use <--lease / end of all leases--> idle
         ^                                                                            |
         +------------- least recently used first, to make room ----------------------+

A model is loaded for the first request that asks for it, by a thread of its own. If memory is limited, idle models are
unloaded to make room; models in use never are.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import time
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrain.fields.values import missing
from constrain.generation.options import ChatOptions
from constrain.server.http.account import current
from constrain.server.http.errors import SERVER_ERROR, ApiError, unavailable
from constrain.server.requests.body import LATEST
from constrain.server.serving.waiting import any_done
from constrain.thread_pools import start_pool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path

    from constrain.llama.model import Model

_log = logging.getLogger("constrain.server")

MODELS = "/v1/models"
"""Path of the list of models, which two dialects have."""

_ANY = "*"
"""Character of a name that stands for any text."""

_LONGEST_NAME = 200
"""Characters of a name that may match a pattern."""

ROOM_PATIENCE = 30.0
"""Seconds that a request waits for models in use to make room, unless its own deadline comes first; then status 503."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The facts about a model before it is loaded.

    Attributes:
        names: names in requests; the first is its own. In the others, ``*`` stands for any text.
        created: seconds since 1970, from its file.
        parallel: answers that it writes at the same time.
        memory_bytes: bytes that it takes when loaded.
        load: function that loads it, in a thread of its own.
        defaults: options for fields that requests leave out.
        path: its file, the first one of a split model; ``None`` for a model without a file.
        chat_template: template that replaces the one in the file; ``None`` for the file's own.
    """

    names: tuple[str, ...]
    created: int
    parallel: int
    memory_bytes: int
    load: Callable[[], Model]
    defaults: ChatOptions = field(default_factory=ChatOptions)
    path: Path | None = None
    chat_template: str | None = None


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A loaded model, under its name for the request.

    ``defaults``: see ``ModelSource``; ``load_seconds``: seconds that the request waited until it was loaded.
    """

    name: str
    model: Model
    defaults: ChatOptions = field(default_factory=ChatOptions)
    load_seconds: float = 0.0


@dataclass(eq=False, slots=True)
class ModelState:
    """The state of a model.

    ``users``: leases, which requests have or await; ``used``: end of the last one; ``loading``: future, with None after
    a failure; ``leaves``: whether it is unloaded after the last lease.
    """

    source: ModelSource
    users: int = 0
    used: int = 0
    loading: Future[Model | None] | None = None
    leaves: bool = False

    @property
    def name(self) -> str:
        """Its own name."""
        return self.source.names[0]

    @property
    def model(self) -> Model | None:
        """The model, if it is loaded."""
        return self.loading.result() if self.loading is not None and self.loading.done() else None

    @property
    def is_loading(self) -> bool:
        """Whether it is being loaded."""
        return self.loading is not None and not self.loading.done()

    @property
    def is_there(self) -> bool:
        """Whether it is loaded or being loaded."""
        return self.is_loading or self.model is not None

    @property
    def has_failed(self) -> bool:
        """Whether the last attempt to load it failed."""
        return self.loading is not None and self.loading.done() and self.loading.result() is None

    @property
    def memory_bytes(self) -> int:
        """Bytes that it takes now, or will take once loaded."""
        return self.source.memory_bytes if self.is_there else 0


class Models:
    """The models of a server. Only the thread of the event loop may use it.

    Args:
        sources: models without common names.
        memory_limit: bytes that loaded models may take together; ``None`` for no limit. No single model needs more.
    """

    def __init__(self, sources: Sequence[ModelSource], memory_limit: int | None = None) -> None:
        self.memory_limit = memory_limit
        self._entries = [ModelState(source) for source in sources]
        names = [(name, entry) for entry in self._entries for name in entry.source.names]
        self._by_name = {name: entry for name, entry in names if _ANY not in name}
        self._patterns = [(_pattern(name), entry) for name, entry in names if _ANY in name]
        self._clock = itertools.count(1)
        self._thread = start_pool(1, "constrain-load")
        self._waiting: set[Future[None]] = set()

    def __iter__(self) -> Iterator[str]:
        """Yields all names, without patterns."""
        return iter(self._by_name)

    @property
    def parallel(self) -> int:
        """Number of answers that all models together write at the same time."""
        return sum(entry.source.parallel for entry in self._entries)

    def name_of(self, name: str) -> str | None:
        """Returns the served name that a request means, if there is one.

        Letter case and the tag ``latest`` make no difference, unless names of several models differ in nothing else.
        """
        for same in (name, name + LATEST, name.removesuffix(LATEST)):
            if same in self._by_name:
                return same
        alike = {entry.name: known for known, entry in self._by_name.items() if _fold(known) == _fold(name)}
        if alike:
            return next(iter(alike.values())) if len(alike) == 1 else None
        if len(name) > _LONGEST_NAME:
            return None
        return next((entry.name for pattern, entry in self._patterns if pattern.fullmatch(name)), None)

    def source(self, name: str) -> ModelSource:
        """Returns the facts about the model with a served name."""
        return self._by_name[name].source

    def states(self) -> Sequence[ModelState]:
        """Returns the states of all models."""
        return self._entries

    def loaded(self, name: str) -> Model | None:
        """Returns the model with a name, if it is loaded."""
        entry = self._by_name[name]
        return entry.model

    @contextlib.asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[ServedModel]:
        """Loads the model that a name means, and keeps it loaded inside the context.

        Waits for room in memory no longer than ``ROOM_PATIENCE``. Raises ``ApiError``.
        """
        name = require_name(self, name)
        current.get().model = name
        entry = self._by_name[name]
        entry.users += 1
        entry.leaves = False
        begun = time.monotonic()
        try:
            model = await self._ready(entry)
            yield ServedModel(name, model, entry.source.defaults, time.monotonic() - begun)
        finally:
            entry.users -= 1
            entry.used = next(self._clock)
            if not entry.users:
                self._leave(entry)
                self._wake()

    def load(self, name: str) -> None:
        """Loads a model now. Raises the errors of ``ModelSource.load``."""
        loaded: Future[Model | None] = Future()
        entry = self._by_name[name]
        loaded.set_result(entry.source.load())
        entry.loading = loaded

    def unload(self, name: str) -> None:
        """Frees the model that a name means, after its last use, until it is asked for again. Raises ``ApiError``."""
        entry = self._by_name[require_name(self, name)]
        entry.leaves = True
        self._leave(entry)

    def close(self) -> None:
        """Frees all models, after their last use."""
        for entry in self._entries:
            if entry.is_there:
                self._unload(entry)
        self._thread.shutdown()

    async def _ready(self, entry: ModelState) -> Model:
        until = time.monotonic() + ROOM_PATIENCE
        while not entry.is_there:
            if self._make_room(entry):
                entry.loading = self._thread.submit(_load, entry.source)
                entry.loading.add_done_callback(self._wake)
            elif not await self._change(until):
                raise unavailable(
                    f"The model '{entry.name}' is not loaded, and models in use leave it no room. Please "
                    "try again later."
                )
        loading = entry.loading
        assert loading is not None
        await any_done(loading)
        model = loading.result()
        if model is None:
            raise ApiError(
                f"The model '{entry.name}' cannot be loaded; the server's log says why.",
                status=500,
                kind=SERVER_ERROR,
                code="model_load_failed",
            )
        return model

    def _make_room(self, entry: ModelState) -> bool:
        """Unloads idle models, the least recently used first, to make room for one; none if they do not suffice."""
        if self.memory_limit is None:
            return True
        others = [other for other in self._entries if other is not entry]
        missing = entry.source.memory_bytes + sum(other.memory_bytes for other in others) - self.memory_limit
        leaving = []
        for other in sorted(others, key=lambda other: other.used):
            if missing > 0 and other.model is not None and not other.users:
                leaving.append(other)
                missing -= other.memory_bytes
        if missing > 0:
            return False
        for other in leaving:
            self._unload(other)
        return True

    def _leave(self, entry: ModelState) -> None:
        """Unloads a model that nobody uses and that is to leave."""
        if entry.leaves and not entry.users and entry.is_there:
            self._unload(entry)

    def _unload(self, entry: ModelState) -> None:
        """Frees a model; if it is being loaded, afterwards, since one thread does both."""
        loading, entry.loading = entry.loading, None
        assert loading is not None
        self._thread.submit(_close, entry.name, loading)

    async def _change(self, until: float) -> bool:
        """Waits until a model is loaded or idle; returns ``False`` if that takes too long."""
        changed: Future[None] = Future()
        self._waiting.add(changed)
        try:
            return await any_done(changed, until=until)
        finally:
            self._waiting.discard(changed)

    def _wake(self, _: Any = None) -> None:
        for waiting in list(self._waiting):
            with contextlib.suppress(InvalidStateError):  # another thread has set the result already
                waiting.set_result(None)


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, name.split(_ANY))), re.DOTALL | re.IGNORECASE)


def _load(source: ModelSource) -> Model | None:
    name, begun = source.names[0], time.monotonic()
    try:
        model = source.load()
    except Exception:  # noqa: BLE001 - those who wait are told by ``None``, and the log says why
        _log.exception("the model %s cannot be loaded", name, extra={"event": "model_load_failed", "model": name})
        return None
    seconds = round(time.monotonic() - begun, 3)
    facts = {"event": "model_loaded", "model": name, "seconds": seconds, "memory_bytes": source.memory_bytes}
    _log.info("loaded %s in %.1f s", name, seconds, extra=facts)
    return model


def _close(name: str, loading: Future[Model | None]) -> None:
    model = loading.result()
    if model is None:
        return
    try:
        model.close()
    except Exception:  # noqa: BLE001 - nobody waits for this
        _log.exception("the model %s could not be freed", name, extra={"event": "model_unload_failed", "model": name})
    else:
        _log.info("unloaded %s", name, extra={"event": "model_unloaded", "model": name})


def _fold(name: str) -> str:
    return name.casefold().removesuffix(LATEST)


def require_name(models: Models, name: str) -> str:
    """Returns the served name that a request means (see ``Models.name_of``). Raises ``ApiError``."""
    found = models.name_of(name)
    if found is None:
        there = ", ".join(f"'{known}'" for known in models)
        raise ApiError(
            f"The model '{name:.200}' does not exist. This server has {there}.",
            status=404,
            param="model",
            code="model_not_found",
        )
    return found


def find_model(models: Models, name: str) -> ModelSource:
    """Returns the facts about the model that a name means. Raises ``ApiError``."""
    return models.source(require_name(models, name))


def only_model(models: Models) -> str:
    """Returns the name of the only model, for requests that name none. Raises ``FieldError`` if there are several."""
    states = models.states()
    if len(states) > 1:
        raise missing("model")
    return states[0].name


def model_object(models: Models, name: str) -> dict[str, Any]:
    """Returns a model as a JSON object for OpenAI's clients, loaded or not. Raises ``ApiError``."""
    found = require_name(models, name)
    return {"id": found, "created": find_model(models, found).created, "object": "model", "owned_by": "constrain"}


def model_list(models: Models) -> dict[str, Any]:
    """Returns all models as a JSON list."""
    return {"object": "list", "data": [model_object(models, name) for name in models]}
