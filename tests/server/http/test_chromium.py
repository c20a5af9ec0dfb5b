"""What pages in a real browser reach: those of other sites nothing, those that are allowed everything."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import CHAT, SECONDS, served_as, serving
from tests.support.server.browser import browsing, find_browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Message, Receive, Scope, Send

    import constrain
    from tests.support.server.browser import Browser

pytestmark = pytest.mark.skipif(find_browser() is None, reason="needs Chromium (apt-get install chromium)")

ALLOWED = "http://localhost:3000"


class Answered(NamedTuple):
    """One request, and how it was answered."""

    method: str
    path: str
    status: int
    is_shared: bool


class Watched(Application):
    """An application that remembers what it was asked."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._answered: list[Answered] = []
        self._changed = threading.Condition()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                is_shared = any(name == b"access-control-allow-origin" for name, _ in message["headers"])
                with self._changed:
                    self._answered.append(Answered(scope["method"], scope["path"], message["status"], is_shared))
                    self._changed.notify_all()
            await send(message)

        await super().__call__(scope, receive, answer)

    def take(self, count: int) -> Counter[Answered]:
        """The requests since the last time, once there are as many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._answered) >= count, SECONDS), self._answered
            taken, self._answered = Counter(self._answered), []
        return taken


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    assert program is not None
    with browsing(program, tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def watched(model: constrain.Model) -> Watched:
    return Watched(served_as(model, "small"), Settings(cors_origins=(ALLOWED,)))


@pytest.fixture(scope="module")
def port(watched: Watched) -> Iterator[int]:
    with serving(watched) as url:
        yield int(url.rpartition(":")[2])


QUESTION = {"model": "small", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}

RESPONSE = "/v1/responses/resp_1"

ATTEMPTS = """
(async (server, path, question) => {
  const chat = server + path;
  const fetched = (...request) => fetch(...request).then(({type, status}) => `${type} ${status}`, () => 'error');
  const post = (kind, more) =>
    fetched(chat, {method: 'POST', body: question, headers: {'Content-Type': kind}, ...more});
  const made = (name, properties) => Object.assign(document.createElement(name), properties);
  const first = (thing, ...events) => Promise.race(
    events.map(name => new Promise(done => thing.addEventListener(name, () => done(name)))));
  const shown = (name, properties) => {
    const element = made(name, properties), ended = first(element, 'load', 'error');
    document.body.append(element);
    return ended;
  };
  const submitted = async kind => {
    const frame = made('iframe', {name: kind});
    const form = made('form', {action: chat, method: 'post', enctype: kind, target: kind});
    form.append(made('input', {name: question.slice(0, -1) + ',"user":"', value: '"}'}));
    document.body.append(frame, form);
    const loaded = first(frame, 'load');
    form.submit();
    await loaded;
    try { return JSON.parse(frame.contentDocument.body.innerText).error.code; } catch { return 'error'; }
  };
  const opened = thing => first(thing, 'open', 'error').finally(() => thing.close());
  const beacon = kind => `${navigator.sendBeacon(chat, new Blob([question], {type: kind}))}`;
  return {
    'list': await fetched(server + '/v1/models'),
    'list unread': await fetched(server + '/v1/models', {mode: 'no-cors'}),
    'list with a key': await fetched(server + '/v1/models', {headers: {Authorization: 'Bearer any'}}),
    'text': await post('text/plain'),
    'text unread': await post('text/plain', {mode: 'no-cors'}),
    'no type': await fetched(chat, {method: 'POST', body: new Blob([question])}),
    'JSON': await post('application/json'),
    'JSON unread': await post('application/json', {mode: 'no-cors'}),
    'deletion': await fetched(server + '/v1/responses/resp_1', {method: 'DELETE'}),
    'form of text': await submitted('text/plain'),
    'form of parts': await submitted('multipart/form-data'),
    'beacon of text': beacon('text/plain'),
    'beacon of JSON': beacon('application/json'),
    'events': await opened(new EventSource(server + '/v1/responses/resp_1?stream=true')),
    'socket': await opened(new WebSocket(chat.replace('http', 'ws'))),
    'script': await shown('script', {src: server + '/v1/models'}),
    'image': await shown('img', {src: server + '/v1/models'}),
  };
})"""
"""All that a page may try without being allowed to; what it learns by each."""

NOTHING = {
    **dict.fromkeys(["list", "list with a key", "text", "no type", "JSON", "deletion", "events", "socket"], "error"),
    **dict.fromkeys(["list unread", "text unread", "JSON unread"], "opaque 0"),
    **dict.fromkeys(["form of text", "form of parts", "script", "image"], "error"),
    **dict.fromkeys(["beacon of text", "beacon of JSON"], "true"),  # queued
}


def attempt(browser: Browser, server: str) -> dict[str, str]:
    arguments = ", ".join(map(json.dumps, (server, CHAT, json.dumps(QUESTION))))
    return browser.run(f"{ATTEMPTS}({arguments})")


@pytest.mark.slow
@pytest.mark.parametrize("origin", ["http://localhost:3001", "http://evil.example"])
def test_a_page_of_another_site_reaches_nothing(origin: str, browser: Browser, watched: Watched, port: int) -> None:
    assert browser.visit(f"{origin}/page") == origin
    assert attempt(browser, f"http://localhost:{port}") == NOTHING
    refused = [("GET", "/v1/models", 4), ("GET", CHAT, 1), ("GET", RESPONSE, 1), ("POST", CHAT, 7)]
    unpermitted = [("/v1/models", 1), (CHAT, 2), (RESPONSE, 1)]
    expected = Counter({Answered(method, path, 403, False): count for method, path, count in refused})
    expected += Counter({Answered("OPTIONS", path, 204, False): count for path, count in unpermitted})
    assert watched.take(expected.total()) == expected


@pytest.mark.slow
def test_a_site_whose_name_leads_here_learns_nothing(browser: Browser, watched: Watched, port: int) -> None:
    origin = f"http://evil.example:{port}"
    assert browser.visit(f"{origin}/page") == origin
    learnt = attempt(browser, origin)  # the browser lets it read all answers
    assert {name: what for name, what in learnt.items() if what not in ("basic 403", NOTHING[name])} == {
        "form of text": "host_not_allowed",
        "form of parts": "host_not_allowed",
    }
    asked = [
        ("GET", "/v1/models", 5),
        ("GET", CHAT, 1),
        ("GET", RESPONSE, 1),
        ("POST", CHAT, 9),
        ("DELETE", RESPONSE, 1),
    ]
    expected = Counter({Answered(method, path, 403, False): count for method, path, count in asked})
    assert watched.take(expected.total()) == expected


@pytest.mark.slow
def test_a_page_that_is_allowed_reaches_all_that_clients_use(browser: Browser, watched: Watched, port: int) -> None:
    assert browser.visit(f"{ALLOWED}/page") == ALLOWED
    read = {"list": "cors 200", "list with a key": "cors 200", "JSON": "cors 200", "deletion": "cors 404"}
    assert attempt(browser, f"http://localhost:{port}") == {
        **NOTHING,
        **read,
        "text": "cors 415",
        "no type": "cors 415",
    }
    found = watched.take(20)
    assert {answered for answered in found if answered.method == "OPTIONS" and not answered.is_shared} == set()
    assert found[Answered("POST", CHAT, 200, is_shared=True)] == 1
    assert found[Answered("POST", CHAT, 415, is_shared=True)] == 7


CLIENT = """
(async (server, body) => {
  const stainless = {'x-stainless-lang': 'js', 'x-stainless-retry-count': '0', 'x-stainless-timeout': '600'};
  const headers = {...stainless, 'authorization': 'Bearer any', 'content-type': 'application/json', 'accept': '*/*',
                   'idempotency-key': 'a', 'openai-organization': 'b', 'user-agent': 'c', 'x-request-id': 'd'};
  const send = (path, fields, method = 'POST') =>
    fetch(server + path, {method, headers, body: fields && JSON.stringify({...body, ...fields})});
  const messages = [{role: 'user', content: 'Is the sky blue?'}];
  const response_format = {type: 'json_schema', json_schema: {name: 'a', schema: {type: 'boolean'}}};
  const parsed = async (...request) => (await send(...request)).json();
  const streamed = async (...request) => {
    const reader = (await send(...request)).body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) text += piece.value;
    return text;
  };
  const chat = {messages, response_format}, asked = {input: 'Is the sky blue?', max_output_tokens: 2};
  const response = await parsed('/v1/responses', asked);
  const failed = await send('/v1/chat/completions', {messages, response_format: {type: 'xml'}});
  return {
    models: (await parsed('/v1/models', undefined, 'GET')).data.map(({id}) => id),
    chat: JSON.parse((await parsed('/v1/chat/completions', chat)).choices[0].message.content),
    stream: (await streamed('/v1/chat/completions', {...chat, stream: true})).slice(-14),
    completion: (await parsed('/v1/completions', {prompt: 'The sky is', max_tokens: 2})).object,
    embedding: (await parsed('/v1/embeddings', {input: 'sky'})).data[0].object,
    events: (await streamed('/v1/responses', {...asked, stream: true})).match(/^event: (\\S+)/gm).at(-1),
    kept: (await parsed('/v1/responses/' + response.id, undefined, 'GET')).id === response.id,
    deleted: (await parsed('/v1/responses/' + response.id, undefined, 'DELETE')).deleted,
    error: [failed.status, (await failed.json()).error.param, failed.headers.get('x-request-id').slice(0, 4)],
    unknown: (await parsed('/v1/nothing', {})).error.code,
  };
})"""
"""What the ``openai`` package for JavaScript does in a page."""


@pytest.mark.slow
@pytest.mark.usefixtures("watched")
def test_a_client_works_in_a_page_that_is_allowed(browser: Browser, port: int) -> None:
    browser.visit(f"{ALLOWED}/page")
    found = browser.run(f"{CLIENT}('http://127.0.0.1:{port}', {{model: 'small', seed: 1}})")
    assert found.pop("chat") in (True, False)
    assert found == {
        "models": ["small"],
        "stream": "data: [DONE]\n\n",
        "completion": "text_completion",
        "embedding": "embedding",
        "events": "event: response.incomplete",
        "kept": True,
        "deleted": True,
        "error": [400, "response_format.type", "req_"],
        "unknown": "unknown_url",
    }
