"""Responses in databases: shared by servers, refused when the database is not there, and kept by none on request."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sql

from constrain.server.app import Application
from constrain.server.config import ServerConfig, read_config
from constrain.server.http.account import RESPONSE_ID
from constrain.server.http.errors import ApiError
from constrain.server.responses.opening import open_store
from constrain.server.responses.sql_store import SqlStore
from constrain.server.responses.store import StoredResponse
from constrain.server.settings import Settings
from constrain.server.startup import response_store
from tests.support.server.asking import ask, error_of, served_as

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import constrain


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/responses.db"
    found: str = request.getfixturevalue("postgresql")
    return found


@pytest.fixture
def stores(address: str) -> Iterator[list[SqlStore]]:
    """Four servers' views of one database, opened at the same moment."""
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(SqlStore, [address] * 4))
    yield opened
    for store in opened:
        store.close()


def stored(response_id: str, text: str = "hello\0 \u2028") -> StoredResponse:
    items = ({"type": "message", "content": text},)
    return StoredResponse({"id": response_id, "text": text.replace("\0", "")}, items, items, 9)


def test_what_one_server_keeps_the_others_read_and_remove(stores: list[SqlStore]) -> None:
    response = stored("resp_1", "hello \u2028 ☃")
    stores[0].write("me", response)
    assert all(store.read("me", "resp_1") == response for store in stores)
    assert stores[1].read("you", "resp_1") is None
    stores[2].remove("you", "resp_1")
    assert stores[2].read("me", "resp_1") is not None
    stores[3].remove("me", "resp_1")
    assert all(store.read("me", "resp_1") is None for store in stores)


def test_servers_write_at_the_same_time(stores: list[SqlStore]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: stores[number % 4].write("me", stored(f"resp_{number}", "x")), range(80)))
    assert all(stores[0].read("me", f"resp_{number}") is not None for number in range(80))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("here", "not an address of a database"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("nosuch://host/db", "no such kind of database"),
        ("postgresql+pg8000x://me:secret@host/db", "no such kind|not installed"),
        ("postgresql+psycopg://me:secret@127.0.0.1:1/db", "cannot be used"),
        ("sqlite:////no/such/folder/responses.db", "cannot be used"),
    ],
)
def test_a_database_that_is_not_there_is_told_at_the_start(place: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        open_store(place)
    assert "secret" not in str(caught.value)


def test_a_database_that_fails_is_status_503(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/responses.db"
    store = SqlStore(address)
    with sql.create_engine(address).begin() as connection:
        connection.execute(sql.text("DROP TABLE constrain_responses"))
    for fails in (lambda: store.read("me", "resp_1"), lambda: store.write("me", stored("resp_1"))):
        with pytest.raises(ApiError) as caught:
            fails()
        assert caught.value.status == 503
        assert '"store": false' in caught.value.message
    store.close()


def respond(application: Application, **fields: Any) -> Any:
    body = {"model": "small", "input": "Hi", "max_output_tokens": 4, **fields}
    return ask(application, "POST", "/v1/responses", json=body)


def test_a_server_may_keep_none(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings(response_store="none"))
    made = respond(application)
    assert (made.status_code, made.json()["store"]) == (200, False)
    assert respond(application, store=False).json()["store"] is False
    for refused in (respond(application, store=True), respond(application, previous_response_id="resp_1")):
        assert refused.status_code == 400
        assert "response_store" in error_of(refused)["message"]
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/input_items"), ("POST", "/cancel")):
        refused = ask(application, method, f"/v1/responses/resp_1{path}")
        assert (refused.status_code, error_of(refused)["code"]) == (400, "responses_not_kept")


def test_a_full_database_is_told_before_anything_is_generated(
    model: constrain.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"sqlite:///{tmp_path}/responses.db"
    application = Application(served_as(model, "small"), Settings(response_store=address))

    async def start(*_: object) -> None:
        raise AssertionError("an answer is generated")

    monkeypatch.setattr(application.generator, "start", start)
    with sql.create_engine(address).begin() as connection:
        fail = "SELECT RAISE(FAIL, 'database or disk is full')"
        connection.execute(sql.text(f"CREATE TRIGGER full BEFORE INSERT ON constrain_responses BEGIN {fail}; END"))
    for stream in (False, True):
        refused = respond(application, stream=stream)
        assert refused.status_code == 503
        assert '"store": false' in error_of(refused)["message"]
    with pytest.raises(AssertionError, match="is generated"):
        respond(application, store=False)
    application.close()


def test_a_response_in_a_database_is_continued_by_another_server(model: constrain.Model, tmp_path: Path) -> None:
    settings = Settings(response_store=f"sqlite:///{tmp_path}/responses.db")
    one, other = (Application(served_as(model, "small"), settings) for _ in range(2))
    made = respond(one).json()
    assert ask(other, "GET", f"/v1/responses/{made['id']}").json() == made
    more = respond(other, previous_response_id=made["id"]).json()
    assert more["usage"]["input_tokens"] > made["usage"]["input_tokens"]
    assert ask(one, "DELETE", f"/v1/responses/{made['id']}").json()["deleted"] is True
    assert ask(other, "GET", f"/v1/responses/{made['id']}").status_code == 404
    for application in (one, other):
        application.close()


def test_a_request_that_is_sent_again_stores_one_response(model: constrain.Model, tmp_path: Path) -> None:
    application = Application(served_as(model, "small"), Settings(response_store=f"sqlite:///{tmp_path}/responses.db"))

    async def sent_by_front(scope: Any, receive: Any, send: Any) -> None:
        await application({**scope, RESPONSE_ID: "resp_chosen"}, receive, send)

    front: Any = sent_by_front
    assert [respond(front).json()["id"] for _ in range(2)] == ["resp_chosen"] * 2
    assert ask(application, "DELETE", "/v1/responses/resp_chosen").json()["deleted"] is True
    assert ask(application, "GET", "/v1/responses/resp_chosen").status_code == 404
    application.close()


def test_the_environment_names_the_store_unless_the_configuration_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert response_store(ServerConfig()) == "memory"
    monkeypatch.setenv("CONSTRAIN_RESPONSE_STORE", "sqlite:////tmp/a.db")
    assert response_store(ServerConfig()) == "sqlite:////tmp/a.db"
    assert response_store(read_config(None, {"response_store": "none"})) == "none"
