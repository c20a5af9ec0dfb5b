"""Places in a request, as errors name them: each reader receives its place and passes on those of inner fields.

A process that reads or compiles a request also reports its current place to the server.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a request that is compiled. ``name``: for messages; ``param`` and ``code``: of errors in it."""

    param: str
    code: str
    name: str


@dataclass(frozen=True, slots=True)
class Places:
    """The names of a request's fields, for errors found after reading it: when it meets a model, or is compiled.

    Attributes:
        prompt: ``"messages"``, ``"input"`` or ``"prompt"``.
        max_tokens: name of the limit on tokens that applies; without a limit, the name that it would have.
        tools: ``"tools"`` or ``"functions"``.
        of_tools: place of each tool's schema or grammar, by the tool's name.
    """

    prompt: str
    max_tokens: str
    tools: str = "tools"
    of_tools: Mapping[str, Place] = field(default_factory=dict)


_listener: ContextVar[Callable[[Place], None] | None] = ContextVar("_listener", default=None)


def on_place(listener: Callable[[Place], None]) -> None:
    """Registers a function that receives each place that ``report_place`` reports."""
    _listener.set(listener)


def report_place(place: Place) -> None:
    """Reports the place whose reading or compilation begins now and may take long."""
    listener = _listener.get()
    if listener is not None:
        listener(place)
