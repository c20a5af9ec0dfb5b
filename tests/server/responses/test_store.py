"""Responses that are kept: for how long, for whom, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from openai.types.responses import ResponseItemList
from pydantic import TypeAdapter

from constrain.server.http.errors import ApiError
from constrain.server.responses.memory_store import MemoryStore
from constrain.server.responses.output import ResponseHead, finished_response, response_json
from constrain.server.responses.request import ResponsesRequest, read_request
from constrain.server.responses.sql_store import SqlStore
from constrain.server.responses.store import ResponseStore, StoredResponse, input_items_page
from tests.support.server.response_answers import ANSWERS


def _request(**body: Any) -> ResponsesRequest:
    return read_request({"model": "tiny", "input": "Hello", **body})


def _response(response_id: str, request: ResponsesRequest, name: str = "text") -> dict[str, Any]:
    head = ResponseHead(request, response_id, 0.0, "tiny", 0.8)
    return response_json(finished_response(head, ANSWERS[name].completion, completed_at=1.0, reasoning_tokens=0))


def _keep(kept: ResponseStore, response_id: str, owner: str = "me", **body: Any) -> None:
    request = _request(**body)
    kept.put(owner, request, _response(response_id, request), kept.previous(owner, request))


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


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
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


@pytest.mark.parametrize(
    ("query", "param", "code"),
    [
        ({"limit": "0"}, "limit", "integer_below_min_value"),
        ({"limit": "101"}, "limit", "integer_above_max_value"),
        ({"limit": "many"}, "limit", "invalid_type"),
        ({"order": "random"}, "order", "invalid_value"),
        ({"after": "msg_9"}, "after", "invalid_value"),
    ],
)
def test_pages_that_are_none_are_refused(three: StoredResponse, query: dict[str, str], param: str, code: str) -> None:
    with pytest.raises(ApiError) as caught:
        input_items_page(three, query)
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, param, code)


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
