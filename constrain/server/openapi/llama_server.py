"""The operations of llama-server and LM Studio, and their bodies, for the OpenAPI description."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from constrain.server.llama_server.request import CompletionBody, DetokenizeBody, InfillBody, TokenizeBody
from constrain.server.openapi.bodies import CHAT_REQUEST, EXTENSION, PROGRESS
from constrain.server.openapi.operation import Operation, asks, in_path, in_query
from constrain.server.openapi.shapes import COUNT, FLAG, OBJECT, TEXT, WrittenShape, array_of, object_schema

if TYPE_CHECKING:
    from constrain.server.openapi.shapes import Schema

_PIECE = object_schema(PROGRESS, index=COUNT, content=TEXT, stop={"const": False})
_LAST = object_schema(
    EXTENSION,
    index=COUNT,
    content=TEXT,
    tokens=array_of(COUNT),
    stop={"const": True},
    model=TEXT,
    tokens_predicted=COUNT,
    tokens_evaluated=COUNT,
    tokens_cached=COUNT,
    truncated={"const": False},
    stop_type={"enum": ["eos", "limit", "word"]},
    stopping_word=TEXT,
    timings={"type": "object", "additionalProperties": {"type": "number"}},
)
_COMPLETION = WrittenShape("LlamaCompletion", _LAST)
_EVENT = WrittenShape("LlamaCompletionPiece", {"anyOf": [_PIECE, _LAST]})

_PROPERTIES = object_schema(
    default_generation_settings=object_schema(n_ctx=COUNT),
    total_slots=COUNT,
    model_alias=TEXT,
    model_path=TEXT,
    modalities=OBJECT,
    chat_template=TEXT,
    bos_token=TEXT,
    eos_token=TEXT,
    build_info=TEXT,
)
_SLOT = object_schema(id=COUNT, n_ctx=COUNT, is_processing=FLAG)
_STUDIO_MODEL = object_schema(
    id=TEXT,
    object={"const": "model"},
    type={"const": "llm"},
    publisher=TEXT,
    arch=TEXT,
    compatibility_type={"const": "gguf"},
    quantization=TEXT,
    state={"enum": ["loaded", "not-loaded"]},
    max_context_length=COUNT,
)
_STUDIO_MODELS = object_schema(object={"const": "list"}, data=array_of(_STUDIO_MODEL))
_TOKENS = object_schema(tokens=array_of({"anyOf": [COUNT, OBJECT]}), count=COUNT, max_model_len=COUNT)


def _tokenize_body() -> Schema:
    described = TokenizeBody.describe()
    messages = {**array_of(OBJECT), "description": "Instead of a text: with the other fields of ChatRequest."}
    return {**described, "properties": {**described["properties"], "messages": messages}}


_loaded = partial(
    Operation,
    "GET",
    errors=(400, 404, 500, 503),
    parameters=(in_query("model", "Name of a model, where there are several.", TEXT),),
)
_studio = partial(Operation, "GET", error_forms=("OllamaError",))

LLAMA_SERVER_OPERATIONS = (
    asks(
        "/completion", "llamaCompletion", "Continues a text, as llama-server does.",
        _COMPLETION, WrittenShape("LlamaCompletionRequest", CompletionBody.describe()), _EVENT,
    ),
    asks(
        "/infill", "llamaInfill", "Fills a gap in a text, if the model has tokens for it.",
        _COMPLETION, WrittenShape("LlamaInfillRequest", InfillBody.describe()), _EVENT,
    ),
    asks(
        "/tokenize", "llamaTokenize", "Returns the tokens of a text, or of the prompt of a chat completion.",
        _TOKENS, WrittenShape("LlamaTokenizeRequest", _tokenize_body()),
    ),
    asks(
        "/detokenize", "llamaDetokenize", "Returns the text of tokens.", object_schema(content=TEXT, prompt=TEXT),
        WrittenShape("LlamaDetokenizeRequest", DetokenizeBody.describe()),
    ),
    asks(
        "/apply-template", "llamaApplyTemplate",
        "Returns the prompt that the same request to /v1/chat/completions has.",
        object_schema(prompt=TEXT), CHAT_REQUEST,
    ),
    _loaded("/props", "llamaProperties", "Describes a model, as llama-server does.", _PROPERTIES),
    _loaded("/slots", "llamaSlots", "Lists the places for answers of a model.", array_of(_SLOT)),
    _studio("/api/v0/models", "studioModels", "Lists the models, as LM Studio does.", _STUDIO_MODELS, (500,)),
    _studio(
        "/api/v0/models/{name}", "studioModel", "Describes a model, as LM Studio does.", _STUDIO_MODEL, (404, 500),
        parameters=(in_path("name", "Of the model.", TEXT),),
    ),
)  # fmt: skip
