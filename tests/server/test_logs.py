"""What is logged, and that nothing of a request stands there as it is."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import pytest

from constrain.server.http.account import Account, current
from constrain.server.logs import JsonLines, TextLines, log_config
from tests.support.server.asking import ask
from tests.support.server.asking import idle as application

HOSTILE = "\x1b[31m\n2026-01-01 INFO forged\r\x00\u2028\u202e\x9b"


def record(message: str = "", *, error: Exception | None = None, **facts: Any) -> logging.LogRecord:
    info = (type(error), error, None) if error is not None else None
    made = logging.LogRecord("constrain.server", logging.INFO, __file__, 1, "%s", (message,), info)
    made.__dict__.update(facts)
    return made


def logged_of(caplog: pytest.LogCaptureFixture, response: httpx.Response) -> logging.LogRecord:
    """What is logged of a request; the server of an earlier test may still log a client that has just left."""
    requests: list[Any] = [one for one in caplog.records if one.name == "constrain.server.requests"]
    [logged] = [one for one in requests if one.request_id == response.headers["x-request-id"]]
    return logged


def test_every_request_is_logged_with_the_id_of_its_response(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "constrain.server"):
        response = ask(application(), "GET", "/v1/models")
    facts = json.loads(JsonLines().format(logged_of(caplog, response)))
    assert facts["event"] == "request"
    assert (facts["method"], facts["path"], facts["status"]) == ("GET", "/v1/models", 200)
    assert (facts["client"], facts["model"], facts["prompt_tokens"]) == ("127.0.0.1", None, 0)
    assert facts["seconds"] >= 0
    assert facts["request_id"] == response.headers["x-request-id"]


def test_the_reason_of_a_refusal_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "constrain.server"):
        refused = ask(application(), "POST", "/v1/chat/completions", json={"model": "small"})
        unknown = ask(application(), "GET", "/v1/nothing")
    for response in (refused, unknown):
        logged = logged_of(caplog, response)
        reason = json.loads(JsonLines().format(logged))["reason"]
        assert reason == response.json()["error"]["message"]
        assert f"because: {reason}" in logged.getMessage()


def test_an_id_is_logged_with_all_that_happens_meanwhile() -> None:
    handler = logging.StreamHandler()
    configured = log_config("json")
    filtering = configured["filters"]["request"]["()"]()
    handler.addFilter(filtering)
    made = record("something")
    token = current.set(Account(0.0, id="req_1"))
    try:
        assert handler.filter(made)
    finally:
        current.reset(token)
    assert json.loads(JsonLines().format(made))["request_id"] == "req_1"
    assert TextLines().format(made).endswith(" INFO    something (req_1)")


def test_keys_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for key in ("right-key", "wrong-key"):
            ask(
                application(api_keys=("right-key",)),
                "GET",
                "/v1/models?key=in-query",
                headers={"Authorization": f"Bearer {key}"},
            )
    ours = [one for one in caplog.records if one.name.startswith("constrain")]
    assert [one.__dict__["status"] for one in ours] == [200, 401]
    written = "\n".join(form.format(one) for one in ours for form in (TextLines(), JsonLines()))
    assert "right-key" not in written
    assert "wrong-key" not in written
    assert "in-query" not in written


@pytest.mark.parametrize("form", [TextLines(), JsonLines()])
def test_a_message_is_one_line_of_characters_that_print(form: logging.Formatter) -> None:
    written = form.format(record(f"before {HOSTILE} after", path=HOSTILE))
    assert written.isprintable()
    assert "before" in written
    assert "after" in written


def test_what_an_error_says_cannot_begin_a_line() -> None:
    written = TextLines().format(record("failed", error=ValueError(HOSTILE)))
    first, *others = written.splitlines()
    assert first.endswith("failed")
    assert any("forged" in line for line in others)
    for line in others:
        assert line.startswith("    ")
        assert line.isprintable()


def test_a_traceback_is_part_of_the_json_object() -> None:
    written = JsonLines().format(record("failed", error=ValueError(HOSTILE)))
    assert written.isprintable()
    assert HOSTILE in json.loads(written)["exc_info"]


def test_paths_that_clients_make_up_are_escaped(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "constrain.server"):
        response = ask(application(), "GET", "/v1/%1b%5b31m%0aINFO%20forged")
    logged = logged_of(caplog, response)
    assert r"GET /v1/\x1b[31m\nINFO forged 404" in TextLines().format(logged)
    assert json.loads(JsonLines().format(logged))["path"] == "/v1/\x1b[31m\nINFO forged"
