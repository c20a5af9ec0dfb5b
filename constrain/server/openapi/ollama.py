"""The bodies of Ollama's API in the OpenAPI description."""

from __future__ import annotations

from constrain.server.ollama.names import NamedBody
from constrain.server.ollama.request import ChatBody, GenerateBody
from constrain.server.ollama.texts import EmbedBody, OldEmbeddingsBody
from constrain.server.openapi.bodies import EXTENSION
from constrain.server.openapi.ollama_types import (
    OllamaChatAnswer,
    OllamaChatBody,
    OllamaGenerateAnswer,
    OllamaStatus,
    OllamaVectors,
)
from constrain.server.openapi.shapes import Schema, Shape, WrittenShape
from constrain.server.requests.tools import KINDS

LINE_ERROR: dict[str, Schema] = {
    "OllamaError": {
        "type": "object",
        "properties": {"error": {"type": "string", "minLength": 1}},
        "required": ["error"],
    }
}
"""The schema of errors, by name."""

_DURATION: Schema = {"type": "integer", "minimum": 0}
_PARTS = "OllamaMessage OllamaCall CalledFunction OllamaTool OllamaFunction"
_ANSWER: dict[str, Schema] = {
    **EXTENSION,
    **dict.fromkeys(("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), _DURATION),
}

OLLAMA_CHAT_REQUEST = Shape(
    "OllamaChatRequest", OllamaChatBody, "request", _PARTS, open={"tools": KINDS}, fields=ChatBody
)
OLLAMA_CHAT_ANSWER = Shape("OllamaChatAnswer", OllamaChatAnswer, "response", _PARTS, own={"": _ANSWER})
OLLAMA_GENERATE_REQUEST = WrittenShape("OllamaGenerateRequest", {"OllamaGenerateRequest": GenerateBody.describe()})
OLLAMA_GENERATE_ANSWER = Shape("OllamaGenerateAnswer", OllamaGenerateAnswer, "response", own={"": _ANSWER})
OLLAMA_EMBED_REQUEST = WrittenShape("OllamaEmbedRequest", {"OllamaEmbedRequest": EmbedBody.describe()})
OLLAMA_OLD_EMBED_REQUEST = WrittenShape(
    "OllamaEmbeddingsRequest", {"OllamaEmbeddingsRequest": OldEmbeddingsBody.describe()}
)
OLLAMA_VECTORS = Shape("OllamaEmbeddings", OllamaVectors, "response")
OLLAMA_NAMED = WrittenShape("OllamaModelRequest", {"OllamaModelRequest": NamedBody.describe()})
OLLAMA_STATUS = Shape("OllamaStatus", OllamaStatus, "response")
