"""Vectors for texts: the endpoint of every dialect that has one."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from constrain.errors import ModelError
from constrain.fields.values import FieldError, invalid
from constrain.server.http.account import current
from constrain.server.http.errors import ApiError, context_overflow, failure, unavailable
from constrain.server.requests.texts import text_tokens
from constrain.server.serving.endpoint import Inspecting
from constrain.server.serving.sizes import longest_token, text_size
from constrain.thread_pools import start_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from constrain.llama.model import Model
    from constrain.server.requests.declared import Body
    from constrain.server.requests.texts import Text
    from constrain.server.sandbox.session import Session
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.models import ServedModel

_log = logging.getLogger("constrain.server")


Encoding = Literal["float", "base64"]


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """The checked fields of a request for embeddings.

    Attributes:
        model: name of the model.
        inputs: non-empty texts.
        encoding: encoding of the vectors: numbers, or the base64 of 32-bit floats, little-endian.
        dimensions: numbers per vector; ``None`` for the model's own.
        field: name of the field with the texts, for errors.
        max_tokens: most tokens of a text; ``None`` for as many as the model's context holds.
        truncate: whether longer texts are cut; otherwise they are refused.
    """

    model: str
    inputs: tuple[Text, ...]
    encoding: Encoding
    dimensions: int | None
    field: str = "input"
    max_tokens: int | None = None
    truncate: bool = False


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


class Embeddings(Inspecting):
    """An endpoint for vectors. Texts of all its requests are read one after the other, while answers are written.

    ``write``: function that makes the response.
    """

    def __init__(
        self, serving: Serving, body: type[Body], write: Callable[[EmbeddingRequest, Embedded], dict[str, Any]]
    ) -> None:
        super().__init__(serving, body)
        self._write = write
        self._thread = start_pool(1, "constrain-embed")

    async def inspect(self, asked: EmbeddingRequest, served: ServedModel, _: Session) -> dict[str, Any]:
        """Returns the response; see ``Inspecting``."""
        loop = asyncio.get_running_loop()
        inputs = await loop.run_in_executor(self._thread, partial(_prepare, served.model, asked))
        vectors = [await loop.run_in_executor(self._thread, partial(_embed, served.model, tokens)) for tokens in inputs]
        count = sum(map(len, inputs))
        self._serving.metrics.add_embedded(count)
        embedded = Embedded(vectors, count, served.load_seconds, current.get().begun)
        return await self._serving.generator.run_in_thread(partial(self._write, asked, embedded))


def _prepare(model: Model, asked: EmbeddingRequest) -> list[list[int]]:
    """Returns the tokens of all texts. Raises ``ApiError``."""
    try:
        _require_dimensions(asked, model.embedder.size)
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


def _convert_error(model: Model, error: ModelError) -> ApiError | FieldError:
    if model.is_closed:
        return unavailable("The model was closed.")
    return FieldError(f"The model makes no embeddings: {error}", param="model")


def _require_dimensions(asked: EmbeddingRequest, size: int) -> None:
    """Raises ``ApiError`` if the request asks for another number of dimensions than the model has.

    Vectors are never shortened: the first numbers carry the meaning only in models trained for it, and their files do
    not say so.
    """
    if asked.dimensions not in (None, size):
        raise invalid("dimensions", f"the vectors of '{asked.model}' have {size}, and are not shortened.")
