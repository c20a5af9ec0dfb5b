"""Endpoints that continue a text, fill a gap, convert tokens, and show a prompt."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from constrain.server.chat.request import read_chat_request
from constrain.server.llama_server.request import ContinuationRequest
from constrain.server.llama_server.tokens import prompt_tokens
from constrain.server.llama_server.writer import ContinuationWriter
from constrain.server.serving.answering import Answering
from constrain.server.serving.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.types import Send

    from constrain.llama.model import Model
    from constrain.server.llama_server.request import TokensRequest
    from constrain.server.sandbox.session import Session
    from constrain.server.serving.answering import Reads
    from constrain.server.serving.endpoint import Serving


class Continuing(Answering[ContinuationRequest]):
    """An endpoint whose model continues a prompt. ``read``: function that reads a parsed body."""

    def __init__(self, serving: Serving, read: Reads[ContinuationRequest]) -> None:
        super().__init__(serving, read, ContinuationWriter)

    async def respond(self, asked: ContinuationRequest, session: Session, send: Send) -> JSONResponse | None:
        """Returns the response to a request that was read; see ``Answering``."""
        async with self._serving.models.lease(self.find(asked.model)) as served:
            prompt = await self._serving.generator.run_in_thread(partial(prompt_tokens, served.model, asked))
            return await super().respond(replace(asked, prompt=prompt), session, send)


class Tokens(Endpoint):
    """An endpoint that converts texts or tokens.

    Args:
        serving: models, generator and settings.
        read: function that reads a parsed body.
        convert: function that returns the answer of a model.
    """

    def __init__(
        self,
        serving: Serving,
        read: Callable[[Mapping[str, Any]], TokensRequest],
        convert: Callable[[Model, TokensRequest], dict[str, Any]],
    ) -> None:
        super().__init__(serving)
        self._read = read
        self._convert = convert

    async def answer(self, body: bytes, request: Request, send: Send) -> None:
        """Answers a request; see ``Endpoint``."""
        generator = self._serving.generator
        with generator.admit(1), generator.session() as session:
            asked = await self.read(body, self._read, session)
            async with self._serving.models.lease(self.find(asked.model)) as served:
                document = await generator.run_in_thread(partial(self._convert, served.model, asked))
        await JSONResponse(document)(request.scope, request.receive, send)


class ApplyTemplate(Endpoint):
    """An endpoint that shows the prompt that the same request to ``/v1/chat/completions`` has."""

    async def answer(self, body: bytes, request: Request, send: Send) -> None:
        """Answers a request; see ``Endpoint``."""
        generator = self._serving.generator
        with generator.admit(1), generator.session() as session:
            asked = await self.read(body, partial(read_chat_request, settings=self._serving.settings), session)
            async with self._serving.models.lease(self.find(asked.model)) as served:
                tokens = await generator.prompt(served, asked.question)
                text = await generator.run_in_thread(partial(served.model.tokenizer.show, tokens))
        await JSONResponse({"prompt": text})(request.scope, request.receive, send)
