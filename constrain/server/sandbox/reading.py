"""Requests are read twice where that may take long: first in a process of its own, which may be ended at any time.

What was found to be well there is not looked at so closely again.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeVar

from constrain.chat.tools.checks import checked_before
from constrain.errors import LimitError
from constrain.server.http.errors import ApiError
from constrain.server.requests.body import parse_body

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from constrain.server.sandbox.session import Session

T = TypeVar("T")

MAX_VALUES = 250_000
"""Values in the body of a request, at any depth: objects, arrays, members, strings and the rest. Beyond: status 400."""

_LARGE = 1 << 20
"""Bytes of a body that is read elsewhere first, whatever it holds."""

_REMEMBERED = 1024
"""Sets of tools and formats that are known to be well, the least recently used ones dropped first."""

_QUICK = frozenset(
    (
        "messages",
        "prompt",
        "input",
        "instructions",
        "model",
        "stream_options",
        "metadata",
        "stop",
        "logit_bias",
        "include",
    )
)
"""Fields that are read in little time, whatever they hold."""


class Readings:
    """What was read before, and found to be well. For one thread."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def knows(self, key: bytes) -> bool:
        """Whether it is that; an empty key always is."""
        if key in self._known:
            self._known.move_to_end(key)
        return not key or key in self._known

    def add(self, key: bytes) -> None:
        """Remembers that it is."""
        self._known[key] = None
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def is_large(body: bytes) -> bool:
    """Whether a body may take long to be parsed: it is long, or may hold many values."""
    return len(body) > _LARGE or sum(map(body.count, (b",", b":", b"[", b"{"))) >= MAX_VALUES


def reading_key(document: Mapping[str, Any]) -> bytes:
    """The same for requests that differ in nothing that takes long to be read; empty if there is no such thing."""
    slow = {name: value for name, value in document.items() if name not in _QUICK and isinstance(value, dict | list)}
    return hashlib.sha256(json.dumps(slow, sort_keys=True).encode()).digest() if slow else b""


async def read_in_sandbox(read: Callable[[dict[str, Any]], object], body: bytes, session: Session) -> None:
    """Has a body read in the process of a session. Raises ``ApiError``."""
    try:
        await session.run(None, rehearse, read, body)
    except LimitError as error:
        place = session.place
        if place is None:
            raise ApiError(f"The request cannot be read: {error}", code="invalid_value") from error
        raise ApiError(f"Invalid {place.name}: {error}", param=place.param, code=place.code) from error


def rehearse(read: Callable[[dict[str, Any]], object], body: bytes) -> None:
    """Reads a body. Raises ``ApiError``, also for one of too many values."""
    document = parse_body(body)
    if is_large(body) and _count(document) > MAX_VALUES:
        raise ApiError(f"The body of the request holds more than {MAX_VALUES} values.", code="request_too_large")
    try:
        read(document)
    except RecursionError as error:
        raise LimitError("it is nested too deeply to be read; make it flatter") from error


def read_again(read: Callable[[dict[str, Any]], T], document: dict[str, Any]) -> T:
    """Reads a request that was read before."""
    with checked_before():
        return read(document)


def _count(document: object) -> int:
    count, pending = 0, [document]
    while pending:
        value = pending.pop()
        count += 1
        if isinstance(value, dict):
            count += len(value)
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return count
