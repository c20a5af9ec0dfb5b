"""The front of the endpoint, with replicas that are lost at the moment of the test's choice."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import each_row, for_each

pytest.importorskip("ray")

from ray.exceptions import ActorDiedError, RayError
from ray.serve.exceptions import RayServeException

from constrain.server.http.account import REQUEST_ID, RESPONSE_ID
from constrain.server.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.types import Message

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
"""Warnings of Ray Serve about itself."""

SSE = "text/event-stream; charset=utf-8"


def start(media_type: str = SSE) -> Message:
    headers = [(b"content-type", media_type.encode()), (b"x-request-id", b"of the replica")]
    return {"type": "http.response.start", "status": 200, "headers": headers}


def part(text: str, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": text.encode(), "more_body": more}


class Parts:
    """The messages of one replica, with an error behind them."""

    def __init__(self, messages: Sequence[Message], error: Exception | None = None) -> None:
        self.messages = messages
        self.error = error
        self.is_cancelled = False

    async def __aiter__(self) -> AsyncIterator[list[Message]]:
        for message in self.messages:
            yield [message]
        if self.error is not None:
            raise self.error

    def cancel(self) -> None:
        self.is_cancelled = True


class Replicas:
    """A handle whose calls give the parts in their order."""

    def __init__(self, *parts: Parts) -> None:
        self.left = list(parts)
        self.calls: list[tuple[dict[str, Any], bytes]] = []
        self.answer = self

    def options(self, **_: Any) -> Replicas:
        return self

    def remote(self, scope: dict[str, Any], body: bytes) -> Parts:
        self.calls.append((scope, body))
        return self.left.pop(0)


LOST = ActorDiedError()
AWAY = RayServeException("no replica is there")


def ask(
    replicas: Replicas,
    path: str = "/v1/chat/completions",
    body: bytes = b"{}",
    headers: Sequence[tuple[bytes, bytes]] = (),
    method: str = "POST",
) -> list[Message]:
    """Asks a front; returns the messages of its response."""
    from constrain.ray.endpoint.front import Front

    front = Front(replicas, Settings(max_body_bytes=100))  # type: ignore[arg-type]
    sent: list[Message] = []
    received: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return received.pop(0) if received else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": list(headers),
        "query_string": b"",
        "app": object(),
    }
    asyncio.run(front(scope, receive, send))
    return sent


def error_of(messages: list[Message]) -> tuple[int, Any]:
    return messages[0]["status"], json.loads(messages[1]["body"])["error"]


def test_a_response_is_passed_on() -> None:
    replicas = Replicas(Parts([start(), part("a"), part("b", more=False)]))
    messages = ask(replicas, body=b"hello", headers=[(b"x-request-id", b"mine")])
    assert [message.get("body") for message in messages] == [None, b"a", b"b"]
    assert messages[0]["headers"] == [(b"content-type", SSE.encode())]
    scope, body = replicas.calls[0]
    assert (scope["path"], scope[REQUEST_ID], body) == ("/v1/chat/completions", "mine", b"hello")
    assert "app" not in scope


def test_another_replica_is_asked_if_nothing_was_sent() -> None:
    lost = Parts([], LOST)
    replicas = Replicas(lost, Parts([start(), part("a", more=False)]))
    assert ask(replicas)[1]["body"] == b"a"
    assert lost.is_cancelled


@for_each(
    "errors, calls", [([LOST, LOST], 2), ([AWAY, LOST, LOST], 3), ([AWAY, LOST, AWAY], 3), ([AWAY, AWAY, AWAY], 3)]
)
def test_the_request_fails_if_replica_after_replica_is_lost(errors: list[Exception], calls: int) -> None:
    replicas = Replicas(*(Parts([], error) for error in errors))
    status, error = error_of(ask(replicas))
    assert (status, error["code"]) == (503, "service_unavailable")
    assert len(replicas.calls) == calls


def not_found() -> list[Message]:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"99")]
    return [{"type": "http.response.start", "status": 404, "headers": headers}, part('{"error":', more=False)]


def test_a_response_that_a_lost_replica_may_have_deleted_is_deleted() -> None:
    path = "/v1/responses/resp_1"
    start_, body = ask(Replicas(Parts([], LOST), Parts(not_found())), path, method="DELETE")
    assert start_["status"] == 200
    assert json.loads(body["body"]) == {"id": "resp_1", "object": "response", "deleted": True}
    assert dict(start_["headers"]) == {
        b"content-type": b"application/json",
        b"content-length": str(len(body["body"])).encode(),
    }
    assert ask(Replicas(Parts(not_found())), path, method="DELETE")[0]["status"] == 404
    for method, other in (("GET", path), ("DELETE", "/v1/chat")):
        assert ask(Replicas(Parts([], LOST), Parts(not_found())), other, method=method)[0]["status"] == 404


def test_a_request_that_is_sent_again_creates_one_response() -> None:
    asked = [Replicas(Parts([], LOST), Parts([start(), part("a", more=False)])) for _ in range(2)]
    for replicas in asked:
        ask(replicas, "/v1/responses")
    names = [[scope[RESPONSE_ID] for scope, _ in replicas.calls] for replicas in asked]
    assert [len({*each}) for each in names] == [1, 1]
    assert names[0] != names[1]
    assert names[0][0].startswith("resp_")


@for_each(
    "path, media_type, last",
    ("/v1/chat/completions", SSE, 'data: {"error":{"message":'),
    ("/v1/completions", SSE, 'data: {"error":{"message":'),
    ("/v1/responses", SSE, 'event: error\ndata: {"type":"error","code":"service_unavailable","message":'),
    ("/v1/messages", SSE, 'event: error\ndata: {"type":"error","error":{"type":'),
    ("/playground/api/v1/generate", SSE, 'data: {"type":"error","error":{"message":'),
    ("/api/chat", "application/x-ndjson", '{"error":"The process that wrote the answer was lost."}\n'),
)
def test_a_stream_that_has_begun_ends_with_an_error(path: str, media_type: str, last: str) -> None:
    replicas = Replicas(Parts([start(media_type), part("data: 1\n\n"), part("data: 2\n\n")], LOST))
    *_, final = ask(replicas, path)
    text = final["body"].decode()
    assert text.startswith(last)
    assert final["more_body"] is False
    if path == "/v1/responses":
        assert json.loads(text.partition("data: ")[2])["sequence_number"] == 2


def test_a_body_that_has_begun_breaks_off() -> None:
    from constrain.server.http.errors import ApiError

    with pytest.raises(ApiError, match="was lost"):
        ask(Replicas(Parts([start("application/json"), part("{")], LOST)))


def test_a_full_queue_is_status_429() -> None:
    from ray.serve.exceptions import BackPressureError

    status, error = error_of(ask(Replicas(Parts([], BackPressureError(5, 5)))))
    assert (status, error["code"]) == (429, "rate_limit_exceeded")


def test_a_fault_of_a_replica_is_status_500() -> None:
    assert error_of(ask(Replicas(Parts([], RayError("boom")))))[0] == 500


@each_row(
    "path, is_form",
    ("/v1/responses", lambda body: body["error"]["message"]),
    ("/v1/messages", lambda body: body["type"] == "error" and body["error"]["message"]),
    ("/api/chat", lambda body: isinstance(body["error"], str)),
)
def test_a_long_body_is_refused_before_any_replica_is_asked(path: str, is_form: Any) -> None:
    start_, body = ask(Replicas(), path, body=b"x" * 101)
    assert start_["status"] == 413
    assert is_form(json.loads(body["body"]))


def test_metrics_are_with_those_of_ray() -> None:
    status, error = error_of(ask(Replicas(), "/metrics", method="GET"))
    assert status == 404
    assert "with Ray's own" in error["message"]


@pytest.mark.parametrize("name", [b"x" * 129, b"\xff"])
def test_odd_names_of_requests_are_replaced(name: bytes) -> None:
    replicas = Replicas(Parts([start(), part("a", more=False)]))
    ask(replicas, headers=[(b"x-request-id", name)])
    assert replicas.calls[0][0][REQUEST_ID].startswith("req_")


def test_a_client_that_leaves_cancels_its_answer() -> None:
    from constrain.ray.endpoint.front import Front

    class Endless(Parts):
        async def __aiter__(self) -> AsyncIterator[list[Message]]:
            yield [start()]
            await asyncio.Event().wait()

    parts = Endless([])
    front = Front(Replicas(parts), Settings())  # type: ignore[arg-type]

    async def leave() -> None:
        sent = asyncio.Event()

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Message) -> None:
            sent.set()

        scope = {"type": "http", "method": "GET", "path": "/health", "headers": [], "query_string": b""}
        asked = asyncio.create_task(front(scope, receive, send))
        await sent.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(leave())
    assert parts.is_cancelled
