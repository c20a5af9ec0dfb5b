"""Bodies of requests: room for large ones, refused ones, and fields that nobody reads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request

from constrain.server.chat.request import ChatBody
from constrain.server.completions.request import CompletionBody
from constrain.server.http.account import Account
from constrain.server.http.errors import ApiError, too_busy
from constrain.server.llama_server.request import CompletionBody as LlamaBody
from constrain.server.messages.request import MessagesBody
from constrain.server.ollama.request import ChatBody as OllamaChatBody
from constrain.server.requests.body import SMALL_BODY, read_body
from constrain.server.requests.declared import misspelt_fields
from constrain.server.responses.request import ResponseBody
from constrain.server.sandbox.reading import read_again
from constrain.server.settings import Settings
from tests.support import for_each

LIMIT = 8 * SMALL_BODY


class Room:
    """Room for bodies; notes what is reserved, and how many bytes had been sent by then."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.reserved: list[tuple[int, int]] = []
        self.sent = 0

    @contextlib.contextmanager
    def admit(self, size: int) -> Iterator[None]:
        if size > self.left:
            raise too_busy("a test", 7)
        self.reserved.append((size, self.sent))
        self.left -= size
        try:
            yield
        finally:
            self.left += size


def read(
    room: Room, size: int, *, declared: bool = True, leaves: bool = False, headers: dict[str, str] | None = None
) -> int:
    """Sends a body in pieces of half a small one; returns its length as read, while its room is taken."""
    sizes = iter([min(SMALL_BODY // 2, size - at) for at in range(0, size, SMALL_BODY // 2)])
    given = {
        "content-type": "application/json",
        **(headers or {}),
        **({"content-length": str(size)} if declared else {}),
    }
    raw = [(name.encode(), value.encode()) for name, value in given.items()]

    async def receive() -> dict[str, Any]:
        sent = next(sizes, 0)
        room.sent += sent
        if leaves and room.sent > 2 * SMALL_BODY:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": b" " * sent, "more_body": room.sent < size}

    async def ran() -> int:
        before = room.left
        async with read_body(Request({"type": "http", "headers": raw}, receive), LIMIT, room.admit) as body:
            assert room.left == before - sum(size for size, _ in room.reserved)
            return len(body)

    return asyncio.run(ran())


@pytest.mark.parametrize("declared", [True, False])
def test_a_small_body_needs_no_room(declared: bool) -> None:
    room = Room(0)
    assert read(room, SMALL_BODY, declared=declared) == SMALL_BODY
    assert not room.reserved


def test_a_large_body_has_its_room_before_anything_is_read() -> None:
    room = Room(LIMIT)
    assert read(room, 3 * SMALL_BODY) == 3 * SMALL_BODY
    assert room.reserved == [(3 * SMALL_BODY, 0)]
    assert room.left == LIMIT


def test_a_large_body_of_unknown_length_has_twice_the_room_that_it_takes() -> None:
    room = Room(LIMIT)
    assert read(room, 3 * SMALL_BODY, declared=False) == 3 * SMALL_BODY
    assert room.reserved == [(3 * SMALL_BODY, 3 * SMALL_BODY // 2)]
    assert room.left == LIMIT


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_without_room_is_read_to_its_end_and_told_when_to_come_again(declared: bool) -> None:
    room = Room(SMALL_BODY)
    with pytest.raises(ApiError) as caught:
        read(room, 3 * SMALL_BODY, declared=declared)
    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "7"})
    assert (room.sent, room.left) == (3 * SMALL_BODY, SMALL_BODY)


def test_a_body_that_waits_to_be_sent_is_not_sent_without_room() -> None:
    room = Room(SMALL_BODY)
    with pytest.raises(ApiError) as caught:
        read(room, 3 * SMALL_BODY, headers={"expect": "100-continue"})
    assert (caught.value.status, room.sent) == (429, 0)


@pytest.mark.parametrize(
    ("size", "headers", "status"), [(LIMIT + 1, {}, 413), (3 * SMALL_BODY, {"content-encoding": "gzip"}, 415)]
)
def test_a_body_that_is_refused_anyway_has_no_room(size: int, headers: dict[str, str], status: int) -> None:
    room = Room(10 * LIMIT)
    with pytest.raises(ApiError) as caught:
        read(room, size, headers=headers)
    assert (caught.value.status, room.reserved, room.sent) == (status, [], size)


@pytest.mark.parametrize("declared", [True, False])
def test_a_client_that_leaves_gives_its_room_back(declared: bool) -> None:
    room = Room(LIMIT)
    with pytest.raises(ClientDisconnect):
        read(room, 7 * SMALL_BODY, declared=declared, leaves=True)
    assert len(room.reserved) == 1
    assert room.left == LIMIT


MESSAGES = [{"role": "user", "content": "Hi"}]
SETTINGS = Settings()
READERS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "chat": (partial(ChatBody.ask, settings=SETTINGS), {"messages": MESSAGES}),
    "completions": (partial(CompletionBody.ask, settings=SETTINGS), {"prompt": "Hi"}),
    "responses": (partial(ResponseBody.ask, settings=Settings()), {"input": "Hi"}),
    "messages": (partial(MessagesBody.ask, settings=SETTINGS), {"messages": MESSAGES, "max_tokens": 9}),
    "Ollama's": (partial(OllamaChatBody.ask, settings=SETTINGS), {"messages": MESSAGES}),
    "llama-server's": (partial(LlamaBody.ask, settings=SETTINGS), {"prompt": "Hi"}),
    "llama-server's with a random seed": (partial(LlamaBody.ask, settings=SETTINGS), {"prompt": "Hi", "seed": -1}),
}


@pytest.fixture
def warnings_of(account: Account) -> Callable[..., list[str]]:
    """A function that reads a request with some fields, and returns its new warnings."""

    def read_with(endpoint: str, **fields: Any) -> list[str]:
        read, body = READERS[endpoint]
        before = len(account.warnings)
        read_again(read, {"model": "m", **body, **fields})
        return list(account.warnings[before:])

    return read_with


@for_each(
    "endpoint, name, meant",
    ("chat", "max_token", "max_tokens"),
    ("chat", "temprature", "temperature"),
    ("chat", "respones_format", "response_format"),
    ("chat", "maxTokens", "max_tokens"),
    ("chat", "top-p", "top_p"),
    ("chat", "saed", "seed"),
    ("chat", "stop_sequence", "stop_sequences"),
    ("completions", "max_tokens_", "max_tokens"),
    ("responses", "max_output_token", "max_output_tokens"),
    ("messages", "stopSequences", "stop_sequences"),
    ("Ollama's", "fromat", "format"),
    ("llama-server's", "n_predcit", "n_predict"),
)
def test_a_field_with_nearly_the_name_of_a_read_one_is_a_warning(
    warnings_of: Callable[..., list[str]], endpoint: str, name: str, meant: str
) -> None:
    assert warnings_of(endpoint, **{name: 1}) == [f"'{name}' is not read; is '{meant}' meant?"]
    assert warnings_of(endpoint, **{name: None}) == []


@for_each("endpoint", READERS)
def test_fields_that_say_nothing_here_are_accepted_in_silence(
    warnings_of: Callable[..., list[str]], endpoint: str
) -> None:
    """Among them are fields of other servers, and of other endpoints, with similar names."""
    names = ["conversation_id", "id", "k", "mode", "models", "n_keep", "prompt_cache_key", "reasoning_format", "speed"]
    assert warnings_of(endpoint, **dict.fromkeys(names, "x")) == []


def test_fields_of_a_changed_body_are_read(warnings_of: Callable[..., list[str]]) -> None:
    """Beside ``mirostat_mode``, which is refused, ``mirostat`` would seem misspelt."""
    assert warnings_of("llama-server's with a random seed", mirostat=0, temperature=1) == []


def test_few_of_many_unread_fields_are_compared() -> None:
    assert [*misspelt_fields({**{f"unread {n}": 1 for n in range(60)}, "sead": 1}, {"seed"})] == []
