"""The store of responses that a server is configured with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.server.config import IN_MEMORY, KEEP_NONE
from constrain.server.responses.memory_store import MemoryStore, NoStore

if TYPE_CHECKING:
    from constrain.server.responses.store import ResponseStore


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
