"""Which web pages may ask from a browser (Fetch Standard, "CORS protocol")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.datastructures import Headers

ANY_ORIGIN = "*"

_HEADERS = ("authorization", "content-type")
_PREFIXES = ("x-stainless-", "openai-")
"""What clients send: the ``openai`` package names itself and its platform."""


def cors_headers(headers: Headers, origins: Sequence[str]) -> dict[str, str]:
    """What every response to a request says, errors too; nothing if its page may not read it."""
    origin = headers.get("origin")
    if origin is None or not ({ANY_ORIGIN, origin} & set(origins)):
        return {}
    return {
        "access-control-allow-origin": ANY_ORIGIN if ANY_ORIGIN in origins else origin,
        "access-control-expose-headers": "x-request-id, retry-after",
        "vary": "Origin",
    }


def preflight(headers: Headers, *, is_shared: bool) -> Response:
    """The answer to a browser that asks whether a page may send a request; no permission is no error."""
    if not is_shared:
        return Response(status_code=204)
    asked = (name.strip().lower() for name in headers.get("access-control-request-headers", "").split(","))
    allowed = [name for name in asked if name in _HEADERS or name.startswith(_PREFIXES)]
    return Response(
        status_code=204,
        headers={
            "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
            "access-control-allow-headers": ", ".join(allowed),
            "access-control-max-age": "600",
        },
    )
