"""Errors in Ollama's form: ``{"error": "message"}``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constrain.server.http.errors import ApiError

_HINTS = {"unsupported_media_type": " With curl, use --json instead of -d."}
"""Sentences behind the messages of errors, by code: users of Ollama send bodies without a type."""


def error_object(error: ApiError) -> dict[str, Any]:
    """Returns the JSON object of an error."""
    return {"error": error.message + _HINTS.get(error.code or "", "")}
