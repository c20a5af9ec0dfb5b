"""The bodies of Ollama's API in the OpenAPI description."""

from __future__ import annotations

from constrain.generation.options import TOP_LOGPROBS
from constrain.llama.decoding.sampling import LISTS, OPTIONS
from constrain.server.ollama.options import OPTION_RANGES
from constrain.server.openapi.bodies import (
    BEGINNING,
    CONTENT,
    EXTENSION,
    FLAG,
    PROOF,
    SAMPLING,
    THINKING,
    range_schema,
)
from constrain.server.openapi.ollama_types import (
    OllamaChatAnswer,
    OllamaChatBody,
    OllamaEmbedBody,
    OllamaGenerateAnswer,
    OllamaGenerateBody,
    OllamaNamed,
    OllamaOldEmbedBody,
    OllamaStatus,
    OllamaVectors,
)
from constrain.server.openapi.shapes import Schema, Shape
from constrain.server.requests.limits import RANGES
from constrain.server.requests.tools import KINDS

LINE_ERROR: dict[str, Schema] = {
    "OllamaError": {
        "type": "object",
        "properties": {"error": {"type": "string", "minLength": 1}},
        "required": ["error"],
    }
}
"""The schema of errors, by name."""

_NAME: Schema = {"$ref": "#/components/schemas/TaggedModelName"}
_FORMAT: Schema = {"anyOf": [{"type": "object"}, {"enum": ["json", ""]}, {"type": "null"}]}
_DURATION: Schema = {"type": "integer", "minimum": 0}


def _option(name: str, kind: str) -> Schema:
    """Returns the schema of an option for sampling."""
    low, high = OPTION_RANGES[name]
    found: Schema = {"type": [kind, "null"], "minimum": low}
    return found if high is None else {**found, "maximum": high}


_OPTIONS: Schema = {
    "type": ["object", "null"],
    "properties": {
        **{name: _option(name, "integer" if option.is_whole else "number") for name, option in OPTIONS.items()},
        **{name: SAMPLING[name] for name in ("top_k", *LISTS)},
        "num_ctx": {"type": ["integer", "null"]},
        "num_predict": {"type": ["integer", "null"]},
        "stop": {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": OPTION_RANGES["stop"][1]},
                {"type": "null"},
            ]
        },
    },
}
_ASKING: dict[str, Schema] = {
    **CONTENT,
    "cache_prompt": SAMPLING["cache_prompt"],
    **PROOF,
    "format": _FORMAT,
    "keep_alive": {},
    "model": _NAME,
    "options": _OPTIONS,
    "prompt_cache_retention": SAMPLING["prompt_cache_retention"],
    "stream": FLAG,
    **THINKING,
    "top_logprobs": range_schema(TOP_LOGPROBS, "integer"),
}
_PARTS = frozenset({"OllamaMessage", "OllamaCall", "CalledFunction", "OllamaTool", "OllamaFunction"})
_ANSWER: dict[str, Schema] = {
    **EXTENSION,
    **dict.fromkeys(("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), _DURATION),
}

OLLAMA_CHAT_REQUEST = Shape(
    "OllamaChatRequest",
    OllamaChatBody,
    "request",
    _PARTS,
    members={name: {} for name in OllamaChatBody.__annotations__},
    own={"": {**_ASKING, **BEGINNING, "tool_choice": {"type": ["string", "object", "null"]}}},
    open={"tools": KINDS},
)
OLLAMA_CHAT_ANSWER = Shape("OllamaChatAnswer", OllamaChatAnswer, "response", _PARTS, own={"": _ANSWER})
OLLAMA_GENERATE_REQUEST = Shape("OllamaGenerateRequest", OllamaGenerateBody, "request", own={"": _ASKING})
OLLAMA_GENERATE_ANSWER = Shape("OllamaGenerateAnswer", OllamaGenerateAnswer, "response", own={"": _ANSWER})
OLLAMA_EMBED_REQUEST = Shape(
    "OllamaEmbedRequest",
    OllamaEmbedBody,
    "request",
    own={
        "": {
            "dimensions": {"type": ["integer", "null"], "minimum": 1},
            "input": {
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": RANGES["input"][1]},
                ]
            },
            "model": _NAME,
            "options": _OPTIONS,
        }
    },
)
OLLAMA_OLD_EMBED_REQUEST = Shape(
    "OllamaEmbeddingsRequest",
    OllamaOldEmbedBody,
    "request",
    own={"": {"model": _NAME, "options": _OPTIONS}},
)
OLLAMA_VECTORS = Shape("OllamaEmbeddings", OllamaVectors, "response")
OLLAMA_NAMED = Shape(
    "OllamaModelRequest", OllamaNamed, "request", own={"": {"model": _NAME, "name": {"type": ["string", "null"]}}}
)
OLLAMA_STATUS = Shape("OllamaStatus", OllamaStatus, "response")
