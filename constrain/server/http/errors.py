"""What goes wrong with a request, in OpenAI's shape: ``{"error": {"message", "type", "param", "code"}}``.

Once a stream of a response has begun, ``responses.events`` writes the error as an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from constrain.server.http.account import current

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.exceptions import HTTPException
    from starlette.requests import Request

SERVER_ERROR = "server_error"

_LOGGED_REASON = 500
"""Characters of an error's message in the log line of its request; the rest is cut off."""


class ApiError(Exception):
    """A request that is answered with an error.

    Attributes:
        message: one or more sentences for whoever wrote the request.
        status: of HTTP. Clients try again after 408, 409, 429 and all from 500 on.
        kind: OpenAI's ``type``.
        param: the place in the request: ``messages[2].content``.
        code: a name for programs.
        headers: of the response.
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
        """The JSON object that says it."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}

    def note(self) -> None:
        """Has the log line of the request that is being answered say the reason."""
        account = current.get(None)
        if account is not None:
            account.reason = self.message[:_LOGGED_REASON]

    def response(self) -> JSONResponse:
        """The response for this error; the log line of the request has the reason, too."""
        self.note()
        return JSONResponse(self.body(), self.status, self.headers)


def context_overflow(place: str, what: str) -> ApiError:
    """What is answered where a context cannot hold what the request has in a place, or an answer to that."""
    return ApiError(
        f"This model's context is too small: {what}. Please reduce the length of the {place}.",
        param=place,
        code="context_length_exceeded",
    )


def failure() -> ApiError:
    """What is answered for an error of the server's own; the log has its cause."""
    return ApiError(
        "The server had an error while processing your request.", status=500, kind=SERVER_ERROR, code="internal_error"
    )


def unavailable(message: str) -> ApiError:
    """What is answered while no model is there."""
    return ApiError(message, status=503, kind=SERVER_ERROR, code="service_unavailable", headers={"Retry-After": "5"})


def too_busy(why: str) -> ApiError:
    """What is answered where there is no room now: a 429. ``why`` ends without a full stop.

    Every 429 is made here: of the queue (``serving.generation``) and of the processes (``sandbox.session``).
    """
    return ApiError(
        f"The server is busy: {why}. Please try again later.",
        status=429,
        kind="rate_limit_error",
        code="rate_limit_exceeded",
        headers={"Retry-After": "1"},
    )


def timed_out() -> ApiError:
    """What is answered when a request has waited too long for its answer to begin."""
    return ApiError(
        "The time of the request was up before its answer was begun. Please try again later.",
        status=503,
        kind=SERVER_ERROR,
        code="timeout",
        headers={"Retry-After": "5"},
    )


async def on_api_error(_: Request, error: Exception) -> JSONResponse:
    """The response for an ``ApiError``."""
    assert isinstance(error, ApiError)
    return error.response()


async def on_http_error(request: Request, error: Exception) -> JSONResponse:
    """The response for what Starlette refuses: unknown paths and methods."""
    found: HTTPException = error  # type: ignore[assignment]
    place = f"{request.method} {request.url.path}"
    message = {404: f"Unknown request URL: {place}.", 405: f"Not allowed: {place}."}.get(
        found.status_code, found.detail
    )
    code = {404: "unknown_url", 405: "method_not_allowed"}.get(found.status_code)
    return ApiError(message, status=found.status_code, code=code, headers=found.headers).response()


async def on_failure(_: Request, __: Exception) -> JSONResponse:
    """The response for an error of the server's own."""
    return failure().response()
