"""``/v1/responses``: creates, keeps, returns and deletes responses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route

from constrain.errors import ConstrainError
from constrain.generation.completion import Finished
from constrain.server.http.account import current
from constrain.server.http.errors import ApiError, failure
from constrain.server.http.events import data_event
from constrain.server.responses.events import EventWriter, server_sent
from constrain.server.responses.opening import open_store
from constrain.server.responses.output import (
    ResponseHead,
    count_reasoning,
    finished_response,
    new_response_id,
    response_json,
)
from constrain.server.responses.request import ResponseBody
from constrain.server.responses.store import input_items_page
from constrain.server.serving.answering import require_room, warn_of_idle_switches
from constrain.server.serving.dialect import Dialect
from constrain.server.serving.endpoint import Endpoint, send_stream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openai.types.responses import Response as ResponseObject
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Send

    from constrain.generation.completion import Completion
    from constrain.server.requests.question import Question
    from constrain.server.responses.request import ResponsesRequest
    from constrain.server.responses.store import ResponseStore, StoredResponse
    from constrain.server.sandbox.session import Session
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.generation import Answers
    from constrain.server.serving.models import ServedModel

_log = logging.getLogger("constrain.server")

_PATH = "/v1/responses"


def responses_routes(serving: Serving) -> list[Route]:
    """Returns all routes below ``/v1/responses``. A response is visible only to the key that created it."""
    store = open_store(serving.settings.response_store)
    serving.ends.callback(store.close)

    async def find(request: Request) -> StoredResponse:
        return await asyncio.to_thread(store.get, current.get().owner, request.path_params["id"])

    async def show(request: Request) -> Response:
        if request.query_params.get("stream", "false").lower() not in ("false", "0"):
            raise ApiError(
                "A finished response is not streamed again; leave 'stream' out.",
                param="stream",
                code="unsupported_parameter",
            )
        return JSONResponse((await find(request)).response)

    async def delete(request: Request) -> Response:
        deleting = partial(store.delete, current.get().owner, request.path_params["id"])
        return JSONResponse(await asyncio.to_thread(deleting))

    async def list_input(request: Request) -> Response:
        return JSONResponse(input_items_page(await find(request), request.query_params))

    async def cancel(request: Request) -> Response:
        await find(request)
        raise ApiError("Only responses with 'background' can be cancelled, and this server makes none.")

    async def refuse_method(_: Request) -> Response:
        raise HTTPException(404)  # compact: 404, and not "method not allowed" for a response with this id

    return [
        Route(_PATH, Responses(serving, store), methods=["POST"]),
        Route(_PATH + "/input_tokens", InputTokens(serving, store), methods=["POST"]),
        Route(_PATH + "/{id}", show, methods=["GET"]),
        Route(_PATH + "/{id}", delete, methods=["DELETE"]),
        Route(_PATH + "/{id}", refuse_method, methods=["POST"]),
        Route(_PATH + "/{id}/input_items", list_input, methods=["GET"]),
        Route(_PATH + "/{id}/cancel", cancel, methods=["POST"]),
    ]


class Responses(Endpoint):
    """The endpoint that creates responses."""

    def __init__(self, serving: Serving, store: ResponseStore) -> None:
        super().__init__(serving, ResponseBody)
        self._store = store

    async def answer(self, body: bytes, request: Request, send: Send) -> None:
        """Answers a request; see ``Endpoint``."""
        generator = self._serving.generator
        owner = current.get().owner
        with generator.admit(1), generator.session() as session:
            asked, previous, question = await self._ask(body, session)
            name = current.get().response_id or new_response_id()
            require_room((question,), generator.room)
            with generator.admit(question.n - 1):
                if asked.store:
                    await asyncio.to_thread(partial(self._store.reserve, owner, asked, name, previous))
                async with self._serving.models.lease(asked.model) as served:
                    warn_of_idle_switches((question,), served)
                    answers = await generator.start(served, (question,), session)
                    temperature = answers.plans[0].used_sampling.temperature
                    head = ResponseHead(asked, name, time.time(), asked.model, temperature)
                    with contextlib.closing(answers):
                        made = _Made(head, previous, owner, served)
                        if asked.stream:
                            await send_stream(send, self._events(answers, made))
                            return
                        response = await self._response(answers, made)
        await response(request.scope, request.receive, send)

    async def _ask(self, body: bytes, session: Session) -> tuple[ResponsesRequest, StoredResponse | None, Question]:
        """Returns the request, the response that it continues, and the question to the model. Raises ``ApiError``."""
        asked = await self.read(body, session)
        resolve = partial(self._resolve_question, asked, current.get().owner)
        return await self._serving.generator.run_in_thread(resolve)

    def _resolve_question(
        self, asked: ResponsesRequest, owner: str
    ) -> tuple[ResponsesRequest, StoredResponse | None, Question]:
        """Returns a request with the items that it refers to, the response that it continues, and the question.

        Raises ``ApiError``.
        """
        previous = self._store.previous(owner, asked)
        asked = replace(asked, items=self._store.resolve(owner, asked.items))
        return asked, previous, asked.question(() if previous is None else previous.conversation)

    async def _response(self, answers: Answers, made: _Made) -> JSONResponse:
        try:
            decide = self._serving.generator.decide
            [completion] = await (decide(answers) if len(answers.plans) > 1 else answers.completions())
        except ConstrainError as error:
            _log.exception("a generation failed")
            raise failure() from error
        response = finished_response(made.head, completion, **made.ending(completion))
        await self._keep(made, response)
        return JSONResponse(response_json(response))

    async def _events(self, answers: Answers, made: _Made) -> AsyncGenerator[str, None]:
        """Yields the answer in progress as server-sent events."""
        writer = EventWriter(made.head)
        try:
            for sent in writer.begin():
                yield server_sent(sent)
            async with contextlib.aclosing(answers.events()) as events:
                async for _, event in events:
                    if not isinstance(event, Finished):
                        for sent in writer.write(event):
                            yield server_sent(sent)
                        continue
                    self._serving.metrics.add(event.completion)
                    last = writer.finish(event.completion, **made.ending(event.completion))
                    assert writer.response is not None
                    await self._keep(made, writer.response)  # a client may continue it after the last event
                    for sent in last:
                        yield server_sent(sent)
        except ApiError as error:
            error.log_reason()
            for sent in writer.fail(error):
                yield server_sent(sent)
        except Exception:  # noqa: BLE001 - the client has to hear of it, whatever it is
            _log.exception("a generation failed")
            for sent in writer.fail(failure()):
                yield server_sent(sent)

    async def _keep(self, made: _Made, response: ResponseObject) -> None:
        request = made.head.request
        if request.store:
            put = partial(self._store.put, made.owner, request, response_json(response), made.previous)
            await asyncio.to_thread(put)


class InputTokens(Responses):
    """The endpoint that counts the tokens of the prompt that the same request for a response has."""

    async def answer(self, body: bytes, request: Request, send: Send) -> None:
        """Answers a request; see ``Endpoint``."""
        generator = self._serving.generator
        with generator.admit(1), generator.session() as session:
            asked, _, question = await self._ask(body, session)
            async with self._serving.models.lease(asked.model) as served:
                count = await generator.count(served, question)
        counted = {"object": "response.input_tokens", "input_tokens": count}
        await JSONResponse(counted)(request.scope, request.receive, send)


@dataclass(frozen=True, slots=True)
class _Made:
    """A response in progress: its head, the response it continues, its owner, and its model."""

    head: ResponseHead
    previous: StoredResponse | None
    owner: str
    served: ServedModel

    def ending(self, completion: Completion) -> dict[str, Any]:
        """Returns the facts that are known once the answer is finished."""
        token_bytes = self.served.model.vocabulary.token_bytes
        reasoning_tokens = sum(count_reasoning(each, token_bytes) for each in completion.votes or (completion,))
        return {"completed_at": time.time(), "reasoning_tokens": reasoning_tokens}


def _stream_error(error: ApiError, sent: int) -> str:
    facts = {"code": error.code, "message": error.message, "param": error.param, "sequence_number": sent}
    return data_event({"type": "error", **facts}, "error")


RESPONSES = Dialect(
    responses_routes, (ResponseBody,), lambda path, _: path.startswith(_PATH), stream_error=_stream_error
)
"""OpenAI's responses."""
