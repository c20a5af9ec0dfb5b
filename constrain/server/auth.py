"""API keys: ``Authorization: Bearer KEY``, compared in constant time."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

from constrain.server.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from starlette.datastructures import Headers


def require_key(headers: Headers, keys: Sequence[str]) -> None:
    """Raises ``ApiError`` unless the headers carry one of the keys; without keys, everybody may ask.

    Digests are compared, and all of them: the time tells neither a key's length nor which one it was.
    """
    if not keys:
        return
    given = _given_key(headers)
    if not given:
        raise ApiError(
            "You didn't provide an API key. Send it in the header: Authorization: Bearer YOUR_KEY.",
            status=401,
            code="invalid_api_key",
            headers=_CHALLENGE,
        )
    digest = _digest(given)
    if not any([hmac.compare_digest(digest, _digest(key)) for key in keys]):  # noqa: C419 - all of them
        raise ApiError("Incorrect API key provided.", status=401, code="invalid_api_key", headers=_CHALLENGE)


def owner_of(headers: Headers, keys: Sequence[str]) -> str:
    """Who sent a request that passed ``require_key``: a digest of its key. Without keys, everybody is the same."""
    return _digest(_given_key(headers)).hex() if keys else ""


def _given_key(headers: Headers) -> str:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


_CHALLENGE = {"WWW-Authenticate": "Bearer"}


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def read_keys(path: Path) -> tuple[str, ...]:
    """The keys in a file, one a line; empty lines and those that begin with ``#`` are none. Raises ``ValueError``."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys:
        raise ValueError(f"{path} holds no API key; write one a line")
    return keys
