"""Browsers: the web pages that may call this server, by their ``Origin`` (Fetch Standard, "CORS protocol").

A browser sends simple requests for every page, and only hides the answer from pages that may not read it. So this
server refuses a request for a page of another origin before it has any effect.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import Response

from constrain.server.http.account import current
from constrain.server.http.errors import ApiError
from constrain.server.http.hosts import split_authority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.datastructures import Headers

ANY_ORIGIN = "*"

OPAQUE_ORIGIN = "null"
"""Origin of pages from files and in sandboxed frames. Every site can make such a page."""

_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(\*|\[[0-9a-f:.]+\]|(?:\*\.)?[a-z0-9._-]+)(:(?:[0-9]{1,5}|\*))?")
"""An origin, or a pattern of origins."""

_BROWSER = "Mozilla/"
"""How the ``User-Agent`` of every common browser begins."""

_ANY = {"://*": r"://[a-z0-9._:[\]-]*", "://*.": r"://(?:[a-z0-9_-]+\.)+", ":*": r"(?::[0-9]{1,5})?"}
"""Regular expressions for ``*`` in patterns of origins: for all hosts and ports, for all hosts of a domain, and for all
ports."""

_DEFAULT_PORTS = {"http": "80", "https": "443"}

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""Pattern of a header's name: a ``token`` (RFC 9110 section 5.6.2)."""


def origin_of(text: str) -> str:
    """Returns an origin, or a pattern of origins, as browsers write it. Raises ``ValueError``.

    Browsers write origins in lower case, without a default port.

    >>> origin_of("https://My.Example:443/"), origin_of("vscode-webview://*")
    ('https://my.example', 'vscode-webview://*')
    """
    if text in (ANY_ORIGIN, OPAQUE_ORIGIN):
        return text
    found = _ORIGIN.fullmatch(text.lower().removesuffix("/"))
    if found is None:
        raise ValueError(
            "an origin is a scheme, a host and optionally a port, as in https://my.example:8443; '*' may stand for all "
            "hosts (vscode-webview://*), for all hosts of a domain (https://*.my.example) or for all ports "
            "(http://localhost:*)"
        )
    scheme, host, port = found.groups(default="")
    return f"{scheme}://{host}{'' if port == f':{_DEFAULT_PORTS.get(scheme)}' else port}"


def require_origin(method: str, headers: Headers, origins: Sequence[str]) -> None:
    """Raises ``ApiError`` if a browser sends the request for a page that may not call.

    Programs other than browsers send none of these headers. Following a link to this server is not a page's request.
    """
    if ANY_ORIGIN in origins or headers.get("sec-fetch-site") == "same-origin":
        return
    given = headers.getlist("origin")
    for origin in given:
        if not _is_allowed(origin, origins) and not _is_own(origin, headers):
            raise _make_refusal(f"from pages of the origin {origin!r:.200}")
    if not given and headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if method not in ("GET", "HEAD") or not is_link:
            raise _make_refusal("from pages of other origins, unless these send their origin")


def is_from_browser(headers: Headers) -> bool:
    """Returns whether a browser sends a request. Browsers send one of these headers, which no page can leave out."""
    is_named = headers.get("user-agent", "").startswith(_BROWSER)
    return is_named or "origin" in headers or "sec-fetch-site" in headers


def _is_allowed(origin: str, origins: Sequence[str]) -> bool:
    """Returns whether an origin is one of several, which may be patterns."""
    return any(origin == each or (ANY_ORIGIN in each and _expression(each).fullmatch(origin)) for each in origins)


def _expression(pattern: str) -> re.Pattern[str]:
    """Returns the regular expression of a pattern of origins."""
    if pattern == ANY_ORIGIN:
        return re.compile(".*")
    pieces = re.split(r"(://\*\.|://\*|:\*)", pattern)
    return re.compile("".join(_ANY.get(piece, re.escape(piece)) for piece in pieces))


def _is_own(origin: str, headers: Headers) -> bool:
    """Returns whether an origin is this server's own, under the name that the client uses."""
    scheme, _, authority = origin.partition("://")
    if scheme not in _DEFAULT_PORTS:
        return False
    theirs, ours = split_authority(authority), split_authority(headers.get("host", ""))
    if theirs is None or ours is None:
        return False
    default = _DEFAULT_PORTS[scheme]
    return (theirs[0], theirs[1] or default) == (ours[0], ours[1] or default)


def _make_refusal(what: str) -> ApiError:
    return ApiError(
        f"This server takes no requests {what}. If this page may ask, start the server with --cors-origin and its "
        "origin.",
        status=403,
        code="origin_not_allowed",
    )


def cors_headers(headers: Headers, origins: Sequence[str]) -> dict[str, str]:
    """Returns the headers for every response, errors included; empty if the page may not read it."""
    origin = headers.get("origin")
    if origin is None or not _is_allowed(origin, origins):
        return {}
    return {
        "access-control-allow-origin": ANY_ORIGIN if ANY_ORIGIN in origins else origin,
        "access-control-expose-headers": "request-id, x-request-id, retry-after",
        "vary": "Origin",
    }


def preflight(headers: Headers, *, is_shared: bool) -> Response:
    """Returns the answer to a browser that asks whether a page may send a request; a refusal is no error.

    A page that may call may send every header, since headers add no permission. Clients send many headers, and browsers
    ask for different subsets of them (Firefox for ``user-agent``).
    """
    if not is_shared:
        if (origin := headers.get("origin")) is not None:
            current.get().reason = _make_refusal(f"from pages of the origin {origin!r:.200}").message
        return Response(status_code=204)
    asked = (name.strip().lower() for name in headers.get("access-control-request-headers", "").split(","))
    allowed = {
        "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
        "access-control-allow-headers": ", ".join(name for name in asked if _HEADER_NAME.fullmatch(name)),
        "access-control-max-age": "600",
    }
    if headers.get("access-control-request-private-network") == "true":  # some browsers ask this, for public pages
        allowed["access-control-allow-private-network"] = "true"
    return Response(status_code=204, headers=allowed)
