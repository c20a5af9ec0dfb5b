"""Errors in Anthropic's form: ``{"type": "error", "error": {"type", "message"}, "request_id"}``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.server.http.account import current

if TYPE_CHECKING:
    from constrain.server.http.errors import ApiError

NO_THREADS = "thread_unsupported_request"
"""Code of the error for a conversation that the server is asked to keep: clients then send all of it each time."""

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
"""Types of errors by status; other statuses have one type for faults of requests and one for faults of the server."""

_FIRST_FAULT_OF_SERVER = 500


def error_object(error: ApiError) -> dict[str, Any]:
    """Returns the JSON object of an error. Its message names the place in the request, for which there is no member.

    The code has no member either, except for ``NO_THREADS``, which clients look for.
    """
    others = "api_error" if error.status >= _FIRST_FAULT_OF_SERVER else "invalid_request_error"
    names_place = error.param is None or error.param in error.message
    message = error.message if names_place else f"{error.param}: {error.message}"
    account = current.get(None)
    details = {"details": {"error_code": error.code}} if error.code == NO_THREADS else {}
    return {
        "type": "error",
        "error": {"type": _TYPES.get(error.status, others), "message": message, **details},
        "request_id": None if account is None else account.id,
    }
