"""``POST /api/embed`` and its predecessor ``POST /api/embeddings``: vectors for texts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from constrain.server.ollama.lines import nanoseconds
from constrain.server.ollama.names import served_name
from constrain.server.serving.embedding import Embeddings

if TYPE_CHECKING:
    from constrain.server.serving.embedding import Embedded, EmbeddingRequest


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
