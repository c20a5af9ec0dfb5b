"""Places of a request, as errors name them: each reader is handed where it stands, and hands on where others stand.

A process that reads or compiles a request also tells the server at which place it is.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a request that is compiled: ``param`` and ``code`` of errors in it, and what messages call it."""

    param: str
    code: str
    name: str


@dataclass(frozen=True, slots=True)
class Places:
    """What a request calls the fields that errors name once it is read: when it meets a model, or is compiled.

    Attributes:
        prompt: ``"messages"``, ``"input"`` or ``"prompt"``.
        max_tokens: the limit on tokens that counts; where the request has none, the name that it would have.
        tools: ``"tools"`` or ``"functions"``.
        of_tools: where each tool has its schema or grammar, by the tool's name.
    """

    prompt: str
    max_tokens: str
    tools: str = "tools"
    of_tools: Mapping[str, Place] = field(default_factory=dict)


_listener: ContextVar[Callable[[Place], None] | None] = ContextVar("_listener", default=None)


def on_place(listener: Callable[[Place], None]) -> None:
    """Has a function called with each place that is come to."""
    _listener.set(listener)


def come_to(place: Place) -> None:
    """Says that a place is looked at now, which may take long."""
    listener = _listener.get()
    if listener is not None:
        listener(place)
