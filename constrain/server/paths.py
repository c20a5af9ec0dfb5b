"""Paths of requests: other spellings of this server's paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Scope

HEALTH = "/health"

_VERSION = "/v1"

_VERSIONED = frozenset(("chat", "completions", "embeddings", "messages", "models", "responses"))
"""First parts of paths that clients may write without ``/v1``."""


def full_path(path: str) -> str:
    """Returns the path that this server has for a path.

    >>> full_path("/chat/completions"), full_path("/v1/health"), full_path("/api/chat")
    ('/v1/chat/completions', '/health', '/api/chat')
    """
    if path == _VERSION + HEALTH:
        return HEALTH
    return _VERSION + path if path[1:].partition("/")[0] in _VERSIONED else path


def with_full_path(scope: Scope) -> Scope:
    """Returns the scope of a request under the path that this server has for its path."""
    path = full_path(scope["path"])
    return scope if path == scope["path"] else {**scope, "path": path, "raw_path": path.encode()}
