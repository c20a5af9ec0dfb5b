"""The front: an ASGI application without a model, which has replicas answer its requests."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

from ray.exceptions import RayActorError, RayError
from ray.serve.exceptions import BackPressureError, RayServeException
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request

from constrain.server.dialects import error_object_for, stream_end
from constrain.server.http.account import REQUEST_ID, RESPONSE_ID, Account, current
from constrain.server.http.cors import cors_headers
from constrain.server.http.errors import ApiError, failure, too_busy, unavailable
from constrain.server.http.pace import Pace
from constrain.server.paths import with_full_path
from constrain.server.requests.body import too_large
from constrain.server.responses.output import new_response_id

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle
    from starlette.types import Message, Receive, Scope, Send

    from constrain.server.settings import Settings

_log = logging.getLogger("constrain.server")

ATTEMPTS = 3
"""Replicas that are asked for one response: 3, as each may be lost before it has sent anything."""

CRASHES = 2
"""Replicas that may crash with one request: 2. It may be the reason, and would take a third one, too."""

_USUAL_SECONDS = 2.0
"""Seconds that a request takes, with its wait for a replica, before any was measured: 2."""

_RESPONSES = "/v1/responses"

_ID_HEADER = "x-request-id"

MAX_REQUEST_ID = 128
"""Characters of the name that a client may give to its request: 128; a longer one is replaced."""

_SENT = (
    "type", "http_version", "method", "scheme", "path", "raw_path", "query_string", "root_path", "headers", "client",
    "server",
)  # fmt: skip
"""Members of a scope that replicas get; others belong to the process of the front."""


class Front:
    """An ASGI application that passes requests to replicas, and their responses to clients.

    Args:
        replicas: handle of the replicas.
        settings: settings of the server.
    """

    def __init__(self, replicas: DeploymentHandle[Any], settings: Settings) -> None:
        self._replicas: Any = replicas.options(stream=True)
        self._settings = settings
        self._pace = Pace(_USUAL_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        scope = with_full_path(scope)
        headers = Headers(scope=scope)
        account = Account(time.monotonic() + self._settings.timeout)
        account.error_object = error_object_for(scope["path"], headers)
        account.id = _request_id(headers) or account.id
        current.set(account)
        response = _Response(scope["method"], scope["path"], send)
        try:
            await self._answer(Request(scope, receive), response)
        except ClientDisconnect:
            return
        except ApiError as error:
            if response.has_begun:
                await response.end(error)
                return
            answer = error.response()
            answer.headers.update(cors_headers(headers, self._settings.cors_origin))
            await answer(scope, receive, send)

    async def _answer(self, request: Request, response: _Response) -> None:
        """Has a replica answer. Raises ``ApiError`` if none does, and ``ClientDisconnect``."""
        if request.url.path == "/metrics":
            raise ApiError(
                "The metrics of all replicas are with Ray's own, at the address of each node.",
                status=404,
                code="unknown_url",
            )
        body = await _read(request, self._settings.max_body_bytes)
        sent = {name: request.scope[name] for name in _SENT if name in request.scope}
        sent[REQUEST_ID] = current.get().id
        if request.url.path == _RESPONSES:
            sent[RESPONSE_ID] = new_response_id()  # one for all attempts: they store one response
        crashes = 0
        for _ in range(ATTEMPTS):
            lost = await self._attempt(sent, body, response)
            if lost is None:
                return
            crashes += isinstance(lost, RayActorError)
            if response.has_begun or crashes == CRASHES:
                break
            response.is_repeated = True
        raise unavailable("The process that wrote the answer was lost.")

    async def _attempt(self, sent: Scope, body: bytes, response: _Response) -> Exception | None:
        """Sends the response of one replica. Returns its error if it was lost. Raises ``ApiError``."""
        begun = time.monotonic()
        try:
            await response.send_all(self._replicas.answer.remote(sent, body))
        except BackPressureError as error:
            raise too_busy("all replicas are answering, and the queue is full", self._pace.seconds) from error
        except (RayActorError, RayServeException) as error:  # the replica, its node or its process is gone
            _log.warning("a replica was lost: %s", error, extra={"event": "replica_lost"})
            return error
        except RayError as error:
            _log.exception("a replica failed")
            raise failure() from error
        if sent["method"] == "POST":
            self._pace.add(time.monotonic() - begun)  # a full queue was in it, so that this is what it takes
        return None


class _Response:
    """A response to a client, in so far as it was sent.

    Attributes:
        is_repeated: whether another replica had the request before, and may have done it.
        has_begun: whether anything was sent.
    """

    def __init__(self, method: str, path: str, send: Send) -> None:
        self._deleted = path.removeprefix(_RESPONSES + "/") if method == "DELETE" else ""
        self._path = path
        self._send = send
        self._is_over = False
        self.is_repeated = False
        self._media_type = ""
        self._events = 0
        self.has_begun = False

    async def send_all(self, parts: Any) -> None:
        """Sends the messages that a replica yields. If the client leaves, the replica is told."""
        is_over = False
        try:
            async for messages in parts:
                for message in messages:
                    await self._send_one(message)
            is_over = True
        finally:
            if not is_over:
                parts.cancel()

    async def end(self, error: ApiError) -> None:
        """Ends a stream with an error. Raises the error if it is not a stream: the connection breaks off then."""
        last = stream_end(self._path, self._media_type, error, self._events)
        if last is None:
            raise error
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def _send_one(self, message: Message) -> None:
        if self._is_over:
            return
        if message["type"] == "http.response.start":
            if self.is_repeated and message["status"] == 404 and self._deleted not in ("", self._path):
                await self._confirm(message)
                return
            headers = MutableHeaders(raw=list(message["headers"]))
            self._media_type = headers.get("content-type", "")
            del headers[_ID_HEADER]  # Ray adds it
            message = {**message, "headers": headers.raw}
        else:
            self._events += message.get("body", b"").count(b"\n\n")
        await self._send(message)
        self.has_begun = True

    async def _confirm(self, message: Message) -> None:
        """Confirms that a response was deleted, in place of a 404: the first replica may have deleted it."""
        body = json.dumps({"id": self._deleted, "object": "response", "deleted": True}).encode()
        headers = MutableHeaders(raw=list(message["headers"]))
        headers["content-length"] = str(len(body))
        headers["content-type"] = "application/json"
        await self._send_one({**message, "status": 200, "headers": headers.raw})
        await self._send_one({"type": "http.response.body", "body": body, "more_body": False})
        self._is_over = True


def _request_id(headers: Headers) -> str:
    """Returns the name that Ray, or the client, has given to a request; ``""`` if it cannot be used."""
    found = headers.get(_ID_HEADER, "")
    return found if len(found) <= MAX_REQUEST_ID and found.isascii() and found.isprintable() else ""


async def _read(request: Request, limit: int) -> bytes:
    """Returns the body. Raises ``ApiError`` if it is longer than ``limit`` bytes."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        pieces.append(piece)
    return b"".join(pieces)


async def _live(receive: Receive, send: Send) -> None:
    """Follows the protocol for the start and the end of an ASGI server."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
