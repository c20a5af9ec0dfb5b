"""Requests with tools or schemas are read in a process of the sandbox, which compiles these to check them.

The server itself reads the others, and those whose tools and schemas it knows as valid.
"""

from __future__ import annotations

import hashlib
import marshal
import os
from typing import TYPE_CHECKING, Any, TypeVar

from constrain.chat.tools.checks import checked_before
from constrain.errors import LimitError
from constrain.llama.decoding.sampling import LISTS
from constrain.server.http.account import Account, current, warn
from constrain.server.http.errors import ApiError
from constrain.server.requests.body import parse_body
from constrain.server.requests.limits import MARSHALLED
from constrain.server.requests.peers import PEERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from constrain.server.sandbox.session import Session

T = TypeVar("T")
R = TypeVar("R")

MAX_VALUES = 500_000
"""Values in the body of a request, at any depth: objects, arrays, members, strings and the rest. Beyond: status 400."""

REMEMBERED = 1024
"""Sets of tools and formats that are remembered as valid: 1024; beyond it, the least recently used are forgotten."""

_QUICK = frozenset(
    (
        *("messages", "prompt", "input", "instructions", "system", "stop_sequences", "model", "stream_options"),
        *("metadata", "stop", "logit_bias", "include", "options", *LISTS),
    )
)
"""Fields that are quick to read, whatever their content."""


def is_large(body: bytes) -> bool:
    """Returns whether a body may have too many values: each but the first stands behind one of four signs.

    Without many values, the longest body is parsed in 50 ms.
    """
    return sum(map(body.count, (b",", b":", b"[", b"{"))) >= MAX_VALUES


def reading_key(document: Mapping[str, Any]) -> bytes:
    """Returns a key of a request's slow fields: equal keys mean equal fields. Empty if there are no slow fields.

    Schemas are among the fields, but the key is not made of their texts: it is needed before the schemas are read.
    ``marshal`` spells it in a fifth of the time of JSON.

    With an ``output_schema``, with which results are compared, no two keys are equal: reading compiles it each time.
    """
    slow = {
        name: value
        for name, value in document.items()
        if name in PEERS or (name not in _QUICK and isinstance(value, dict | list))
    }
    if isinstance(items := document.get("input"), list):  # some items of a response's input have tools
        slow |= {
            f"input[{index}]": each for index, each in enumerate(items) if isinstance(each, dict) and "tools" in each
        }
    spelled = marshal.dumps(slow, MARSHALLED) if slow else b""
    if b"output_schema" in spelled:
        return os.urandom(hashlib.sha256().digest_size)
    return hashlib.sha256(spelled).digest() if spelled else b""


async def read_in_sandbox(read: Callable[[Mapping[str, Any]], T], body: bytes, model: object, session: Session) -> T:
    """Reads a body in the process of a session, with ``model`` as its model. Raises ``ApiError``."""
    read_and_warned: tuple[T, tuple[str, ...]] = await _run(session, read_here, read, body, model)
    found, warnings = read_and_warned
    for warning in warnings:
        warn(warning)
    return found


async def require_few_values(body: bytes, session: Session) -> None:
    """Raises ``ApiError`` for a large body with more than ``MAX_VALUES`` values, which a process counts."""
    await _run(session, count_here, body)


async def _run(session: Session, function: Callable[..., R], *args: Any) -> R:
    """Calls a function in the process of a session. Raises ``ApiError``, also where the call exceeds a limit."""
    try:
        return await session.run(None, function, *args)
    except LimitError as error:
        place = session.place
        if place is None:
            raise ApiError(f"The request cannot be read: {error}", code="invalid_value") from error
        raise ApiError(f"Invalid {place.name}: {error}", param=place.param, code=place.code) from error


def read_here(read: Callable[[Mapping[str, Any]], T], body: bytes, model: object) -> tuple[T, tuple[str, ...]]:
    """Reads a body in the sandbox; returns the request and its warnings. Raises ``ApiError`` and ``LimitError``."""
    account = Account(0.0)
    request = current.set(account)
    try:
        found = read({**parse_body(body), "model": model})
    except RecursionError as error:
        raise LimitError("it is nested too deeply to be read; make it flatter") from error
    finally:
        current.reset(request)
    return found, account.warnings


def count_here(body: bytes) -> None:
    """Counts the values of a body in the sandbox. Raises ``ApiError``."""
    if _count(parse_body(body)) > MAX_VALUES:
        raise ApiError(f"The body of the request holds more than {MAX_VALUES} values.", code="request_too_large")


def read_again(read: Callable[[Mapping[str, Any]], T], document: Mapping[str, Any]) -> T:
    """Reads a request whose tools and schemas are known as valid."""
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
