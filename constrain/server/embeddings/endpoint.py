"""``POST /v1/embeddings``: vectors for texts."""

from __future__ import annotations

import asyncio
import base64
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from openai.types import CreateEmbeddingResponse, Embedding
from openai.types.create_embedding_response import Usage
from starlette.responses import JSONResponse

from constrain.errors import ModelError
from constrain.server.embeddings.request import read_embedding_request, require_dimensions
from constrain.server.http.account import current
from constrain.server.http.errors import ApiError, context_overflow, failure, unavailable
from constrain.server.requests.texts import text_tokens
from constrain.server.serving.endpoint import Endpoint
from constrain.server.serving.sizes import longest_token, text_size
from constrain.thread_pools import start_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from starlette.requests import Request
    from starlette.types import Send

    from constrain.llama.model import Model
    from constrain.server.embeddings.request import EmbeddingRequest, Encoding
    from constrain.server.requests.texts import Text
    from constrain.server.serving.endpoint import Serving

_log = logging.getLogger("constrain.server")


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of a request's texts.

    Attributes:
        vectors: one for each text.
        tokens: tokens of all texts.
        load_seconds: seconds that the request waited until the model was loaded.
        begun: time of the request's arrival (``time.monotonic()``).
    """

    vectors: Sequence[NDArray[np.float32]]
    tokens: int
    load_seconds: float
    begun: float


class Embeddings(Endpoint):
    """An endpoint for vectors. Texts of all its requests are read one after the other, while answers are written.

    Args:
        serving: models, generator and settings.
        read: function that reads a parsed body; can be pickled.
        write: function that makes the response.
    """

    def __init__(
        self,
        serving: Serving,
        read: Callable[[Mapping[str, Any]], EmbeddingRequest] = read_embedding_request,
        write: Callable[[EmbeddingRequest, Embedded], dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(serving)
        self._read = read
        self._write = write or _response
        self._thread = start_pool(1, "constrain-embed")

    async def answer(self, body: bytes, request: Request, send: Send) -> None:
        """Answers a request; see ``Endpoint``."""
        generator = self._serving.generator
        loop = asyncio.get_running_loop()
        with generator.admit(1), generator.session() as session:
            asked = await self.read(body, self._read, session)
            async with self._serving.models.lease(self.find(asked.model)) as served:
                inputs = await loop.run_in_executor(self._thread, partial(_prepare, served.model, asked))
                vectors = [
                    await loop.run_in_executor(self._thread, partial(_embed, served.model, tokens)) for tokens in inputs
                ]
            count = sum(map(len, inputs))
            self._serving.metrics.add_embedded(count)
            embedded = Embedded(vectors, count, served.load_seconds, current.get().begun)
            document = await generator.run_in_thread(partial(self._write, asked, embedded))
        await JSONResponse(document)(request.scope, request.receive, send)


def _prepare(model: Model, asked: EmbeddingRequest) -> list[list[int]]:
    """Returns the tokens of all texts. Raises ``ApiError``."""
    try:
        require_dimensions(asked, model.embedder.size)
        return [_tokens(model, text, asked) for text in asked.inputs]
    except ModelError as error:
        raise _convert_error(model, error) from error


def _tokens(model: Model, text: Text, asked: EmbeddingRequest) -> list[int]:
    """Returns the tokens of a text, cut if the request allows it. Raises ``ApiError`` if there are too many."""
    longest, size, place = longest_token(model.vocabulary), text_size(text), asked.field
    most = min(asked.max_tokens or model.n_ctx, model.n_ctx)
    if size > most * longest:  # too long to fit, so its tokens need not be counted
        if not asked.truncate:
            there = f"there are {size} bytes of text in an input"
            raise context_overflow(place, f"it has {most} tokens of at most {longest} bytes, and {there}")
        text = text[: (most + 1) * longest]  # a text has no more characters than bytes
    tokens = text_tokens(model, text, place, whole=True)
    if len(tokens) <= most:
        return tokens
    if not asked.truncate:
        raise context_overflow(place, f"it has {most} tokens, and an input resulted in {len(tokens)} tokens")
    end = tokens[-1:] if isinstance(text, str) and model.tokenizer.adds_eos else []
    return [*tokens[: most - len(end)], *end]


def _embed(model: Model, tokens: Sequence[int]) -> NDArray[np.float32]:
    try:
        return model.embedder.embed(tokens)
    except ModelError as error:
        if not model.is_closed:
            _log.exception("an embedding failed")
            raise failure() from error
        raise _convert_error(model, error) from error


def _convert_error(model: Model, error: ModelError) -> ApiError:
    if model.is_closed:
        return unavailable("The model was closed.")
    return ApiError(f"The model makes no embeddings: {error}", param="model", code="invalid_value")


def _response(asked: EmbeddingRequest, embedded: Embedded) -> dict[str, Any]:
    response = CreateEmbeddingResponse(
        object="list",
        # The openai package's type has numbers only: its clients decode base64 before they make it.
        data=[
            Embedding.model_construct(object="embedding", index=index, embedding=_encode(vector, asked.encoding))
            for index, vector in enumerate(embedded.vectors)
        ],
        model=asked.model,
        usage=Usage(prompt_tokens=embedded.tokens, total_tokens=embedded.tokens),
    )
    return response.model_dump(mode="json", warnings=False)


def _encode(vector: NDArray[np.float32], encoding: Encoding) -> Any:
    if encoding == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return vector.tolist()
