"""What a server answers without its model: lists, keys, limits, and errors in one shape."""

from __future__ import annotations

import asyncio
import codecs
import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from constrain.server.dialects import error_object_for
from constrain.server.http import protocol
from constrain.server.http.account import Account
from constrain.server.http.auth import read_key, read_keys
from constrain.server.http.listening import listen
from constrain.server.http.protocol import Protocol
from tests.support import each_row, for_each
from tests.support.server.asking import CHAT, JSON, ask, error_of
from tests.support.server.asking import idle as application
from tests.support.server.response_answers import completion


def test_models_are_listed() -> None:
    served = application("small", "group/other")
    response = ask(served, "GET", "/v1/models")
    assert response.json() == {
        "object": "list",
        "data": [
            {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "constrain"}
            for name in ("small", "group/other")
        ],
    }
    assert ask(served, "GET", "/v1/models/group/other").json()["id"] == "group/other"
    unknown = ask(served, "GET", "/v1/models/large")
    assert (unknown.status_code, error_of(unknown)["code"]) == (404, "model_not_found")


def test_an_unknown_model_is_not_asked() -> None:
    response = ask(application(), "POST", CHAT, json={"model": "large", "messages": []})
    error = error_of(response)
    assert (response.status_code, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert "'small'" in error["message"]


@for_each(
    "method, path, status",
    ("GET", "/v1/nothing", 404),
    ("POST", f"{CHAT}/", 404),
    ("GET", "/health/", 404),
    ("GET", CHAT, 405),
    ("POST", "/v1/models", 405),
)
def test_unknown_paths_and_methods_are_errors_in_the_same_shape(method: str, path: str, status: int) -> None:
    response = ask(application(), method, path)
    assert response.status_code == status
    error = error_of(response)
    assert error["type"] == "invalid_request_error"
    assert (status == 405) == (f"Use {response.headers.get('allow')}." in error["message"])


@for_each(
    "method, path, same",
    ("GET", "/models", "/v1/models"),
    ("POST", "/chat/completions", "/v1/chat/completions"),
    ("POST", "/responses", "/v1/responses"),
    ("GET", "/responses/resp_1", "/v1/responses/resp_1"),
    ("POST", "/messages/count_tokens", "/v1/messages/count_tokens"),
    ("GET", "/v1/health", "/health"),
)
def test_a_path_may_lack_its_version(method: str, path: str, same: str) -> None:
    asked = application()
    body = {"json": {"model": "small"}} if method == "POST" else {}
    found, expected = (ask(asked, method, each, **body) for each in (path, same))
    assert (found.status_code, {**found.json(), "request_id": ""}) == (
        expected.status_code,
        {**expected.json(), "request_id": ""},
    )


def test_a_path_without_its_version_needs_a_key_too() -> None:
    asked = application(api_keys=("secret",))
    found = [ask(asked, "GET", path).status_code for path in ("/models", "/props", "/v1/health", "/health")]
    assert found == [401, 401, 200, 200]


@for_each(
    "path, meant",
    ("/v1/v1/chat/completions", "/v1/chat/completions"),
    ("/openai/v1/chat/completions", "/v1/chat/completions"),
    ("/v1/chat/completions/", "/v1/chat/completions"),
    ("/v1/completion", "/v1/completions"),
    ("/v1/api/chat", "/api/chat"),
    ("/tokenise", "/tokenize"),
    ("/a", None),
    ("/v1/files", None),  # /v1/models is near, but is only read
    ("/v1/" + "a" * 5000, None),
)
def test_an_unknown_path_is_told_what_it_may_mean(path: str, meant: str | None) -> None:
    message = error_of(ask(application(), "POST", path))["message"]
    assert message == f"Unknown request URL: POST {path}{'' if meant is None else f' (did you mean {meant}?)'}."


@for_each(
    "body, says",
    (b"", "could not parse"),
    (b"{", "could not parse"),
    (b"\xff{}", "no UTF-8"),
    (b'{"a": NaN}', "NaN"),
    (b'{"a": "\\ud800"}', "surrogate"),
    (b"[" * 200_000, "nested more than 220 levels deep"),
    (b'{"a": ' + b"9" * 5000 + b"}", "could not parse"),
    (b"[]", "must be an object, not an array"),
)
def test_a_body_that_is_no_json_object_is_refused(body: bytes, says: str) -> None:
    response = ask(application(), "POST", CHAT, content=body, headers=JSON)
    assert response.status_code == 400
    assert says in error_of(response)["message"]


def test_a_byte_order_mark_in_front_of_a_body_is_ignored() -> None:
    body = codecs.BOM_UTF8 + b'{"model": "none"}'
    assert error_of(ask(application(), "POST", CHAT, content=body, headers=JSON))["code"] == "model_not_found"


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_above_the_limit_is_refused(declared: bool) -> None:
    async def pieces() -> Any:
        for _ in range(100):
            yield b" " * 100

    content: Any = b" " * 10_000 if declared else pieces()
    response = ask(application(max_body_bytes=5_000), "POST", CHAT, content=content, headers=JSON)
    assert response.status_code == 413
    assert error_of(response)["code"] == "request_too_large"


def test_a_sender_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.server.requests.body._PATIENCE", 0.05)

    async def pieces() -> Any:
        yield b"{"
        await asyncio.Event().wait()

    # The client cannot be used: it reads its whole body first.
    sent: list[Any] = []
    iterator = pieces()

    async def receive() -> Any:
        return {"type": "http.request", "body": await anext(iterator), "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    kind = (b"content-type", b"application/json")
    scope = {"type": "http", "method": "POST", "path": CHAT, "headers": [kind], "query_string": b""}
    asyncio.run(application()(scope, receive, send))
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["error"]["code"] == "request_timeout"


def test_every_response_has_an_id_of_its_own() -> None:
    served = application(api_keys=("secret",))
    assert ask(served, "GET", "/health").json() == {"status": "ok"}  # which needs no key
    ids = [ask(served, "GET", path).headers["x-request-id"] for path in ("/health", "/health", "/v1/models", "/x")]
    assert len(set(ids)) == 4


@for_each(
    "headers, status",
    ({}, 401),
    ({"Authorization": "Bearer wrong"}, 401),
    ({"Authorization": "Basic first"}, 401),
    ({"Authorization": "Bearer first"}, 200),
    ({"Authorization": "bearer second"}, 200),
)
def test_a_server_with_keys_asks_for_one(headers: dict[str, str], status: int) -> None:
    response = ask(application(api_keys=("first", "second")), "GET", "/v1/models", headers=headers)
    assert response.status_code == status
    if status == 401:
        assert error_of(response)["code"] == "invalid_api_key"


PAGE = {"Origin": "https://page.example"}


def test_a_browser_may_ask_for_pages_that_are_allowed() -> None:
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "Authorization, x-stainless-os, User-Agent, idempotency-key,, a b",
    }
    response = ask(
        application(cors_origin=("https://page.example",), api_keys=("k",)), "OPTIONS", CHAT, headers=PAGE | asked
    )
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["access-control-allow-origin"] == "https://page.example"
    assert (
        response.headers["access-control-allow-headers"] == "authorization, x-stainless-os, user-agent, idempotency-key"
    )
    assert "access-control-allow-private-network" not in response.headers


def test_a_page_of_a_public_site_that_is_allowed_may_ask_a_server_of_this_machine() -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Private-Network": "true"}
    served = application(cors_origin=("https://page.example",))
    found = [
        ask(served, "OPTIONS", CHAT, headers={"Origin": f"https://{site}.example"} | asked) for site in ("page", "x")
    ]
    assert [one.headers.get("access-control-allow-private-network") for one in found] == ["true", None]


def test_the_log_says_why_a_page_may_not_ask(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "constrain"):
        ask(application(), "OPTIONS", CHAT, headers=PAGE | {"Access-Control-Request-Method": "POST"})
        ask(application(), "OPTIONS", CHAT)  # of a program
    told, untold = caplog.messages
    assert "204" in told
    assert "'https://page.example'" in told
    assert "--cors-origin" in told
    assert "because" not in untold


def test_requests_are_counted_by_path_and_status() -> None:
    served = application()
    for path in ("/v1/models", "/v1/models", "/v1/models/small", "/v1/nothing", "/v1/else"):
        ask(served, "GET", path)
    metrics = ask(served, "GET", "/metrics").text
    assert 'constrain_requests_total{path="/v1/models",status="200"} 2.0' in metrics
    assert 'constrain_requests_total{path="/v1/models/{name}",status="200"} 1.0' in metrics
    assert 'constrain_requests_total{path="other",status="404"} 2.0' in metrics


def test_tokens_of_answers_are_counted_by_kind(account: Account) -> None:
    served = application()
    served.metrics.add(completion("a", "a"))
    metrics = ask(served, "GET", "/metrics").text
    for kind, tokens in (("prompt", 15), ("cached_prompt", 5), ("completion", 7)):
        assert f'constrain_tokens_total{{kind="{kind}"}} {tokens}.0' in metrics
    assert account.completion_tokens == 7


def test_a_full_queue_says_when_to_come_again() -> None:
    served = application(queue=0)
    with served.generator.admit(1):
        response = ask(served, "POST", CHAT, json={"model": "small", "messages": []})
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) >= 1
    assert error_of(response)["code"] == "rate_limit_exceeded"
    assert ask(served, "POST", CHAT, json={"model": "small", "messages": []}).status_code == 400


def test_more_answers_than_there_are_places_are_never_possible() -> None:
    body = {"model": "small", "messages": [{"role": "user", "content": "a"}], "n": 4}
    response = ask(application(queue=2), "POST", CHAT, json=body)
    error = error_of(response)
    assert (response.status_code, error["param"], error["code"]) == (400, "n", "integer_above_max_value")


def test_a_server_that_stops_refuses_what_is_new() -> None:
    served = application()
    served.generator.end_by(1)
    assert ask(served, "POST", CHAT, json={"model": "small", "messages": []}).status_code == 503
    response = ask(served, "GET", "/health")
    assert (response.status_code, error_of(response)["code"]) == (503, "service_unavailable")


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize(
    "text",
    ["# schlüssel\nfirst\n\n  second  \n", "first\n  # ours\nsecond", "first\r\n\r\nsecond\r\n", "first\nsecond"],
)
def test_keys_are_read_from_a_file_one_a_line(tmp_path: Path, mark: bytes, text: str) -> None:
    path = tmp_path / "keys"
    path.write_bytes(mark + text.encode())
    assert read_keys(path) == ("first", "second")


@each_row(
    "content, says",
    ("first\nschlüssel".encode(), r"line 2 of .*keys is not a valid API key: use printable ASCII"),
    (b"first\n" + codecs.BOM_UTF8 + b"second", "line 2 of .*keys is not a valid API key"),
    (b"first\nsec\0ond", "line 2 of .*keys is not a valid API key"),
    ("first".encode("utf-16"), "keys is not UTF-8"),
)
def test_a_key_that_no_client_can_send_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "keys"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=says) as error:
        read_keys(path)
    assert "second" not in str(error.value)


def test_the_key_of_a_variable_is_read_as_those_of_a_file() -> None:
    assert [read_key(text, "it") for text in ("", "  ", "\ufeff first \r\n")] == ["", "", "first"]
    with pytest.raises(ValueError, match="it is not a valid API key"):
        read_key("schlüssel", "it")


def test_a_file_without_keys_does_not_open_a_server(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# none\n")
    with pytest.raises(ValueError, match="has no API key"):
        read_keys(path)


if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Scope, Send

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"


class Transport(asyncio.Transport):
    """A connection that keeps what is sent, and says how it ended."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.sent = b""
        self.end = ""

    def write(self, data: Any) -> None:
        self.sent += data

    def write_eof(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return bool(self.end)

    def close(self) -> None:
        self.end = self.end or "close"

    def abort(self) -> None:
        self.end = "abort"


async def read_on(_: Scope, receive: Receive, __: Send) -> None:
    """An application that waits for the rest of a body, and answers nothing."""
    while (await receive())["type"] != "http.disconnect":
        pass


def run(scenario: Callable[[Callable[[bytes], Transport], set[Any]], None], *, room: int = 0) -> None:
    """Runs a scenario with a function that opens a connection and sends bytes, and the open connections."""

    async def ran() -> None:
        state = ServerState()
        config = uvicorn.Config(read_on, lifespan="off", log_config=None)
        config.load()
        made: list[Protocol] = []

        def connect(data: bytes) -> Transport:
            one = Protocol(config, state, {}, asyncio.get_running_loop(), find_form=error_object_for, room=room)
            made.append(one)
            transport = Transport()
            one.connection_made(transport)
            if data and not transport.end:
                one.data_received(data)
            return transport

        try:
            scenario(connect, state.connections)
        finally:
            for each in made:
                each.connection_lost(None)
            await asyncio.gather(*state.tasks)

    asyncio.run(ran())


@pytest.fixture(autouse=True)
def _three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS", 3)


def test_a_connection_too_many_is_refused_where_none_is_idle() -> None:
    def scenario(connect: Callable[[bytes], Transport], connections: set[Any]) -> None:
        busy = [connect(HEAD) for _ in range(3)]
        refused = [connect(HEAD) for _ in range(5)]
        assert {one.end for one in busy} == {""}
        assert {one.end for one in refused} == {"close"}
        assert len(connections) == 3
        head, _, body = refused[0].sent.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 5" in head.lower()
        assert json.loads(body)["error"]["code"] == "service_unavailable"

    run(scenario)


def test_idle_connections_make_room_each_for_one() -> None:
    def scenario(connect: Callable[[bytes], Transport], connections: set[Any]) -> None:
        busy, idle = connect(HEAD), [connect(data) for data in (b"", HEAD[:9])]
        others = [connect(HEAD) for _ in range(3)]  # before the loop hears of any end
        assert [one.end for one in (busy, *idle)] == ["", "abort", "abort"]
        assert [one.end for one in others] == ["", "", "close"]
        assert len(connections) == 3

    run(scenario)


def test_answers_that_wait_have_connections() -> None:
    def scenario(connect: Callable[[bytes], Transport], connections: set[Any]) -> None:
        made = [connect(HEAD) for _ in range(11)]
        assert [one.end for one in made] == [""] * 10 + ["close"]
        assert len(connections) == 10

    run(scenario, room=5)


def test_connections_send_small_pieces_without_delay() -> None:
    async def accepted_has_no_delay() -> bool:
        connected: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            connected.set_result(bool(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            writer.close()

        (listening,) = listen("127.0.0.1", 0)
        server = await asyncio.start_server(on_connection, sock=listening)
        async with server:
            _, writer = await asyncio.open_connection(*listening.getsockname())
            found = await connected
            writer.close()
            await writer.wait_closed()
        return found

    assert asyncio.run(accepted_has_no_delay())
