"""Models come into memory when they are asked for, and leave it for others: with scripted models."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine
from typing import Any

import httpx
import pytest

from constrain.fields.values import FieldError
from constrain.server.app import Application
from constrain.server.http.account import Account, current
from constrain.server.http.errors import ApiError
from constrain.server.serving import models as models_module
from constrain.server.serving.models import Models, ModelSource, only_model
from constrain.server.settings import Settings
from tests.support import for_each
from tests.support.server.asking import CHAT, SECONDS, ask, error_of


class Scripted:
    """A model of 10 bytes that notes what happens to it."""

    def __init__(self, name: str, story: list[str]) -> None:
        self.name = name
        self.gate = threading.Event()
        self.gate.set()
        self.fails = False
        self._story = story

    def load(self) -> Any:
        assert self.gate.wait(SECONDS)
        if self.fails:
            raise ValueError("broken")
        self._story.append(f"load {self.name}")
        return self

    def close(self) -> None:
        self._story.append(f"close {self.name}")


class Stage:
    """Models a, b and c, of which ``limit`` bytes have room."""

    def __init__(self, limit: int | None = None) -> None:
        self.story: list[str] = []
        self.each = {name: Scripted(name, self.story) for name in "abc"}
        self.models = Models([ModelSource((name,), 1, 1, 10, one.load) for name, one in self.each.items()], limit)

    async def use(self, name: str) -> None:
        async with self.models.lease(name) as served:
            assert served.model is self.each[name]
            assert served.name == name

    def loaded(self) -> str:
        return "".join(state.name for state in self.models.states() if state.model is not None)


def play(scene: Coroutine[Any, Any, None]) -> None:
    async def run() -> None:
        current.set(Account(time.monotonic() + SECONDS))
        await asyncio.wait_for(scene, SECONDS)

    asyncio.run(run())


async def settle(stage: Stage) -> None:
    """Waits until the thread that loads has nothing left to do."""
    await asyncio.wrap_future(stage.models._thread.submit(int))


def test_a_request_without_a_name_means_the_only_model() -> None:
    stage = Stage()
    with pytest.raises(FieldError, match="Missing required parameter: 'model'"):
        only_model(stage.models)
    assert only_model(Models([ModelSource(("a", "alias"), 1, 1, 10, stage.each["a"].load)])) == "a"


def test_a_model_is_loaded_when_it_is_first_asked_for_and_once() -> None:
    stage = Stage()

    async def scene() -> None:
        assert stage.story == []
        await asyncio.gather(*[stage.use("a") for _ in range(5)])
        await stage.use("a")

    play(scene())
    assert stage.story == ["load a"]


def test_other_models_are_served_while_one_is_loaded() -> None:
    stage = Stage()

    async def scene() -> None:
        await stage.use("a")
        stage.each["b"].gate.clear()
        waiting = asyncio.ensure_future(stage.use("b"))
        await asyncio.sleep(0)
        await stage.use("a")
        assert not waiting.done()
        stage.each["b"].gate.set()
        await waiting

    play(scene())
    assert stage.story == ["load a", "load b"]


def test_the_model_that_was_used_longest_ago_makes_room() -> None:
    stage = Stage(limit=25)

    async def scene() -> None:
        for name in ("a", "b", "a", "c"):
            await stage.use(name)
        await settle(stage)

    play(scene())
    assert stage.story == ["load a", "load b", "close b", "load c"]
    assert stage.loaded() == "ac"


def test_a_model_in_use_never_makes_room() -> None:
    stage = Stage(limit=10)

    async def scene() -> None:
        async with stage.models.lease("a"):
            waiting = asyncio.ensure_future(stage.use("b"))
            await asyncio.sleep(0)
            assert stage.loaded() == "a"
        await waiting

    play(scene())
    assert stage.story == ["load a", "close a", "load b"]


def test_nothing_is_unloaded_where_that_would_not_be_enough() -> None:
    stage = Stage(limit=20)
    stage.models._by_name["c"].source = ModelSource(("c",), 1, 1, 20, stage.each["c"].load)

    async def scene() -> None:
        await stage.use("a")
        async with stage.models.lease("b"):
            waiting = asyncio.ensure_future(stage.use("c"))
            await asyncio.sleep(0)
            assert stage.loaded() == "ab"
        await waiting

    play(scene())
    assert stage.story == ["load a", "load b", "close a", "close b", "load c"]


def test_whoever_waits_too_long_for_room_is_asked_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_module, "ROOM_PATIENCE", 0.01)
    stage = Stage(limit=10)

    async def scene() -> None:
        async with stage.models.lease("a"):
            with pytest.raises(ApiError, match="no room") as error:
                await stage.use("b")
        assert error.value.status == 503
        assert error.value.headers is not None
        assert int(error.value.headers["Retry-After"]) > 0

    play(scene())


def test_a_model_that_nobody_waits_for_any_more_makes_room_once_it_is_loaded() -> None:
    stage = Stage(limit=10)

    async def scene() -> None:
        stage.each["a"].gate.clear()
        left = asyncio.ensure_future(stage.use("a"))
        await asyncio.sleep(0)
        left.cancel()
        waiting = asyncio.ensure_future(stage.use("b"))
        await asyncio.sleep(0)
        stage.each["a"].gate.set()
        await waiting

    play(scene())
    assert stage.story == ["load a", "close a", "load b"]


def test_a_model_that_cannot_be_loaded_is_an_error_for_all_who_wait_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    broken = stage.each["a"]
    broken.fails = True

    async def scene() -> None:
        found = await asyncio.gather(stage.use("a"), stage.use("a"), return_exceptions=True)
        assert [(error.status, error.code) for error in found if isinstance(error, ApiError)] == [
            (500, "model_load_failed")
        ] * 2
        assert stage.models.states()[0].has_failed
        broken.fails = False
        await stage.use("a")

    play(scene())
    assert "broken" in caplog.text
    assert stage.story == ["load a"]


def test_closing_frees_what_is_loaded() -> None:
    stage = Stage()

    async def scene() -> None:
        await stage.use("a")
        await stage.use("c")

    play(scene())
    stage.models.close()
    assert stage.story == ["load a", "load c", "close a", "close c"]
    assert stage.loaded() == ""


def test_a_model_leaves_when_it_is_told_to_and_comes_back() -> None:
    stage = Stage()

    async def scene() -> None:
        stage.models.unload("a")
        await stage.use("a")
        stage.models.unload("a")
        await settle(stage)
        assert stage.story == ["load a", "close a"]
        await stage.use("a")
        assert stage.loaded() == "a"

    play(scene())
    assert stage.story == ["load a", "close a", "load a"]


def test_a_model_in_use_leaves_after_its_last_use_unless_it_is_asked_for_again() -> None:
    stage = Stage()

    async def scene() -> None:
        async with stage.models.lease("a"):
            stage.models.unload("a")
            await stage.use("a")
        assert stage.loaded() == "a"
        async with stage.models.lease("a"):
            stage.models.unload("a")
            assert stage.loaded() == "a"
        assert stage.loaded() == ""

    play(scene())


def test_ollamas_clients_unload_models() -> None:
    stage = Stage()
    stage.models.load("a")
    application = Application(stage.models, Settings())
    for path, member in (("chat", "message"), ("generate", "response")):
        answer = ask(application, "POST", f"/api/{path}", json={"model": "a:latest", "keep_alive": 0}).json()
        assert (answer["done"], answer["done_reason"]) == (True, "unload")
        assert set(answer) == {"model", "created_at", "done", "done_reason", "total_duration", "load_duration", member}
    assert stage.loaded() == ""
    stage.models.close()
    assert stage.story == ["load a", "close a"]


NAMES = [("Qwen3:8b", "qwen3-large"), ("demo:latest",), ("llama",), ("LLAMA",)]
MEANT = [
    ("Qwen3:8b", "Qwen3:8b"),
    ("qwen3:8B", "Qwen3:8b"),
    ("qwen3:8b:latest", "Qwen3:8b"),
    ("Qwen3-Large:latest", "qwen3-large"),
    ("demo", "demo:latest"),
    ("DEMO:LATEST", "demo:latest"),
    ("llama", "llama"),
    ("LLAMA", "LLAMA"),
    ("Llama", None),  # either of two models
    ("qwen3", None),
    ("demo:8b", None),
    ("", None),
]


@for_each("name, found", MEANT)
def test_a_name_may_be_written_in_several_ways(name: str, found: str | None) -> None:
    models = Models([ModelSource(names, 1, 1, 10, Scripted(names[0], []).load) for names in NAMES])
    assert models.name_of(name) == found


API_NAMES = [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": 3}]}),
    ("/v1/responses", {"input": 3}),
    ("/v1/completions", {"prompt": 3}),
    ("/v1/embeddings", {"input": 3}),
    ("/v1/messages", {"messages": [{"role": "user", "content": 3}], "max_tokens": 1}),
    ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": 3}]}),
    ("/api/chat", {"messages": [{"role": "user", "content": 3}]}),
    ("/api/generate", {"prompt": 3}),
    ("/api/embed", {"input": 3}),
]


@for_each("path, fields", API_NAMES)
def test_every_protocol_reads_names_alike(path: str, fields: dict[str, Any]) -> None:
    application = Application(Stage().models, Settings())
    found = [ask(application, "POST", path, json={"model": name, **fields}).status_code for name in ("A:latest", "d")]
    assert found == [400, 404]  # the model is found before the rest of the body is read


def test_the_description_of_a_model_has_its_own_name() -> None:
    application = Application(Stage().models, Settings())
    for headers in ({}, {"anthropic-version": "2023-06-01"}):
        assert ask(application, "GET", "/v1/models/B:latest", headers=headers).json()["id"] == "b"


def test_a_request_whose_time_is_up_while_its_model_is_loaded_is_asked_to_come_again() -> None:
    stage = Stage()
    stage.each["a"].gate.clear()
    application = Application(stage.models, Settings(timeout=0.05))
    body = {"model": "a", "messages": [{"role": "user", "content": "Hello"}]}
    with contextlib.ExitStack() as afterwards:
        afterwards.callback(stage.each["a"].gate.set)
        response = ask(application, "POST", CHAT, json=body)
    assert (response.status_code, error_of(response)["code"]) == (503, "timeout")
    assert int(response.headers["retry-after"]) > 0


def test_a_server_that_can_load_no_model_is_not_healthy() -> None:
    stage = Stage()
    application = Application(stage.models, Settings())

    async def scene() -> None:
        for name, one in stage.each.items():
            assert (await health()) == 200
            one.fails = True
            with pytest.raises(ApiError):
                await stage.use(name)

    async def health() -> int:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get("/health")).status_code

    play(scene())
    assert ask(application, "GET", "/health").status_code == 503
