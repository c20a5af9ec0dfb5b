"""Responses that are kept: for how long, for whom, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sql
from openai.types.responses import ResponseItemList
from pydantic import TypeAdapter

from constrain.fields.values import FieldError
from constrain.server.app import Application
from constrain.server.config import ServerConfig, read_config
from constrain.server.http.account import RESPONSE_ID
from constrain.server.http.errors import ApiError
from constrain.server.responses.memory_store import MemoryStore, open_store
from constrain.server.responses.output import ResponseHead, finished_response, response_json
from constrain.server.responses.request import ResponseBody, ResponsesRequest, StoredResponse
from constrain.server.responses.sql_store import SqlStore
from constrain.server.responses.store import ResponseStore, input_items_page
from constrain.server.settings import Settings, response_store
from tests.support import each_row, for_each
from tests.support.postgresql import running
from tests.support.server.asking import ask, error_of, served_as
from tests.support.server.response_answers import ANSWERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import constrain


def _request(**body: Any) -> ResponsesRequest:
    return ResponseBody.ask({"model": "tiny", "input": "Hello", **body}, Settings())


def _response(response_id: str, request: ResponsesRequest, name: str = "text") -> dict[str, Any]:
    head = ResponseHead(request, response_id, 0.0, "tiny", 0.8)
    return response_json(finished_response(head, ANSWERS[name].completion, completed_at=1.0, reasoning_tokens=0))


def _keep(kept: ResponseStore, response_id: str, owner: str = "me", **body: Any) -> None:
    request = _request(**body)
    kept.put(owner, replace(request, previous=kept.previous(owner, request)), _response(response_id, request))


def _is_there(kept: ResponseStore, response_id: str, owner: str = "me") -> bool:
    try:
        kept.get(owner, response_id)
    except ApiError:
        return False
    return True


def _page(stored: StoredResponse, **query: str) -> dict[str, Any]:
    page = input_items_page(stored, query)
    assert TypeAdapter(ResponseItemList).validate_python(page).to_dict(exclude_unset=True) == page
    return page


def _texts(page: dict[str, Any]) -> list[str]:
    return [item["content"][0]["text"] for item in page["data"]]


if TYPE_CHECKING:
    from pathlib import Path

Make = Callable[..., ResponseStore]


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """A function that makes a store of each kind; its limits hold at each call."""
    made: list[ResponseStore] = []

    def make_store(**limits: Any) -> ResponseStore:
        if request.param == "memory":
            made.append(MemoryStore(**limits))
        else:
            database = f"sqlite:///{tmp_path}/responses.db"
            url = database if request.param == "sqlite" else request.getfixturevalue("postgresql")
            made.append(SqlStore(url, shrink_seconds=0, **limits))
        return made[-1]

    yield make_store
    for store in made:
        store.close()


@pytest.fixture
def three(make: Make) -> StoredResponse:
    store = make()
    _keep(store, "resp_1", input=[{"role": "user", "content": text} for text in "abc"])
    return store.get("me", "resp_1")


def test_a_response_that_shall_not_be_kept_is_not_there(make: Make) -> None:
    store = make()
    _keep(store, "resp_1", store=False)
    assert not _is_there(store, "resp_1")


def test_a_response_is_there_for_its_owner_alone(make: Make) -> None:
    store = make()
    _keep(store, "resp_1", owner="me")
    assert not _is_there(store, "resp_1", owner="you")
    with pytest.raises(ApiError, match="Response with id 'resp_1' not found") as caught:
        store.delete("you", "resp_1")
    assert caught.value.status == 404
    with pytest.raises(ApiError, match="Previous response"):
        store.previous("you", _request(previous_response_id="resp_1"))
    assert _is_there(store, "resp_1")


def test_a_deleted_response_is_not_there(make: Make) -> None:
    store = make()
    _keep(store, "resp_1")
    assert store.delete("me", "resp_1") == {"id": "resp_1", "object": "response", "deleted": True}
    assert not _is_there(store, "resp_1")


def test_a_response_that_is_created_again_takes_the_place_of_the_first(make: Make) -> None:
    store = make(max_responses=2)
    request = _request()
    for completed_at in (1.0, 2.0):
        store.put("me", request, {**_response("resp_1", request), "completed_at": completed_at})
    assert store.get("me", "resp_1").response["completed_at"] == 2.0
    _keep(store, "resp_2")
    assert _is_there(store, "resp_1")
    store.delete("me", "resp_1")
    assert not _is_there(store, "resp_1")


def test_the_oldest_responses_make_room(make: Make) -> None:
    store = make(max_responses=2)
    for response_id in ("resp_1", "resp_2", "resp_3"):
        _keep(store, response_id)
    assert [_is_there(store, f"resp_{number}") for number in (1, 2, 3)] == [False, True, True]


def test_large_responses_make_room(make: Make) -> None:
    store = make(max_bytes=10_000)
    for response_id in ("resp_1", "resp_2"):
        _keep(store, response_id, input="x" * 6000)
    assert [_is_there(store, f"resp_{number}") for number in (1, 2)] == [False, True]


def test_a_long_conversation_counts_as_a_whole_in_each_response(make: Make) -> None:
    store = make(max_bytes=20_000)
    _keep(store, "resp_1", input="x" * 9000)
    _keep(store, "resp_2", previous_response_id="resp_1")
    assert [_is_there(store, f"resp_{number}") for number in (1, 2)] == [False, True]


def test_old_responses_are_forgotten(make: Make) -> None:
    now = 0.0
    store = make(max_age=10, clock=lambda: now)
    _keep(store, "resp_1")
    now = 9.0
    _keep(store, "resp_2")
    now = 10.0
    assert [_is_there(store, "resp_1"), _is_there(store, "resp_2")] == [False, True]


def test_a_response_is_continued_with_all_that_came_before(make: Make) -> None:
    store = make()
    _keep(store, "resp_1", input="One?", instructions="Be brief.")
    _keep(store, "resp_2", input="Two?", previous_response_id="resp_1")
    request = _request(input="Three?", previous_response_id="resp_2")
    previous = store.previous("me", request)
    assert previous is not None
    said = [(message["role"], message["content"]) for message in request.messages(previous.conversation)]
    assert said == [
        ("user", "One?"),
        ("assistant", "Héllo ☃"),
        ("user", "Two?"),
        ("assistant", "Héllo ☃"),
        ("user", "Three?"),
    ]


def test_results_answer_the_calls_of_the_previous_response(make: Make) -> None:
    store, first = make(), ANSWERS["calls"].head.request
    store.put("me", first, _response("resp_1", first, "calls"))
    results = [
        {"type": f"{kind}_call_output", "call_id": f"call_{number}", "output": "fine"}
        for number, kind in enumerate(("function", "function", "custom_tool"), 1)
    ]
    request = _request(input=results, previous_response_id="resp_1")
    previous = store.previous("me", request)
    assert previous is not None
    messages = request.messages(previous.conversation)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "tool"]


def test_an_unknown_previous_response_is_an_error_of_the_request(make: Make) -> None:
    with pytest.raises(ApiError) as caught:
        make().previous("me", _request(previous_response_id="resp_9"))
    error = caught.value
    assert (error.status, error.code, error.param) == (400, "previous_response_not_found", "previous_response_id")
    assert error.message == "Previous response with id 'resp_9' not found."


def test_input_items_come_last_first(three: StoredResponse) -> None:
    page = _page(three)
    assert (_texts(page), page["has_more"]) == (["c", "b", "a"], False)
    assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][2]["id"])


def test_input_items_are_read_in_pages(three: StoredResponse) -> None:
    first = _page(three, order="asc", limit="2")
    assert (_texts(first), first["has_more"]) == (["a", "b"], True)
    second = _page(three, order="asc", limit="2", after=first["last_id"])
    assert (_texts(second), second["has_more"]) == (["c"], False)


@each_row(
    "query, param, code",
    ({"limit": "0"}, "limit", "integer_below_min_value"),
    ({"limit": "101"}, "limit", "integer_above_max_value"),
    ({"limit": "many"}, "limit", "invalid_type"),
    ({"order": "random"}, "order", "invalid_value"),
    ({"after": "msg_9"}, "after", "invalid_value"),
)
def test_pages_that_are_none_are_refused(three: StoredResponse, query: dict[str, str], param: str, code: str) -> None:
    with pytest.raises(FieldError) as caught:
        input_items_page(three, query)
    assert (caught.value.param, caught.value.code) == (param, code)


def test_references_stand_for_kept_items(make: Make) -> None:
    kept = make()
    response_id = "resp_" + "a" * 48
    _keep(
        kept,
        response_id,
        input=[{"role": "user", "content": "Hello"}, {"id": "msg_mine", "role": "user", "content": "!"}],
    )
    stored = kept.get("me", response_id)
    asked, mine, answer = stored.conversation
    references = [{"type": "item_reference", "id": item["id"]} for item in (answer, asked)]
    assert kept.resolve("me", references) == (answer, asked)
    assert kept.resolve("me", [mine]) == (mine,)
    assert kept.resolve("you", references) == tuple(references)
    unknown = [{"type": "item_reference", "id": each} for each in ("", "msg_1", "msg_mine", answer["id"] + "f")]
    assert kept.resolve("me", unknown) == tuple(unknown)


def test_a_place_is_reserved_without_a_response_in_it(make: Make) -> None:
    store, request = make(), _request()
    store.reserve("me", request, "resp_1")
    assert not _is_there(store, "resp_1")
    store.put("me", request, _response("resp_1", request))
    assert _is_there(store, "resp_1")


def test_a_response_that_no_store_can_keep_is_refused_before_it_is_made(make: Make) -> None:
    store = make(max_bytes=10_000)
    _keep(store, "resp_1")
    request = _request(input="x" * 10_000)
    with pytest.raises(ApiError, match=r'may take 10000. Send "store": false') as caught:
        store.reserve("me", request, "resp_2")
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, "store", "storage_limit_exceeded")
    store.reserve("me", _request(input="x" * 10_000, store=False), "resp_2")
    assert _is_there(store, "resp_1")


# Databases.


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
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


@pytest.mark.slow
def test_servers_write_at_the_same_time(stores: list[SqlStore]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: stores[number % 4].write("me", stored(f"resp_{number}", "x")), range(80)))
    assert all(stores[0].read("me", f"resp_{number}") is not None for number in range(80))


@for_each(
    "place, message",
    ("here", "not an address of a database"),
    ("sqlite://", "names no file"),
    ("sqlite:///:memory:", "names no file"),
    ("nosuch://host/db", "no such kind of database"),
    ("postgresql+pg8000x://me:secret@host/db", "no such kind|not installed"),
    ("postgresql+psycopg://me:secret@127.0.0.1:1/db", "cannot be used"),
    ("sqlite:////no/such/folder/responses.db", "cannot be used"),
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


@pytest.mark.slow
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

    async def start(*_: object, **__: object) -> None:
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


@pytest.mark.slow
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


@pytest.mark.slow
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


# PostgreSQL.


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The address of a database."""
    with running() as address:
        yield address


@pytest.fixture
def postgresql(postgresql_server: str) -> str:
    """The address of an empty database."""
    engine = sql.create_engine(postgresql_server)
    with engine.begin() as connection:
        connection.execute(sql.text("DROP TABLE IF EXISTS constrain_responses"))
    engine.dispose()
    return postgresql_server
