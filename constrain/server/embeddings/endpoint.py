"""``POST /v1/embeddings``: the dialect, and the response."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from constrain.server.embeddings.request import EmbeddingBody
from constrain.server.serving.dialect import Dialect
from constrain.server.serving.embedding import Embeddings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from constrain.server.serving.embedding import Embedded, EmbeddingRequest, Encoding
    from constrain.server.serving.endpoint import Serving


def _routes(serving: Serving) -> list[Route]:
    return [Route("/v1/embeddings", Embeddings(serving, EmbeddingBody, _response), methods=["POST"])]


EMBEDDINGS = Dialect(_routes, (EmbeddingBody,))
"""OpenAI's embeddings."""


def _response(asked: EmbeddingRequest, embedded: Embedded) -> dict[str, Any]:
    data = [
        {"embedding": _encode(vector, asked.encoding), "index": index, "object": "embedding"}
        for index, vector in enumerate(embedded.vectors)
    ]
    usage = {"prompt_tokens": embedded.tokens, "total_tokens": embedded.tokens}
    return {"data": data, "model": asked.model, "object": "list", "usage": usage}


def _encode(vector: NDArray[np.float32], encoding: Encoding) -> Any:
    if encoding == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return vector.tolist()
