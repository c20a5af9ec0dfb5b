"""``POST /v1/embeddings``: the dialect, and the response."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from openai.types import CreateEmbeddingResponse, Embedding
from openai.types.create_embedding_response import Usage
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
