"""Errors with status 400, 429, 503 and others, in OpenAI's form: ``{"error": {"message", "type", "param", "code"}}``.

Paths of other protocols have forms of their own, which the record of the request names. After a stream of
``/v1/responses`` has begun, ``responses.events`` writes the error as an event.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from constrain.fields.values import FieldError
from constrain.server.http.account import current
from constrain.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.exceptions import HTTPException
    from starlette.requests import Request

SERVER_ERROR = "server_error"

_LOGGED_REASON = 500
"""Characters of an error's message in the log line of its request; the rest is cut off."""


_RETRY_SECONDS = (1, 120)
"""Least and greatest ``Retry-After`` of an error 429, in seconds."""


class ApiError(Exception):
    """An error that answers a request.

    Attributes:
        message: one or more sentences for the author of the request.
        status: HTTP status. Clients retry 408, 409, 429, and 500 or more.
        kind: OpenAI's ``type``.
        param: place in the request, such as ``messages[2].content``.
        code: name of the error for programs.
        headers: headers of the response.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.param = param
        self.code = code
        self.headers = headers

    def body(self) -> dict[str, Any]:
        """Returns the JSON object of the error, in the form of the current request's protocol."""
        account = current.get(None)
        if account is not None and account.error_object is not None:
            return account.error_object(self)
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}

    def log_reason(self) -> None:
        """Adds the reason to the log line of the current request."""
        account = current.get(None)
        if account is not None:
            account.reason = self.message[:_LOGGED_REASON]

    def response(self) -> JSONResponse:
        """Returns the response for this error, and adds the reason to the log line of the request."""
        self.log_reason()
        return JSONResponse(self.body(), self.status, self.headers)


@contextmanager
def convert_field_errors() -> Iterator[None]:
    """Raises each ``FieldError`` of the block as an ``ApiError`` with status 400. Also a decorator."""
    try:
        yield
    except FieldError as error:
        raise ApiError(error.message, param=error.param, code=error.code) from error


def context_overflow(place: str, what: str) -> ApiError:
    """Returns the error for a request, or an answer to it, that does not fit into the model's context."""
    return ApiError(
        f"This model's context is too small: {what}. Please reduce the length of the {place}.",
        param=place,
        code="context_length_exceeded",
    )


def failure() -> ApiError:
    """Returns the error for a fault of the server; the log has its cause."""
    return ApiError(
        "The server had an error while processing your request.", status=500, kind=SERVER_ERROR, code="internal_error"
    )


def unavailable(message: str) -> ApiError:
    """Returns the error for a server without an available model."""
    return ApiError(message, status=503, kind=SERVER_ERROR, code="service_unavailable", headers={"Retry-After": "5"})


def too_busy(why: str, seconds: float) -> ApiError:
    """Returns the error 429 for a server without room. All 429s are made here.

    Args:
        why: the reason, without a full stop.
        seconds: estimate of the time until there is room, for ``Retry-After``.
    """
    least, most = _RETRY_SECONDS
    return ApiError(
        f"The server is busy: {why}. Please try again later.",
        status=429,
        kind="rate_limit_error",
        code="rate_limit_exceeded",
        headers={"Retry-After": str(math.ceil(min(max(seconds, least), most)))},
    )


def timed_out() -> ApiError:
    """Returns the error for a request whose answer did not begin in time."""
    return ApiError(
        "The time of the request was up before its answer was begun. Please try again later.",
        status=503,
        kind=SERVER_ERROR,
        code="timeout",
        headers={"Retry-After": "5"},
    )


async def on_error(_: Request, error: Exception) -> JSONResponse:
    """Returns the response for an ``ApiError`` or a ``FieldError``."""
    try:
        with convert_field_errors():
            raise error
    except ApiError as found:
        return found.response()


async def on_http_error(request: Request, error: Exception) -> JSONResponse:
    """Returns the response for errors of Starlette: unknown paths and methods."""
    found: HTTPException = error  # type: ignore[assignment]
    place = f"{request.method} {request.url.path}"
    if found.status_code == 404:
        known = [each.path_format for each in request.app.routes if request.method in (each.methods or ())]
        place += did_you_mean(request.url.path, [path for path in known if path != "/"])
    headers = dict(found.headers or {})
    if "Allow" in headers:
        headers["Allow"] = ", ".join(sorted(headers["Allow"].split(", ")))  # a set, in any order
    allowed = headers.get("Allow", "another method")
    message = {404: f"Unknown request URL: {place}.", 405: f"Not allowed: {place}. Use {allowed}."}.get(
        found.status_code, found.detail
    )
    code = {404: "unknown_url", 405: "method_not_allowed"}.get(found.status_code)
    return ApiError(message, status=found.status_code, code=code, headers=headers).response()


async def on_failure(_: Request, __: Exception) -> JSONResponse:
    """Returns the response for a fault of the server."""
    return failure().response()
