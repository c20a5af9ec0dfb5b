"""Endpoints that continue a text, fill a gap, convert tokens, and show a prompt."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from constrain.server.llama_server.request import ContinuationRequest, PromptTokens, TokenizeBody, read_tokenize
from constrain.server.llama_server.tokens import describe_ids, describe_tokens, prompt_tokens
from constrain.server.serving.answering import Answering
from constrain.server.serving.endpoint import Inspecting

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import JSONResponse
    from starlette.types import Send

    from constrain.llama.model import Model
    from constrain.server.requests.declared import Body
    from constrain.server.sandbox.session import Session
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.models import ServedModel


class Continuing(Answering[ContinuationRequest]):
    """An endpoint whose model continues a prompt."""

    async def respond(self, asked: ContinuationRequest, session: Session, send: Send) -> JSONResponse | None:
        """Returns the response to a request that was read; see ``Answering``."""
        async with self._serving.models.lease(self.find(asked.model)) as served:
            prompt = await self._serving.generator.run_in_thread(partial(prompt_tokens, served.model, asked))
            asked = replace(asked, questions=(replace(asked.question, prompt=prompt),))
            return await super().respond(asked, session, send)


class Tokens(Inspecting):
    """An endpoint that converts texts or tokens. ``convert``: function that returns the answer of a model."""

    def __init__(self, serving: Serving, body: type[Body], convert: Callable[[Model, Any], dict[str, Any]]) -> None:
        super().__init__(serving, body)
        self._convert = convert

    async def inspect(self, asked: Any, served: ServedModel, _: Session) -> dict[str, Any]:
        """Returns the answer; see ``Inspecting``."""
        return await self._serving.generator.run_in_thread(partial(self._convert, served.model, asked))


class Tokenize(Tokens):
    """An endpoint that returns the tokens of a text, or of the prompt of a chat completion, whose body is ``chat``."""

    def __init__(self, serving: Serving, chat: type[Body]) -> None:
        super().__init__(serving, TokenizeBody, describe_tokens)
        self._ask = partial(read_tokenize, chat, settings=serving.settings)

    async def inspect(
        self, asked: TokenizeBody | PromptTokens, served: ServedModel, session: Session
    ) -> dict[str, Any]:
        """Returns the answer; see ``Inspecting``."""
        if not isinstance(asked, PromptTokens):
            return await super().inspect(asked, served, session)
        generator = self._serving.generator
        tokens = await generator.prompt(served, asked.asked.question)
        return await generator.run_in_thread(partial(describe_ids, served.model, tokens, with_pieces=asked.with_pieces))


class ApplyTemplate(Inspecting):
    """An endpoint that shows the prompt that the same request to ``/v1/chat/completions`` has."""

    async def inspect(self, asked: Any, served: ServedModel, _: Session) -> dict[str, Any]:
        """Returns the prompt; see ``Inspecting``."""
        tokens = await self._serving.generator.prompt(served, asked.question)
        return {"prompt": await self._serving.generator.run_in_thread(partial(served.model.tokenizer.show, tokens))}
