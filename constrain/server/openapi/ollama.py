"""The operations of Ollama's API and their bodies, for the OpenAPI description."""

from __future__ import annotations

from functools import partial

from constrain.server.ollama.lines import LINES
from constrain.server.ollama.names import NamedBody
from constrain.server.ollama.request import ChatBody, GenerateBody
from constrain.server.ollama.texts import EmbedBody, OldEmbeddingsBody
from constrain.server.openapi.bodies import EXTENSION
from constrain.server.openapi.operation import Operation, asks, in_path
from constrain.server.openapi.shapes import (
    COUNT,
    FLAG,
    OBJECT,
    TEXT,
    Schema,
    WrittenShape,
    array_of,
    object_schema,
    of_other_types,
    or_null,
)
from constrain.server.requests.tools import KINDS

LINE_ERROR = WrittenShape("OllamaError", object_schema(error={"type": "string", "minLength": 1}))

_INTEGER: Schema = {"type": "integer"}
_VECTOR = array_of({"type": "number"})
_ROLE: Schema = {"type": "string", "enum": ["system", "user", "assistant", "tool"]}
_ARGUMENTS: Schema = {"anyOf": [OBJECT, TEXT]}
_CALLED = {"name": TEXT, "arguments": _ARGUMENTS}


def _message(*, may_be_null: bool) -> Schema:
    """Returns the schema of a message of a request, whose members may be null, or of an answer."""

    def some(schema: Schema) -> Schema:
        return or_null(schema) if may_be_null else schema

    call = object_schema({"id": some(TEXT)}, function=object_schema({"index": some(_INTEGER)}, **_CALLED))
    texts = dict.fromkeys(("content", "thinking", "tool_name", "tool_call_id"), some(TEXT))
    return object_schema({**texts, "tool_calls": some(array_of(call))}, role=_ROLE)


_FUNCTION = object_schema({"description": or_null(TEXT), "parameters": or_null(OBJECT)}, name=TEXT)
_TOOL = object_schema({"type": or_null({"const": "function", "type": "string"})}, function=_FUNCTION)
_CHAT = ChatBody.describe()
_CHAT["properties"] |= {
    "messages": or_null(array_of(_message(may_be_null=True))),
    "tools": or_null(array_of({"anyOf": [_TOOL, of_other_types(*KINDS)]})),
}
_DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
_LAST: dict[str, Schema] = {
    "done_reason": {"type": "string", "enum": ["stop", "length", "load", "unload"]},
    **dict.fromkeys(("prompt_eval_count", "eval_count"), _INTEGER),
    **dict.fromkeys(_DURATIONS, COUNT),
    "logprobs": array_of(OBJECT),
    **EXTENSION,
}
_answer = partial(object_schema, model=TEXT, created_at=TEXT, done=FLAG)
_CHAT_ANSWER = WrittenShape("OllamaChatAnswer", _answer(_LAST, message=_message(may_be_null=False)))
_GENERATE_ANSWER = WrittenShape("OllamaGenerateAnswer", _answer({**_LAST, "thinking": TEXT}, response=TEXT))
_VECTORS = object_schema(
    model=TEXT,
    embeddings=array_of(_VECTOR),
    total_duration=_INTEGER,
    load_duration=_INTEGER,
    prompt_eval_count=_INTEGER,
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
        _CHAT_ANSWER, WrittenShape("OllamaChatRequest", _CHAT), _CHAT_ANSWER,
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
