"""The body of a request: read within limits, and parsed as a JSON object with the name of a model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from typing import TYPE_CHECKING, Any

from constrain.fields.values import is_nested_deeper, type_name
from constrain.server.http.cors import is_from_browser
from constrain.server.http.errors import ApiError
from constrain.server.requests.limits import MAX_FIELD_NESTING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractContextManager

    from starlette.requests import Request

    Admit = Callable[[int], AbstractContextManager[None]]
    """Reserves room for a body of so many bytes. Raises ``ApiError`` if there is not enough."""

_JSON = "application/json"
_UNNAMED = (None, "application/octet-stream")  # libraries send the second where a program names no type

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""Pattern of an escape for one half of a surrogate pair."""

LATEST = ":latest"
"""Tag of a model whose name has none."""

_PATIENCE = 4.0
"""Seconds that a client may take to send a body, in addition to the time at ``_SLOWEST``; beyond it, status 408."""

SMALL_BODY = 64 << 10
"""Bytes of a body that need no room of their own: 64 KiB, as many as each connection buffers. Most requests have less,
so that large bodies never keep them out.
"""

_THROWN_AWAY = 64 << 20
"""Bytes of a refused body that are read and dropped, so that the client reads the error: 64 MiB."""

_SLOWEST = 64 << 10
"""Bytes per second that a client must reach for a large body; each such amount adds a second to ``_PATIENCE``."""


@contextlib.asynccontextmanager
async def read_body(request: Request, limit: int, admit: Admit) -> AsyncGenerator[bytes, None]:
    """Reads the whole body, which is JSON; a large one has its room until the end of the context.

    Raises what ``body_pieces`` raises.
    """
    with contextlib.ExitStack() as room:
        pieces = body_pieces(request, limit, _JSON, lambda size: room.enter_context(admit(size)))
        async with contextlib.aclosing(pieces):
            body = b"".join([piece async for piece in pieces])
        yield body


async def body_pieces(
    request: Request, limit: int, media_type: str, admit: Callable[[int], None] = lambda _: None
) -> AsyncGenerator[bytes, None]:
    """Yields the body as it comes.

    Raises ``ApiError`` if it has another media type, is longer than ``limit``, is not admitted or arrives too slowly,
    and ``ClientDisconnect`` if the client leaves. ``admit``: takes the bytes of a large body before these are read.
    """
    declared = _declared_size(request)
    refusal = _check_headers(request, limit, media_type, declared)
    reserved = declared if declared > SMALL_BODY else 0
    if reserved:
        refusal = refusal or _refuse_unadmitted(admit, reserved)
    if refusal is not None and "expect" in request.headers:  # the client still waits to send the body
        raise refusal
    size, begun = 0, time.monotonic()
    stream = request.stream()
    while True:
        left = begun + _PATIENCE - time.monotonic() + (size / _SLOWEST if refusal is None else 0)
        try:
            piece = await asyncio.wait_for(anext(stream), left)
        except StopAsyncIteration:
            if refusal is not None:
                raise refusal from None
            return
        except (TimeoutError, asyncio.TimeoutError) as error:  # two separate classes before Python 3.11
            raise refusal or _too_slow() from error
        size += len(piece)
        if refusal is None and (size > limit or size > max(SMALL_BODY, reserved)):
            more = min(limit, 2 * size) - reserved  # of a body whose size was not declared
            refusal = too_large(limit) if size > limit else _refuse_unadmitted(admit, more)
            reserved, begun = reserved + more, begun if refusal is None else time.monotonic()
        if refusal is None:
            begun_writing = time.monotonic()
            yield piece
            begun += time.monotonic() - begun_writing  # the time that the caller takes is not the client's
        elif size > limit + _THROWN_AWAY:  # most clients read an answer only after they have sent everything
            raise refusal


def _declared_size(request: Request) -> int:
    """Returns the bytes of a body, as its headers say; 0 if they do not."""
    declared = request.headers.get("content-length", "")
    return int(declared[:20]) if declared.isdecimal() else 0


def _refuse_unadmitted(admit: Callable[[int], None], size: int) -> ApiError | None:
    """Asks for room for a body; returns the error if there is not enough."""
    try:
        admit(size)
    except ApiError as error:
        return error
    return None


def _check_headers(request: Request, limit: int, media_type: str, declared: int) -> ApiError | None:
    """Returns the error for a body, as far as its headers show one."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        return ApiError(
            f"The body of the request is compressed ({encoding:.40}); this server takes it as it is only.",
            status=415,
            code="unsupported_encoding",
            headers={"Connection": "close"},
        )
    kind = request.headers.get("content-type")
    is_unnamed = kind in _UNNAMED and media_type == _JSON and not is_from_browser(request.headers)
    if not is_unnamed and (kind or "").partition(";")[0].strip().lower() != media_type:
        # a browser may send others, or none, for every page unasked
        form = "JSON" if media_type == _JSON else "a form with a file"
        return ApiError(
            f"The body of this request is {form} and must say so: send the header Content-Type: {media_type}"
            f"{f' instead of {kind!r:.100}' if kind else ''}.",
            status=415,
            code="unsupported_media_type",
        )
    return too_large(limit) if declared > limit else None


def parse_body(data: bytes) -> dict[str, Any]:
    """Parses a body as a JSON object. Raises ``ApiError``."""
    try:
        text = data.decode("utf-8-sig")
        body = json.loads(text, parse_constant=_not_json)
        if _SURROGATE.search(text):  # only an escape can spell a lone one, which is not valid text
            json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ApiError(
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP "
            f"library correctly. The API expects a JSON payload.) {_reason(error)}",
        ) from error
    if not isinstance(body, dict):
        raise ApiError(f"The JSON body of a request must be an object, not {type_name(body)}.", code="invalid_type")
    for name, value in body.items():
        if is_nested_deeper(value, MAX_FIELD_NESTING):
            raise ApiError(
                f"Invalid '{name:.64}': objects and arrays stand within each other more than {MAX_FIELD_NESTING} "
                "levels deep. Make it flatter; a schema refers to its parts with $ref.",
                param=f"{name:.64}",
                code="invalid_value",
            )
    return body


def too_large(limit: int) -> ApiError:
    """Returns the error for a body with more than ``limit`` bytes."""
    return ApiError(
        f"The body of the request is larger than {limit} bytes.",
        status=413,
        code="request_too_large",
        headers={"Connection": "close"},
    )


def _too_slow() -> ApiError:
    return ApiError(
        "The body of the request came too slowly.",
        status=408,
        code="request_timeout",
        headers={"Connection": "close"},
    )


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"It is no UTF-8: byte {error.start}."
    if isinstance(error, UnicodeEncodeError):
        return "It holds half of a surrogate pair."
    if isinstance(error, RecursionError):
        return f"It is nested more than {MAX_FIELD_NESTING} levels deep."
    return f"{error}."


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
