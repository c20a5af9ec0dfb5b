"""``/v1/responses``: creates, keeps, returns and deletes responses."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route

from constrain.generation.completion import Finished
from constrain.server.http.account import current
from constrain.server.http.errors import ApiError
from constrain.server.http.events import data_event
from constrain.server.responses.events import EventWriter, server_sent
from constrain.server.responses.memory_store import open_store
from constrain.server.responses.output import (
    ResponseHead,
    count_reasoning,
    finished_response,
    new_response_id,
    response_json,
)
from constrain.server.responses.request import ResponseBody, ResponsesRequest
from constrain.server.responses.store import input_items_page
from constrain.server.serving.answering import Answering
from constrain.server.serving.dialect import Dialect, Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openai.types.responses import Response as ResponseObject
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Send

    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.completion import Completion
    from constrain.server.responses.request import StoredResponse
    from constrain.server.responses.store import ResponseStore
    from constrain.server.sandbox.session import Session
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.generation import Answers
    from constrain.server.serving.models import ServedModel

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


class _Writer(Writer):
    """Writes a response, or its events.

    Attributes:
        head: fields that are known before the answer.
        made: the finished response, once there is one.
    """

    def __init__(self, asked: ResponsesRequest, served: ServedModel, answers: Answers) -> None:
        temperature = answers.plans[0].used_sampling.temperature
        self.head = ResponseHead(asked, current.get().response_id, time.time(), asked.model, temperature)
        self.made: ResponseObject | None = None
        self._token_bytes = served.model.vocabulary.token_bytes
        self._events = EventWriter(self.head)

    def response(self, completions: Sequence[Completion]) -> dict[str, Any]:
        """Returns the response for a finished answer."""
        [completion] = completions
        self.made = finished_response(self.head, completion, **self._ending(completion))
        return response_json(self.made)

    def begin(self, _: int) -> Iterator[str]:
        """Yields the events in front of the answer."""
        return map(server_sent, self._events.begin())

    def write(self, _: int, event: StreamEvent | Finished) -> Iterator[str]:
        """Yields the events for an event of the answer."""
        if not isinstance(event, Finished):
            return map(server_sent, self._events.write(event))
        last = self._events.finish(event.completion, **self._ending(event.completion))
        self.made = self._events.response
        return map(server_sent, last)

    def fail(self, error: ApiError) -> str:
        """Returns the last events, after an error."""
        return "".join(map(server_sent, self._events.fail(error)))

    @staticmethod
    def failed(error: ApiError, sent: int = 0) -> str:
        """Returns the event of an error, which ends a stream."""
        facts = {"code": error.code, "message": error.message, "param": error.param, "sequence_number": sent}
        return data_event({"type": "error", **facts}, "error")

    def _ending(self, completion: Completion) -> dict[str, Any]:
        """Returns the facts that are known once the answer is finished."""
        counts = (count_reasoning(each, self._token_bytes) for each in completion.votes or (completion,))
        return {"completed_at": time.time(), "reasoning_tokens": sum(counts)}


class Responses(Answering[ResponsesRequest]):
    """The endpoint that creates responses."""

    def __init__(self, serving: Serving, store: ResponseStore) -> None:
        super().__init__(serving, ResponseBody, _Writer)
        self._store = store

    async def read(self, body: bytes, session: Session) -> ResponsesRequest:
        """Returns the request of a body, with the items that it refers to, and its question. Raises ``ApiError``."""
        asked: ResponsesRequest = await super().read(body, session)
        owner = current.get().owner

        def find() -> ResponsesRequest:
            previous = self._store.previous(owner, asked)
            found = replace(asked, items=self._store.resolve(owner, asked.items), previous=previous)
            return found.asking(() if previous is None else previous.conversation)

        return await self._serving.generator.run_in_thread(find)

    async def prepare(self, asked: ResponsesRequest) -> None:
        """Makes sure that the response can be kept; see ``Answering``."""
        account = current.get()
        account.response_id = account.response_id or new_response_id()
        await asyncio.to_thread(self._store.reserve, account.owner, asked, account.response_id)

    async def keep(self, writer: Writer) -> None:
        """Keeps the response, which a client may continue after its last event; see ``Answering``."""
        assert isinstance(writer, _Writer)
        assert writer.made is not None
        put = partial(self._store.put, current.get().owner, writer.head.request, response_json(writer.made))
        await asyncio.to_thread(put)


class InputTokens(Responses):
    """The endpoint that counts the tokens of the prompt that the same request for a response has."""

    async def respond(self, asked: ResponsesRequest, session: Session, send: Send) -> JSONResponse:  # noqa: ARG002
        """Returns the count; see ``Answering``."""
        async with self._serving.models.lease(asked.model) as served:
            count = await self._serving.generator.count(served, asked.question)
        return JSONResponse({"object": "response.input_tokens", "input_tokens": count})


RESPONSES = Dialect(
    responses_routes, (ResponseBody,), lambda path, _: path.startswith(_PATH), stream_error=_Writer.failed
)
"""OpenAI's responses."""
