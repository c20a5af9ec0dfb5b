"""The operations of Ollama's API and their bodies, for the OpenAPI description."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from typing_extensions import NotRequired, Required, TypedDict

from constrain.server.ollama.lines import LINES
from constrain.server.ollama.names import NamedBody
from constrain.server.ollama.request import ChatBody, GenerateBody
from constrain.server.ollama.texts import EmbedBody, OldEmbeddingsBody
from constrain.server.openapi.bodies import EXTENSION
from constrain.server.openapi.operation import Operation, asks, in_path
from constrain.server.openapi.shapes import (
    COUNT,
    OBJECT,
    TEXT,
    Shape,
    WrittenShape,
    array_of,
    object_schema,
)
from constrain.server.requests.tools import KINDS

LINE_ERROR = WrittenShape("OllamaError", object_schema(error={"type": "string", "minLength": 1}))

_VECTOR = array_of({"type": "number"})
_DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


class CalledFunction(TypedDict, total=False):
    """The function of a call."""

    index: int
    name: Required[str]
    arguments: Required[dict[str, Any] | str]


class OllamaCall(TypedDict, total=False):
    """A call of a message."""

    id: str
    function: Required[CalledFunction]


class OllamaMessage(TypedDict, total=False):
    """A message of a conversation, or of an answer."""

    role: Required[Literal["system", "user", "assistant", "tool"]]
    content: str
    thinking: str
    tool_calls: list[OllamaCall]
    tool_name: str
    tool_call_id: str


class OllamaFunction(TypedDict, total=False):
    """The function of a tool."""

    name: Required[str]
    description: str
    parameters: dict[str, Any]


class OllamaTool(TypedDict):
    """A tool."""

    type: NotRequired[Literal["function"]]
    function: OllamaFunction


class _Lists(TypedDict, total=False):
    messages: list[OllamaMessage]
    tools: list[OllamaTool]


class _Answer(TypedDict, total=False):
    model: Required[str]
    created_at: Required[str]
    done: Required[bool]
    done_reason: Literal["stop", "length", "load", "unload"]
    total_duration: int
    load_duration: int
    prompt_eval_count: int
    prompt_eval_duration: int
    eval_count: int
    eval_duration: int
    logprobs: list[dict[str, Any]]


class _Chat(_Answer):
    message: OllamaMessage


class _Generate(_Answer, total=False):
    response: Required[str]
    thinking: str


_PARTS = "OllamaMessage OllamaCall CalledFunction OllamaTool OllamaFunction"
_OWN: dict[str, Any] = {"": {**EXTENSION, **dict.fromkeys(_DURATIONS, COUNT)}}
_CHAT = Shape("OllamaChatRequest", _Lists, "request", _PARTS, open={"tools": KINDS}, fields=ChatBody)
_CHAT_ANSWER = Shape("OllamaChatAnswer", _Chat, "response", _PARTS, own=_OWN)
_GENERATE_ANSWER = Shape("OllamaGenerateAnswer", _Generate, "response", own=_OWN)
_VECTORS = object_schema(
    model=TEXT,
    embeddings=array_of(_VECTOR),
    **{name: {"type": "integer"} for name in ("total_duration", "load_duration", "prompt_eval_count")},
)
_NAMED = WrittenShape("OllamaModelRequest", NamedBody.describe())
_STATUS = WrittenShape("OllamaStatus", object_schema(status={"type": "string", "const": "success"}))
_MODELS = object_schema(
    models=array_of(
        object_schema({"modified_at": TEXT}, name=TEXT, model=TEXT, size=COUNT, digest=TEXT, details=OBJECT)
    )
)
_DESCRIPTION = object_schema(
    template=TEXT,
    details=OBJECT,
    model_info=OBJECT,
    capabilities=array_of({"enum": ["completion", "tools", "thinking", "embedding"]}),
    modified_at=TEXT,
)

_one = partial(Operation, error_forms=(LINE_ERROR.name,))
_asks = partial(asks, error_forms=(LINE_ERROR.name,))
_streams = partial(_asks, stream_type=LINES)
_refuses = partial(_one, response=None, errors=(400,))

OLLAMA_OPERATIONS = (
    _streams(
        "/api/chat", "ollamaChat", "Answers a conversation, as Ollama does.",
        _CHAT_ANSWER, _CHAT, _CHAT_ANSWER,
    ),
    _streams(
        "/api/generate", "ollamaGenerate", "Answers a prompt, as Ollama does.",
        _GENERATE_ANSWER, WrittenShape("OllamaGenerateRequest", GenerateBody.describe()), _GENERATE_ANSWER,
    ),
    _asks(
        "/api/embed", "ollamaEmbed", "Returns vectors for texts, as Ollama does.",
        WrittenShape("OllamaEmbeddings", _VECTORS), WrittenShape("OllamaEmbedRequest", EmbedBody.describe()),
    ),
    _asks(
        "/api/embeddings", "ollamaEmbeddings", "Returns the vector of one text.",
        object_schema(embedding=_VECTOR), WrittenShape("OllamaEmbeddingsRequest", OldEmbeddingsBody.describe()),
    ),
    _one("GET", "/api/tags", "ollamaTags", "Lists the models for Ollama's clients.", _MODELS, (500,)),
    _one("GET", "/api/ps", "ollamaRunning", "Lists the loaded models.", _MODELS, (500,)),
    _asks("/api/show", "ollamaShow", "Describes a model and its file.", _DESCRIPTION, _NAMED),
    _streams(
        "/api/pull", "ollamaPull", "Succeeds for a model that is served; others are not downloaded.",
        _STATUS, _NAMED, _STATUS,
    ),
    _one(
        "GET", "/api/version", "ollamaVersion", "Returns the version of Ollama whose API this is.",
        object_schema(version=TEXT),
    ),
    _refuses("POST", "/api/create", "createModel", "Always refused: this server makes no models."),
    _refuses("POST", "/api/copy", "copyModel", "Always refused: this server copies no models."),
    _refuses("DELETE", "/api/delete", "deleteModel", "Always refused: this server deletes no models."),
    _refuses("POST", "/api/push", "pushModel", "Always refused: this server sends no models anywhere."),
    _refuses(
        "POST", "/api/blobs/{digest}", "createBlob", "Always refused: this server takes no files.",
        parameters=(in_path("digest", "Of the file.", TEXT),),
    ),
)  # fmt: skip
