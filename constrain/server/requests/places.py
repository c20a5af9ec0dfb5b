"""Places in a request, each a part that is compiled: a process that reads one says where it is."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a request that is compiled: ``param`` and ``code`` of errors in it, and what messages call it."""

    param: str
    code: str
    name: str


_listener: ContextVar[Callable[[Place], None] | None] = ContextVar("_listener", default=None)


def on_place(listener: Callable[[Place], None]) -> None:
    """Has a function called with each place that is come to."""
    _listener.set(listener)


def come_to(place: Place) -> None:
    """Says that a place is looked at now, which may take long."""
    listener = _listener.get()
    if listener is not None:
        listener(place)
