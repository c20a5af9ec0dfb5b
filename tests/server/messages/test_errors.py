"""Errors of messages have Anthropic's form, whatever they are of, and others keep OpenAI's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from constrain.server.http.errors import ApiError, failure, timed_out, too_busy, unavailable
from constrain.server.messages.errors import error_object
from tests.support.server import asking
from tests.support.server.asking import ask
from tests.support.server.asking import idle as application
from tests.support.server.messages import COUNT, PATH, VERSION, body, error_of, post

if TYPE_CHECKING:
    import httpx


PATHS = (PATH, COUNT)
UNKNOWN = "/v1/messages/batches"


def kind(response: httpx.Response) -> tuple[int, str]:
    error = error_of(response)
    return error["status"], error["type"]


@pytest.mark.parametrize("path", PATHS)
def test_wrong_requests(path: str) -> None:
    served = application(max_body_bytes=2000)
    assert kind(post(served, path, messages=[])) == (400, "invalid_request_error")
    assert kind(post(served, path, model="other")) == (404, "not_found_error")
    assert kind(ask(served, "GET", path)) == (405, "invalid_request_error")
    assert kind(post(served, path, system="a" * 2001)) == (413, "request_too_large")
    assert kind(ask(served, "POST", path, content=b"{}", headers={"Content-Type": "text/plain"})) == (
        415,
        "invalid_request_error",
    )
    assert kind(ask(served, "POST", path, content=b"{", headers=asking.JSON)) == (400, "invalid_request_error")


def test_paths_that_are_not_there() -> None:
    assert kind(ask(application(), "POST", UNKNOWN, json={})) == (404, "not_found_error")
    assert "error" in ask(application(), "POST", "/v1/complete", json={}).json()


@pytest.mark.parametrize("path", [*PATHS, UNKNOWN])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"x-api-key": "wrong"}, 401),
        ({"x-api-key": "secret"}, 404),
        ({"X-Api-Key": " secret "}, 404),
        ({"Authorization": "Bearer secret"}, 404),
        ({"Authorization": "Bearer of-another-service", "x-api-key": "secret"}, 404),
        ({"Authorization": "Bearer secret", "x-api-key": "wrong"}, 401),
        ({"Authorization": "Bearer ", "x-api-key": "secret"}, 404),
        ({"Authorization": "Basic wrong", "x-api-key": "secret"}, 404),
    ],
)
def test_a_key_comes_in_either_header(path: str, headers: dict[str, str], status: int) -> None:
    response = ask(application(api_keys=("secret",)), "POST", path, json=body(model="other"), headers=headers)
    assert kind(response) == (status, "authentication_error" if status == 401 else "not_found_error")


def test_pages_that_may_ask_can_read_the_id() -> None:
    headers = {"Origin": "https://page.example", **VERSION}
    response = ask(application(cors_origins=("*",)), "GET", "/v1/models", headers=headers)
    assert "request-id" in response.headers["access-control-expose-headers"].split(", ")


@pytest.mark.parametrize("path", PATHS)
def test_a_full_queue(path: str) -> None:
    served = application(max_queue=0)
    with served.generator.admit(1):
        response = post(served, path)
    assert kind(response) == (429, "rate_limit_error")
    assert int(response.headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (failure(), "api_error"),
        (unavailable("Gone."), "overloaded_error"),
        (timed_out(), "overloaded_error"),
        (too_busy("full", 1), "rate_limit_error"),
        (ApiError("Slow.", status=408), "invalid_request_error"),
    ],
)
def test_every_error_has_one_of_anthropics_types(error: ApiError, expected: str) -> None:
    assert error_object(error) == {
        "type": "error",
        "error": {"type": expected, "message": error.message},
        "request_id": None,
    }


def test_the_place_is_in_the_message() -> None:
    assert error_object(ApiError("It is wrong.", param="tools"))["error"]["message"] == "tools: It is wrong."
    assert error_object(ApiError("'tools' is wrong.", param="tools"))["error"]["message"] == "'tools' is wrong."


def test_clients_are_told_to_send_the_whole_conversation() -> None:
    response = post(application(), thread={"type": "create"})
    assert response.status_code == 400
    assert response.json()["error"]["details"] == {"error_code": "thread_unsupported_request"}


def test_other_paths_keep_openais_form() -> None:
    response = ask(application(), "POST", asking.CHAT, json={}, headers=VERSION)
    assert asking.error_of(response)["code"] == "missing_required_parameter"
    assert "request-id" not in response.headers
