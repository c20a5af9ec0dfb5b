"""``POST /api/chat`` and ``POST /api/generate``; ``POST /api/embed`` and its predecessor ``POST /api/embeddings``."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from constrain.server.ollama.lines import AnswerWriter, nanoseconds
from constrain.server.ollama.names import served_name
from constrain.server.ollama.options import require_thinking
from constrain.server.ollama.request import OllamaRequest
from constrain.server.serving.answering import Answering
from constrain.server.serving.embedding import Embeddings

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Send

    from constrain.server.requests.declared import Body
    from constrain.server.sandbox.session import Session
    from constrain.server.serving.embedding import Embedded, EmbeddingRequest
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.models import ServedModel


class OllamaAnswering(Answering[OllamaRequest]):
    """An endpoint whose model writes an answer, or is only loaded or unloaded.

    Args:
        serving: models, generator and settings.
        body: body of a request.
        members: function that makes the members of a piece of an answer; see ``AnswerWriter``.
    """

    def __init__(self, serving: Serving, body: type[Body], members: Callable[..., dict[str, Any]]) -> None:
        super().__init__(serving, body, partial(AnswerWriter, members))
        self._members = members

    def find(self, name: str) -> str:
        """Returns the served name of a model; see ``Endpoint``."""
        return served_name(self._serving.models, name)

    def check(self, asked: OllamaRequest, served: ServedModel) -> None:
        """Raises ``ApiError`` if the model cannot reason as the request asks for, or warns."""
        if not (asked.questions and asked.question.prefill):  # a given beginning leaves no reasoning before it
            require_thinking(asked.model, served.model, asked.options)
        super().check(asked, served)

    async def respond(self, asked: OllamaRequest, session: Session, send: Send) -> JSONResponse | None:
        """Returns the response to a request that was read; see ``Answering``."""
        if asked.questions:
            return await super().respond(asked, session, send)
        name = self.find(asked.model)
        if asked.is_unloading:
            self._serving.models.unload(name)
            return JSONResponse(AnswerWriter(self._members, asked).ready("unload"))
        async with self._serving.models.lease(name) as served:
            self.check(asked, served)
            return JSONResponse(AnswerWriter(self._members, asked, served).ready("load"))


class OllamaEmbeddings(Embeddings):
    """An endpoint for vectors whose models have names with tags."""

    def find(self, name: str) -> str:
        """Returns the served name of a model; see ``Endpoint``."""
        return served_name(self._serving.models, name)


def embed_object(asked: EmbeddingRequest, embedded: Embedded) -> dict[str, Any]:
    """Returns the response of ``/api/embed``."""
    return {
        "model": asked.model,
        "embeddings": [vector.tolist() for vector in embedded.vectors],
        "total_duration": nanoseconds(time.monotonic() - embedded.begun),
        "load_duration": nanoseconds(embedded.load_seconds),
        "prompt_eval_count": embedded.tokens,
    }


def old_embeddings_object(_: EmbeddingRequest, embedded: Embedded) -> dict[str, Any]:
    """Returns the response of ``/api/embeddings``; without a text, the vector is empty."""
    return {"embedding": [number for vector in embedded.vectors for number in vector.tolist()]}
