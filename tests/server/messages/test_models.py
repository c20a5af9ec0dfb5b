"""The models in Anthropic's form, for clients that send its header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.server import asking
from tests.support.server.asking import ask, idle
from tests.support.server.messages import VERSION, error_of

if TYPE_CHECKING:
    from constrain.server.app import Application


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


@pytest.mark.parametrize(
    ("query", "names", "has_more"),
    [
        ("", "a b c folder/d", False),
        ("?limit=2", "a b", True),
        ("?limit=2&after_id=b", "c folder/d", False),
        ("?limit=1&after_id=b", "c", True),
        ("?after_id=folder/d", "", False),
        ("?limit=2&before_id=folder/d", "b c", True),
        ("?before_id=b", "a", False),
        ("?limit=1000", "a b c folder/d", False),
    ],
)
def test_the_list_has_pages(served: Application, query: str, names: str, has_more: bool) -> None:
    found = page(served, query)
    assert ([model["id"] for model in found["data"]], found["has_more"]) == (names.split(), has_more)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?limit=0", "limit"),
        ("?limit=1001", "limit"),
        ("?limit=-1", "limit"),
        ("?limit=all", "limit"),
        ("?limit=" + "9" * 5000, "limit"),
        ("?after_id=e", "after_id"),
        ("?before_id=e", "before_id"),
        ("?before_id=b&after_id=a", "before_id"),
    ],
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
