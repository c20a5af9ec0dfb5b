"""Errors and the list of models have Anthropic's form for its clients, and OpenAI's for others."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from constrain.server.app import Application
from constrain.server.http.errors import ApiError, failure, timed_out, too_busy, unavailable
from constrain.server.messages.errors import error_object
from tests.support import each_row, for_each
from tests.support.server import asking
from tests.support.server.asking import ask, idle
from tests.support.server.asking import idle as application
from tests.support.server.messages import COUNT, PATH, VERSION, body, error_of, post

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


@for_each("path", [*PATHS, UNKNOWN])
@for_each(
    "headers, status",
    ({}, 401),
    ({"x-api-key": "wrong"}, 401),
    ({"x-api-key": "secret"}, 404),
    ({"X-Api-Key": " secret "}, 404),
    ({"Authorization": "Bearer secret"}, 404),
    ({"Authorization": "Bearer of-another-service", "x-api-key": "secret"}, 404),
    ({"Authorization": "Bearer secret", "x-api-key": "wrong"}, 401),
    ({"Authorization": "Bearer ", "x-api-key": "secret"}, 404),
    ({"Authorization": "Basic wrong", "x-api-key": "secret"}, 404),
)
def test_a_key_comes_in_either_header(path: str, headers: dict[str, str], status: int) -> None:
    response = ask(application(api_keys=("secret",)), "POST", path, json=body(model="other"), headers=headers)
    assert kind(response) == (status, "authentication_error" if status == 401 else "not_found_error")


def test_pages_that_may_ask_can_read_the_id() -> None:
    headers = {"Origin": "https://page.example", **VERSION}
    response = ask(application(cors_origin=("*",)), "GET", "/v1/models", headers=headers)
    assert "request-id" in response.headers["access-control-expose-headers"].split(", ")


@pytest.mark.parametrize("path", PATHS)
def test_a_full_queue(path: str) -> None:
    served = application(queue=0)
    with served.generator.admit(1):
        response = post(served, path)
    assert kind(response) == (429, "rate_limit_error")
    assert int(response.headers["retry-after"]) >= 1


@for_each(
    "error, expected",
    (failure(), "api_error"),
    (unavailable("Gone."), "overloaded_error"),
    (timed_out(), "overloaded_error"),
    (too_busy("full", 1), "rate_limit_error"),
    (ApiError("Slow.", status=408), "invalid_request_error"),
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


# The list of models.


@pytest.fixture(scope="module")
def served() -> Application:
    return idle("a", "b", "c", "folder/d")


def page(served: Application, query: str) -> dict[str, Any]:
    response = ask(served, "GET", f"/v1/models{query}", headers=VERSION)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    assert set(found) == {"data", "has_more", "first_id", "last_id"}
    names = [model["id"] for model in found["data"]]
    assert (found["first_id"], found["last_id"]) == ((names[0], names[-1]) if names else (None, None))
    return found


def test_a_model_says_its_name_and_when_it_was_made(served: Application) -> None:
    assert ask(served, "GET", "/v1/models/folder/d", headers=VERSION).json() == {
        "type": "model",
        "id": "folder/d",
        "display_name": "folder/d",
        "created_at": "2023-11-14T22:13:20Z",
        "lifecycle": "active",
    }


@each_row(
    "query, names, has_more",
    ("", "a b c folder/d", False),
    ("?limit=2", "a b", True),
    ("?limit=2&after_id=b", "c folder/d", False),
    ("?limit=1&after_id=b", "c", True),
    ("?after_id=folder/d", "", False),
    ("?limit=2&before_id=folder/d", "b c", True),
    ("?before_id=b", "a", False),
    ("?limit=1000", "a b c folder/d", False),
)
def test_the_list_has_pages(served: Application, query: str, names: str, has_more: bool) -> None:
    found = page(served, query)
    assert ([model["id"] for model in found["data"]], found["has_more"]) == (names.split(), has_more)


@each_row(
    "query, field",
    ("?limit=0", "limit"),
    ("?limit=1001", "limit"),
    ("?limit=all", "limit"),
    ("?limit=" + "9" * 5000, "limit"),
    ("?after_id=e", "after_id"),
    ("?before_id=e", "before_id"),
    ("?before_id=b&after_id=a", "before_id"),
)
def test_pages_that_are_not_there_are_refused(served: Application, query: str, field: str) -> None:
    error = error_of(ask(served, "GET", f"/v1/models{query}", headers=VERSION))
    assert (error["status"], error["type"]) == (400, "invalid_request_error")
    assert f"'{field}'" in error["message"]


def test_a_model_that_is_not_there(served: Application) -> None:
    error = error_of(ask(served, "GET", "/v1/models/e", headers=VERSION))
    assert (error["status"], error["type"]) == (404, "not_found_error")


def test_clients_of_openai_get_their_own_form(served: Application) -> None:
    assert ask(served, "GET", "/v1/models").json()["object"] == "list"
    assert ask(served, "GET", "/v1/models/a").json()["object"] == "model"
    assert asking.error_of(ask(served, "GET", "/v1/models/e"))["code"] == "model_not_found"
