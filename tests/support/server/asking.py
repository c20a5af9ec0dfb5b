"""Ways to ask an application: without a socket, and over one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import httpx

import constrain
from constrain.server.app import Application
from constrain.server.http.listening import listen
from constrain.server.run import Server
from constrain.server.serving.models import Models, ModelSource
from constrain.server.settings import Settings

SECONDS = 240.0
"""Longer than anything here takes, on however slow a machine."""

CHAT = "/v1/chat/completions"

JSON = {"Content-Type": "application/json"}


def served_as(model: constrain.Model, *names: str) -> Models:
    return Models([ModelSource(names, 1_700_000_000, model.parallel, 0, lambda: model)])


class NoModel:
    """Stands where no model is asked."""

    parallel = 1


def idle(*names: str, **settings: Any) -> Application:
    """An application whose model, "small" unless it has other names, is asked nothing."""
    model: Any = NoModel()
    return Application(served_as(model, *(names or ("small",))), Settings(**settings))


def ask(application: Application, method: str, path: str, **options: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=SECONDS) as client:
            return await client.request(method, path, **options)

    return asyncio.run(send())


def chat(application: Application, **fields: Any) -> httpx.Response:
    body = {"model": "small", "messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, **fields}
    return ask(application, "POST", CHAT, json=body)


def error_of(response: httpx.Response) -> dict[str, Any]:
    """What an error says; it has OpenAI's shape, whatever it is."""
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["message"]
    return body["error"]


def chunks_of(response: httpx.Response) -> list[dict[str, Any]]:
    """The chunks of a stream, which ends as streams do."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    events = response.text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert all(event.startswith("data: ") for event in events[:-1])
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


@contextlib.contextmanager
def serving(application: Application, *, grace_seconds: float = 30.0) -> Iterator[str]:
    """A server in a thread; its URL."""
    started: Future[str] = Future()
    sockets = listen("127.0.0.1", 0)
    server = Server(application, sockets, grace_seconds=grace_seconds, on_start=started.set_result)
    thread = threading.Thread(target=server.serve_until_stopped)
    thread.start()
    try:
        yield started.result(SECONDS)
    finally:
        server.stop()
        thread.join(SECONDS)
        assert not thread.is_alive()
