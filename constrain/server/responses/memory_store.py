"""Responses that are kept in the memory of one server, until it stops; and the store of a configured place."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.server.config import IN_MEMORY, KEEP_NONE
from constrain.server.http.errors import ApiError
from constrain.server.responses.store import MAX_AGE, ResponseStore, require_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.server.responses.request import StoredResponse

MAX_RESPONSES = 1000
"""Responses that are kept in memory: 1000; beyond it, the oldest are dropped."""

MAX_BYTES = 256 << 20
"""Bytes, as JSON, that responses in memory may take together: 256 MiB; beyond it, the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class _Entry:
    stored: StoredResponse
    owner: str
    expires: float
    size: int


class MemoryStore(ResponseStore):
    """Keeps responses in memory."""

    def __init__(
        self,
        *,
        max_responses: int = MAX_RESPONSES,
        max_bytes: int = MAX_BYTES,
        max_age: float = MAX_AGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def try_write(self, owner: str, stored: StoredResponse) -> None:  # noqa: ARG002 - see ResponseStore
        """Raises ``ApiError`` for a response that is too large; the oldest ones make room for any other."""
        require_size(stored, self._max_bytes)

    def write(self, owner: str, stored: StoredResponse) -> None:
        """Keeps a response."""
        size = stored.whole_size
        with self._lock:
            if stored.response["id"] in self._entries:
                self._drop(stored.response["id"])
            self._entries[stored.response["id"]] = _Entry(stored, owner, self._clock() + self._max_age, size)
            self._size += size
            self._shrink()

    def read(self, owner: str, response_id: str) -> StoredResponse | None:
        """Returns a response."""
        with self._lock:
            self._shrink()
            entry = self._entries.get(response_id)
        return entry.stored if entry is not None and entry.owner == owner else None

    def remove(self, owner: str, response_id: str) -> None:
        """Removes a response."""
        with self._lock:
            entry = self._entries.get(response_id)
            if entry is not None and entry.owner == owner:
                self._drop(response_id)

    def close(self) -> None:
        """Forgets all responses."""
        with self._lock:
            self._entries.clear()
            self._size = 0

    def _shrink(self) -> None:
        now = self._clock()
        while self._entries:
            oldest = next(iter(self._entries))
            is_full = len(self._entries) > self._max_responses or self._size > self._max_bytes
            if not is_full and self._entries[oldest].expires > now:
                return
            self._drop(oldest)

    def _drop(self, response_id: str) -> None:
        self._size -= self._entries.pop(response_id).size


class NoStore(MemoryStore):
    """Keeps nothing, as ``read_request`` sees to, and says so to those who ask for a response."""

    keeps = False

    def read(self, owner: str, response_id: str) -> StoredResponse | None:  # noqa: ARG002 - see ResponseStore
        """Raises ``ApiError``."""
        raise ApiError(
            "This server keeps no responses, so none can be read or continued. Send the whole conversation in 'input', "
            "or start the server with a 'response_store'.",
            code="responses_not_kept",
        )


def open_store(place: str) -> ResponseStore:
    """Returns the store of responses.

    ``place``: see ``Settings.response_store``.

    Raises ``ValueError`` if it is neither ``"memory"``, ``"none"`` nor the address of a database.
    """
    if place == IN_MEMORY:
        return MemoryStore()
    if place == KEEP_NONE:
        return NoStore()
    try:
        from constrain.server.responses.sql_store import SqlStore
    except ModuleNotFoundError as error:
        raise ValueError(
            f"response_store is neither {IN_MEMORY!r} nor {KEEP_NONE!r}; a database needs {error.name}: "
            "pip install 'constrain-llm[sql]'"
        ) from error
    return SqlStore(place)
