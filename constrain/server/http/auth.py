"""API keys (``Authorization: Bearer KEY``, ``X-Api-Key: KEY``), compared in constant time; owners of cached prompts."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

from constrain.server.http.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from starlette.datastructures import Headers


def require_key(headers: Headers, keys: Sequence[str]) -> None:
    """Raises ``ApiError`` unless the headers carry one of the keys; without keys, everybody may call.

    All digests are compared, so that the time reveals neither the length of a key nor the matching one.
    """
    if not keys:
        return
    given = _given_key(headers)
    if not given:
        raise ApiError(
            "You didn't provide an API key. Send it in the header: Authorization: Bearer YOUR_KEY (or as X-Api-Key).",
            status=401,
            code="invalid_api_key",
            headers=_CHALLENGE,
        )
    digest = _digest(given)
    if not any([hmac.compare_digest(digest, _digest(key)) for key in keys]):  # noqa: C419 - all of them
        raise ApiError("Incorrect API key provided.", status=401, code="invalid_api_key", headers=_CHALLENGE)


def owner_of(headers: Headers, keys: Sequence[str]) -> str:
    """Returns a name for the key of a request that passed ``require_key``; without keys, the same name for all.

    It is the same in later processes, which find the prompts of the key on disk. It stays in memory: files have names
    that nobody can make without the secret of the folder (``llama.prompt_cache.folder``).
    """
    return _owner(_given_key(headers)) if keys else ""


def _owner(key: str) -> str:
    return hmac.new(_OWNER, _digest(key), sha256).hexdigest()


def _given_key(headers: Headers) -> str:
    if key := headers.get("x-api-key", "").strip():  # clients with both headers may have a token of another service
        return key
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


_CHALLENGE = {"WWW-Authenticate": "Bearer"}

_OWNER = b"constrain: the owner of prompts and responses"


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def read_keys(path: Path) -> tuple[str, ...]:
    """Reads the keys in a file, one per line; skips blank lines and ``#`` comments. Raises ``ValueError``."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}") from error
    keys = tuple(
        key
        for number, line in enumerate(text.splitlines(), 1)
        if not line.lstrip().startswith("#") and (key := _check_key(line, f"line {number} of {path}"))
    )
    if not keys:
        raise ValueError(f"{path} has no API key; write one per line")
    return keys


def read_key(text: str, place: str) -> str:
    """Returns the key in a text; ``""`` if it is blank. Raises ``ValueError``, with ``place``, for an invalid key."""
    return _check_key(text.removeprefix("\ufeff"), place)


def _check_key(text: str, place: str) -> str:
    key = text.strip()
    if not key.isascii() or not key.replace("\t", " ").isprintable():
        raise ValueError(f"{place} is not a valid API key: use printable ASCII characters only")
    return key
