"""The request and responses of each path and method of Ollama's API, for the OpenAPI description."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from constrain.server.ollama.lines import LINES
from constrain.server.openapi.ollama import (
    OLLAMA_CHAT_ANSWER,
    OLLAMA_CHAT_REQUEST,
    OLLAMA_EMBED_REQUEST,
    OLLAMA_GENERATE_ANSWER,
    OLLAMA_GENERATE_REQUEST,
    OLLAMA_NAMED,
    OLLAMA_OLD_EMBED_REQUEST,
    OLLAMA_STATUS,
    OLLAMA_VECTORS,
)
from constrain.server.openapi.operation import Operation, asks, in_path, object_schema

if TYPE_CHECKING:
    from constrain.server.openapi.shapes import Schema

_TEXT: Schema = {"type": "string"}

_MODELS = object_schema(
    models={
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "name": _TEXT,
                "model": _TEXT,
                "modified_at": _TEXT,
                "size": {"type": "integer", "minimum": 0},
                "digest": _TEXT,
                "details": {"type": "object"},
            },
            "required": ["name", "model", "size", "digest", "details"],
        },
    }
)

_DESCRIPTION = object_schema(
    template=_TEXT,
    details={"type": "object"},
    model_info={"type": "object"},
    capabilities={"type": "array", "items": {"enum": ["completion", "tools", "thinking", "embedding"]}},
    modified_at=_TEXT,
)

_one = partial(Operation, error_forms=("OllamaError",))
_asks = partial(asks, error_forms=("OllamaError",))

_REFUSED = (
    ("POST", "/api/create", "createModel", "Always refused: this server makes no models."),
    ("POST", "/api/copy", "copyModel", "Always refused: this server copies no models."),
    ("DELETE", "/api/delete", "deleteModel", "Always refused: this server deletes no models."),
    ("POST", "/api/push", "pushModel", "Always refused: this server sends no models anywhere."),
)

OLLAMA_OPERATIONS = (
    _asks(
        "/api/chat",
        "ollamaChat",
        "Answers a conversation, as Ollama does.",
        OLLAMA_CHAT_ANSWER,
        OLLAMA_CHAT_REQUEST,
        OLLAMA_CHAT_ANSWER,
        stream_type=LINES,
    ),
    _asks(
        "/api/generate",
        "ollamaGenerate",
        "Answers a prompt, as Ollama does.",
        OLLAMA_GENERATE_ANSWER,
        OLLAMA_GENERATE_REQUEST,
        OLLAMA_GENERATE_ANSWER,
        stream_type=LINES,
    ),
    _asks(
        "/api/embed", "ollamaEmbed", "Returns vectors for texts, as Ollama does.", OLLAMA_VECTORS, OLLAMA_EMBED_REQUEST
    ),
    _asks(
        "/api/embeddings",
        "ollamaEmbeddings",
        "Returns the vector of one text.",
        object_schema(embedding={"type": "array", "items": {"type": "number"}}),
        OLLAMA_OLD_EMBED_REQUEST,
    ),
    _one("GET", "/api/tags", "ollamaTags", "Lists the models for Ollama's clients.", _MODELS, (500,)),
    _one("GET", "/api/ps", "ollamaRunning", "Lists the loaded models.", _MODELS, (500,)),
    _asks("/api/show", "ollamaShow", "Describes a model and its file.", _DESCRIPTION, OLLAMA_NAMED),
    _asks(
        "/api/pull",
        "ollamaPull",
        "Succeeds for a model that is served; others are not downloaded.",
        OLLAMA_STATUS,
        OLLAMA_NAMED,
        OLLAMA_STATUS,
        stream_type=LINES,
    ),
    _one(
        "GET",
        "/api/version",
        "ollamaVersion",
        "Returns the version of Ollama whose API this is.",
        object_schema(version=_TEXT),
    ),
    *(_one(method, path, name, summary, None, (400,)) for method, path, name, summary in _REFUSED),
    _one(
        "POST",
        "/api/blobs/{digest}",
        "createBlob",
        "Always refused: this server takes no files.",
        None,
        (400,),
        parameters=(in_path("digest", "Of the file.", _TEXT),),
    ),
)
