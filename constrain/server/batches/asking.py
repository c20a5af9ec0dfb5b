"""One request of a batch, sent to an endpoint of this server without a connection."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.server.http.account import Account, current
from constrain.server.http.errors import ApiError, failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Scope

_log = logging.getLogger("constrain.server")


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a request: its status, the name of the request, and its body."""

    status: int
    request_id: str
    body: dict[str, Any]

    def describe(self) -> dict[str, Any]:
        """Returns the member ``response`` of a line that clients read."""
        return {"status_code": self.status, "request_id": self.request_id, "body": self.body}


class Asking:
    """Sends requests to endpoints.

    Args:
        endpoints: ASGI applications by path.
        seconds: time that one request may take.
        partition: function that returns the name of the prompt cache of an owner.
        finish: function that counts and logs a finished request.
    """

    def __init__(
        self,
        endpoints: Mapping[str, ASGIApp],
        seconds: float,
        partition: Callable[[str], str],
        finish: Callable[[Account, Scope], None],
    ) -> None:
        self.endpoints = endpoints
        self._seconds = seconds
        self._partition = partition
        self._finish = finish

    async def ask(self, path: str, body: bytes, owner: str, *, client: str) -> Reply:
        """Sends a request on behalf of an owner and returns the reply.

        The caller makes a task for each call, since the record of the request is in its context. The response is not
        stored for ``previous_response_id``. ``client``: name of the client in the log.
        """
        account = Account(time.monotonic() + self._seconds, self._partition(owner), owner=owner, keeps_response=False)
        current.set(account)
        scope: Scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())],
            "client": (client, 0),
            "server": None,
            "endpoint": self.endpoints[path],
        }
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        pieces: list[bytes] = []

        async def receive() -> Message:
            if messages:
                return messages.pop()
            await asyncio.Event().wait()  # this client never leaves
            raise AssertionError

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                account.status = message["status"]
            else:
                pieces.append(message.get("body", b""))

        try:
            await self.endpoints[path](scope, receive, send)
            reply = json.loads(b"".join(pieces))
        except ApiError as error:
            error.log_reason()
            account.status, reply = error.status, error.body()
        except Exception:  # noqa: BLE001 - it becomes the reply, whatever it is
            _log.exception("a request of a batch failed")
            account.status, reply = 500, failure().body()
        if account.status:
            self._finish(account, scope)
        return Reply(account.status, account.id, reply)
