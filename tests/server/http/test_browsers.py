"""What a browser sends for a page of another site is refused, and programs notice nothing of that."""

from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest

from constrain.server.http.cors import origin_of
from constrain.server.http.hosts import Hosts, host_of, hosts_for
from tests.support import each_row, for_each
from tests.support.server.asking import CHAT, JSON, SECONDS, ask, error_of, idle, serving

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

ORIGIN = "https://my.example"

application = idle


def named(host: str | None, **settings: Any) -> httpx.Response:
    """What is answered to a request that calls the server by a name."""
    headers = {} if host is None else {"Host": host}
    return ask(application(**settings), "GET", "/v1/models", headers=headers)


def status_for(hosts: Hosts, host: str) -> int:
    return named(host, hosts=hosts).status_code


STRANGERS = ["evil.example", "evil.example:8080", "EVIL.example.", "localhost.evil.example"]
STRANGERS += ["127.0.0.1.evil.example:8080", "127.0.0.1@evil.example", "evil.example#localhost"]
STRANGERS += ["localhost, evil.example", "localhost evil.example", "localhost:8080:8080", "localhost:http"]
STRANGERS += ["evil.example/localhost", "[evil.example]", "[::1", "[::1]evil.example", "127.0.0.1..", ""]
STRANGERS += ["internal", "box", "evil-internal", "host.docker.internal.evil.example"]
STRANGERS += ["host.docker.internal@evil.example", "a.xlocal", "10.0.0.1", "0.0.0.0", "[fe80::1]"]
OWN = ["localhost", "localhost:8080", "LocalHost:1", "localhost.", "127.0.0.1:8080", "127.1.2.3", "[::1]", "[::1]:8080"]
OWN += ["[0:0:0:0:0:0:0:1]:80", "[::ffff:127.0.0.1]:8080", "localhost:"]
OWN += ["host.docker.internal:8080", "host.containers.internal", "box.local.", "App.LocalHost:3000", "nas.home.arpa"]


@for_each("host", STRANGERS)
def test_a_server_of_this_machine_answers_to_no_other_name(host: str) -> None:
    response = named(host)
    error = error_of(response)
    assert (response.status_code, error["code"]) == (403, "host_not_allowed")
    assert "--allowed-host" in error["message"]


@for_each("host", OWN)
def test_a_server_of_this_machine_answers_to_its_names(host: str) -> None:
    assert named(host).status_code == 200


@for_each("path", ["/health", "/metrics", "/openapi.json", "/v1/nothing", CHAT])
@for_each("method", ["GET", "POST", "OPTIONS"])
def test_another_name_leads_nowhere(method: str, path: str) -> None:
    response = ask(application(cors_origin=("*",)), method, path, headers={"Host": "evil.example"})
    assert error_of(response)["code"] == "host_not_allowed"


def test_more_names_can_be_allowed() -> None:
    hosts = hosts_for("127.0.0.1", ["127.0.0.1"], ["LLM.example.", "2001:db8::1"], has_keys=False)
    found = {host: status_for(hosts, host) for host in ("llm.example:443", "[2001:db8:0::1]", "x.llm.example", "llm")}
    assert found == {"llm.example:443": 200, "[2001:db8:0::1]": 200, "x.llm.example": 403, "llm": 403}
    every = hosts_for("127.0.0.1", ["127.0.0.1"], ["*"], has_keys=False)
    assert {status_for(every, host) for host in STRANGERS} == {200}


def test_the_name_that_a_server_listens_on_is_its_own() -> None:
    hosts = hosts_for("My.Example", ["127.0.1.1", "::1"], [], has_keys=True)
    assert [status_for(hosts, host) for host in ("my.example:80", "evil.example", "192.168.1.5")] == [200, 403, 403]


@pytest.mark.parametrize("machine", ["Box", "box.corp.example"])
def test_a_server_of_this_machine_answers_to_the_machines_name(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: machine)
    hosts = hosts_for("127.0.0.1", ["127.0.0.1"], [], has_keys=False)
    found = [status_for(hosts, host) for host in ("box:8080", machine, "box2", "box.evil.example")]
    assert found == [200, 200, 403, 403]


def test_a_server_of_a_network_answers_to_names_that_are_no_sites() -> None:
    hosts = hosts_for("0.0.0.0", ["0.0.0.0", "::", "fe80::1%eth0"], ["llm.example"], has_keys=False)
    ours = ["localhost:8080", "192.168.1.5:8080", "[2001:db8::1]", "llm", "llm.local", "a.b.internal:80", "llm.example"]
    assert {status_for(hosts, host) for host in [*ours, socket.gethostname()]} == {200}
    strangers = ["evil.example", "192.168.1.5.evil.example", "local.evil.example", "a.xlocal"]
    assert {status_for(hosts, host) for host in strangers} == {403}
    with_keys = hosts_for("192.168.1.5", ["192.168.1.5"], [], has_keys=True)
    assert status_for(with_keys, "llm.example") == 200


@for_each("text", ["https://a.example", "a.example/", "a.example:80", "*.a.example", "", "a b", "[a]", "*"])
def test_what_is_no_host(text: str) -> None:
    assert host_of(text) is None


def status_lines(url: str, request: bytes) -> list[bytes]:
    """The first lines of all answers on one connection."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=SECONDS) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    return [line for line in received.split(b"\r\n") if line.startswith(b"HTTP/")]


@pytest.mark.slow
@each_row(
    "request_, status",
    (b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
    (b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
    (b"GET /v1/models HTTP/1.1\r\n\r\n", 400),
    (b"GET /v1/models HTTP/1.0\r\n\r\n", 200),  # as probes of load balancers ask
    (b"GET /v1/models HTTP/1.0\r\nHost: evil.example\r\n\r\n", 403),
    (b"GET http://evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    (b"GET http://localhost/v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
)
def test_a_name_cannot_be_hidden(request_: bytes, status: int) -> None:
    with serving(application()) as url:
        [line] = status_lines(url, request_)
    assert line.split()[1] == b"%d" % status


FOREIGN = "https://evil.example"


@for_each("method", ["GET", "HEAD", "POST", "DELETE"])
@for_each(
    "origin",
    *(FOREIGN, "null", "http://localhost:3000", "https://localhost:8080.evil.example"),
    *("http://evil.example@localhost:8080", "chrome-extension://localhost:8080", "localhost:8080", ""),
)
def test_pages_of_other_origins_may_not_ask(method: str, origin: str) -> None:
    headers = {"Host": "localhost:8080", "Origin": origin, **JSON}
    response = ask(application(cors_origin=("https://page.example",)), method, "/v1/models", headers=headers)
    assert response.status_code == 403
    assert not any(name.startswith("access-control") for name in response.headers)
    if method != "HEAD":
        error = error_of(response)
        assert error["code"] == "origin_not_allowed"
        assert "--cors-origin" in error["message"]


def test_one_origin_cannot_hide_another() -> None:
    origins = [("Host", "localhost"), ("Origin", "http://localhost"), ("Origin", FOREIGN)]
    assert ask(application(), "GET", "/v1/models", headers=origins).status_code == 403


@for_each(
    "host, origin",
    [
        ("localhost:8080", "http://localhost:8080"),
        ("127.0.0.1", "http://127.0.0.1"),
        ("LOCALHOST:80", "http://localhost"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("localhost", "https://localhost"),  # a proxy that speaks TLS in front
    ],
)
def test_pages_of_the_server_itself_may_ask(host: str, origin: str) -> None:
    headers = {"Host": host, "Origin": origin, "Sec-Fetch-Site": "same-origin"}
    for given in (headers, {name: headers[name] for name in ("Host", "Origin")}):
        assert ask(application(), "GET", "/v1/models", headers=given).status_code == 200


def test_a_proxy_may_call_the_server_by_another_name_than_its_pages_do() -> None:
    headers = {"Host": "127.0.0.1:8080", "Origin": "https://llm.example", "Sec-Fetch-Site": "same-origin"}
    assert ask(application(), "GET", "/v1/models", headers=headers).status_code == 200


@for_each("allowed", ["https://page.example", "null", "chrome-extension://abc", "*"])
def test_pages_of_allowed_origins_may_ask(allowed: str) -> None:
    origin = "https://any.example" if allowed == "*" else allowed
    headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    response = ask(application(cors_origin=(allowed,)), "GET", "/v1/models", headers=headers)
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, allowed)


PATTERNS = [
    (
        "vscode-webview://*",
        ["vscode-webview://1f2e-3d", "vscode-webview://a.b:1"],
        ["http://1f2e", "xvscode-webview://a"],
    ),
    ("app://*", ["app://obsidian.md", "app://"], ["app://a/b", "https://app", "app:"]),
    ("https://*.my.example", ["https://a.my.example", "https://a.b.my.example"], ["https://my.example"]),
    ("https://*.my.example", [], ["https://a.my.example:8443", "https://a.my.example.evil.example"]),
    ("https://*.my.example", [], ["https://evil.example/.my.example", "https://amy.example", "https://.my.example"]),
    ("https://a.my.example", [], ["https://aXmy.example", "https://b.a.my.example"]),
    ("https://*.my.example:*", ["https://a.my.example", "https://a.my.example:8443"], ["https://a.my.example:x"]),
    (
        "http://a.example:*",
        ["http://a.example", "http://a.example:3000"],
        ["https://a.example", "http://a.example.evil"],
    ),
    ("http://[::1]:*", ["http://[::1]:3000"], ["http://[::2]:3000", "http://:3000"]),
]


@for_each("pattern, allowed, foreign", PATTERNS)
def test_pages_of_origins_of_a_pattern_may_ask(pattern: str, allowed: list[str], foreign: list[str]) -> None:
    asked = application(cors_origin=(origin_of(pattern),))
    for origin in (*allowed, *foreign):
        headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
        response = ask(asked, "GET", "/v1/models", headers=headers)
        shared = response.headers.get("access-control-allow-origin")
        assert (response.status_code, shared) == ((200, origin) if origin in allowed else (403, None)), origin


@for_each("site", ["cross-site", "same-site"])
@for_each(
    "method, mode, target, status",
    [
        ("GET", "no-cors", "script", 403),
        ("GET", "no-cors", "image", 403),
        ("GET", "navigate", "iframe", 403),
        ("POST", "navigate", "document", 403),
        ("GET", "navigate", "document", 200),  # a link is followed
    ],
)
def test_pages_that_do_not_say_their_origin_may_not_ask(
    site: str, method: str, mode: str, target: str, status: int
) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": target}
    assert ask(application(), method, "/v1/models", headers=headers).status_code == status


@pytest.mark.parametrize("site", [None, "none", "same-origin"])
def test_programs_and_addresses_that_are_typed_in_may_ask(site: str | None) -> None:
    headers = {} if site is None else {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
    assert ask(application(), "GET", "/v1/models", headers=headers).status_code == 200


@for_each(
    "text, found",
    ("https://My.Example", "https://my.example"),
    ("https://my.example/", "https://my.example"),
    ("https://my.example:443", "https://my.example"),
    ("http://my.example:80", "http://my.example"),
    ("http://my.example:443", "http://my.example:443"),
    ("http://[::1]:80", "http://[::1]"),
    ("tauri://localhost", "tauri://localhost"),
    ("VSCode-Webview://*", "vscode-webview://*"),
    ("https://*.My.Example:443/", "https://*.my.example"),
    ("http://localhost:*", "http://localhost:*"),
    ("*", "*"),
    ("null", "null"),
)
def test_an_origin_is_written_as_browsers_write_it(text: str, found: str) -> None:
    assert origin_of(text) == found


NO_ORIGINS = ["my.example", "https://my.example/a", "https://", "", "None", "*://my.example", "https://a.*"]
NO_ORIGINS += ["*.my.example"]
NO_ORIGINS += [
    *("https://a*.my.example", "https://*my.example", "https://a.*.example", "https://my.example:8*", "app://**")
]


@for_each("text", NO_ORIGINS)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="an origin is a scheme, a host and optionally a port"):
        origin_of(text)


UNNAMED = (None, "application/octet-stream")


@for_each("keys", [(), ("secret",)])
@for_each("path", [CHAT, "/v1/responses", "/v1/completions", "/v1/embeddings"])
@for_each(
    "kind",
    *(*UNNAMED, "text/plain", "text/plain;charset=UTF-8", "text/plain; application/json"),
    *("application/x-www-form-urlencoded", "multipart/form-data; boundary=application/json", "application/jsonp"),
    "application/json, text/plain",
)
def test_a_body_that_a_browser_sends_unasked_is_refused(kind: str | None, path: str, keys: tuple[str, ...]) -> None:
    named = {"User-Agent": BROWSER} if kind in UNNAMED else {}
    named |= {} if kind is None else {"Content-Type": kind}
    headers = {"Authorization": "Bearer secret", **named}
    response = ask(application(api_keys=keys), "POST", path, content=b'{"model": "none"}', headers=headers)
    error = error_of(response)
    assert (response.status_code, error["code"]) == (415, "unsupported_media_type")
    assert "Content-Type: application/json" in error["message"]


@pytest.mark.parametrize("headers", [{"User-Agent": BROWSER}, {"Origin": ORIGIN}, {"Sec-Fetch-Site": "none"}])
def test_a_browser_always_names_the_type_of_a_body(headers: dict[str, str]) -> None:
    allowing = application(cors_origin=(ORIGIN,))
    assert ask(allowing, "POST", CHAT, content=b"{}", headers=headers).status_code == 415


@pytest.mark.parametrize("named", [{}, {"Content-Type": "application/octet-stream"}])
def test_a_program_need_not_name_the_type_of_a_body(named: dict[str, str]) -> None:
    headers = {"User-Agent": "litellm/1.81", **named}
    response = ask(application(), "POST", CHAT, content=b'{"model": "none"}', headers=headers)
    assert error_of(response)["code"] == "model_not_found"


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON ;a=b"])
def test_a_body_that_says_it_is_json_is_read(kind: str) -> None:
    response = ask(application(), "POST", CHAT, content=b'{"model": "none"}', headers={"Content-Type": kind})
    assert error_of(response)["code"] == "model_not_found"
