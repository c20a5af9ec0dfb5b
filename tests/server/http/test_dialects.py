"""A dialect is one file and one entry in a list: here one that no client has."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import constrain
from constrain.server.app import Application
from constrain.server.dialects import CHAT, DIALECTS
from constrain.server.http.errors import ApiError
from constrain.server.requests.declared import Body
from constrain.server.requests.places import Places
from constrain.server.requests.question import Asked, Question
from constrain.server.requests.streams import Streaming
from constrain.server.serving.answering import Answering
from constrain.server.serving.dialect import ChosenRoute, Dialect
from constrain.server.serving.endpoint import Serving
from constrain.server.settings import Settings
from tests.support.server.asking import ask, chat, idle, served_as
from tests.test_import_order import imports

PAGE = Path(__file__).parents[3] / "docs/explanation/dialects.md"

# A dialect: its request, reader, writer, routes and errors.


class ToyBody(Body):
    """``{"model": "small", "ask_for": "..."}``: a number is the answer."""

    ask_for: str

    def request(self, _: Settings) -> Asked:
        messages = [{"role": "user", "content": self.ask_for}]
        question = Question(messages, None, {"max_tokens": 8}, Places("ask_for", "limit"))
        return Asked(self.model, (question,), Streaming())


class Writer:
    media_type = "application/json"

    def response(self, completions: Any) -> dict[str, Any]:
        return {"said": completions[0].text}

    def _nothing(self, *_: object) -> Iterator[str]:
        yield from ()

    begin = write = end = fail = _nothing


async def show_version(_: Request) -> Response:
    return JSONResponse({"version": 1})


def toy_routes(serving: Serving) -> list[Route]:
    return [
        Route("/toy/ask", Answering(serving, ToyBody, lambda *_: Writer()), methods=["POST"]),
        ChosenRoute("/toy/version", show_version, lambda _, headers: "x-toy" in headers),
    ]


def oops(error: ApiError) -> dict[str, Any]:
    return {"oops": error.message}


TOY = Dialect(toy_routes, (ToyBody,), lambda path, _: path.startswith("/toy/"), oops, id_header="toy-id")


# What it is mounted in.


@pytest.fixture(scope="module")
def application(model: constrain.Model) -> Application:
    return Application(served_as(model, "small"), Settings(api_keys=("key",)), (TOY, *DIALECTS))


HEADERS = {"X-Api-Key": "key"}


def test_a_dialect_answers_beside_the_others(application: Application) -> None:
    response = ask(application, "POST", "/toy/ask", json={"ask_for": "Say hello."}, headers=HEADERS)
    assert (response.status_code, set(response.json())) == (200, {"said"})
    assert response.headers["toy-id"] == response.headers["x-request-id"]
    text = ask(application, "POST", "/v1/chat/completions", json={"model": "small", "messages": []}, headers=HEADERS)
    assert "toy-id" not in text.headers
    assert set(text.json()) == {"error"}


def test_its_errors_have_its_form(application: Application) -> None:
    response = ask(application, "POST", "/toy/ask", json={}, headers=HEADERS)
    assert (response.status_code, set(response.json())) == (400, {"oops"})
    assert set(ask(application, "POST", "/toy/ask", json={}).json()) == {"oops"}  # without a key


def test_a_route_may_be_for_some_clients(application: Application) -> None:
    assert ask(application, "GET", "/toy/version", headers={**HEADERS, "X-Toy": "1"}).json() == {"version": 1}
    assert ask(application, "GET", "/toy/version", headers=HEADERS).status_code == 404


def test_a_server_speaks_the_dialects_that_it_is_given() -> None:
    assert chat(idle(), messages=1).status_code == 400
    assert ask(Application(idle()._models, Settings(), (CHAT,)), "POST", "/v1/embeddings", json={}).status_code == 404


def test_the_page_shows_this_dialect() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for part in (ToyBody, Writer, show_version, toy_routes, oops):
        assert inspect.getsource(part) in page, part


@pytest.mark.slow
def test_no_dialect_imports_another() -> None:
    folders = {dialect.readers[0].__module__.split(".")[2] for dialect in DIALECTS}
    assert len(folders) == len(DIALECTS)
    folder_of = {name: name.split(".")[1] for each in imports() for name in each[:2] if name.startswith("server.")}
    pairs = [(each, folder_of.get(each.importer), folder_of.get(each.imported)) for each in imports()]
    wrong = [each for each, one, other in pairs if one != other and {one, other} <= folders]
    assert not wrong, "\n".join(map(str, wrong))
