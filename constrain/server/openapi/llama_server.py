"""The operations of llama-server and LM Studio, and their bodies, for the OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.server.llama_server.request import CompletionBody, DetokenizeBody, InfillBody, TokenizeBody
from constrain.server.openapi.bodies import CHAT_REQUEST, EXTENSION
from constrain.server.openapi.operation import Operation, asks, in_path, in_query, object_schema
from constrain.server.openapi.shapes import WrittenShape

if TYPE_CHECKING:
    from constrain.server.openapi.shapes import Schema

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_IDS: Schema = {"type": "array", "items": _COUNT}
_COMPLETION_REQUEST = WrittenShape("LlamaCompletionRequest", {"LlamaCompletionRequest": CompletionBody.describe()})
_INFILL_REQUEST = WrittenShape("LlamaInfillRequest", {"LlamaInfillRequest": InfillBody.describe()})
_TOKENIZE_REQUEST = WrittenShape("LlamaTokenizeRequest", {"LlamaTokenizeRequest": TokenizeBody.describe()})
_DETOKENIZE_REQUEST = WrittenShape("LlamaDetokenizeRequest", {"LlamaDetokenizeRequest": DetokenizeBody.describe()})

_PIECE = object_schema(index=_COUNT, content=_TEXT, stop={"const": False})
_LAST = object_schema(
    index=_COUNT,
    content=_TEXT,
    tokens=_IDS,
    stop={"const": True},
    model=_TEXT,
    tokens_predicted=_COUNT,
    tokens_evaluated=_COUNT,
    tokens_cached=_COUNT,
    truncated={"const": False},
    stop_type={"enum": ["eos", "limit", "word"]},
    stopping_word=_TEXT,
    timings={"type": "object", "additionalProperties": {"type": "number"}},
)
_LAST["properties"] |= EXTENSION
_COMPLETION = WrittenShape("LlamaCompletion", {"LlamaCompletion": _LAST})
_EVENT = WrittenShape("LlamaCompletionPiece", {"LlamaCompletionPiece": {"anyOf": [_PIECE, _LAST]}})

_PROPERTIES = object_schema(
    default_generation_settings=object_schema(n_ctx=_COUNT),
    total_slots=_COUNT,
    model_alias=_TEXT,
    model_path=_TEXT,
    modalities={"type": "object"},
    chat_template=_TEXT,
    bos_token=_TEXT,
    eos_token=_TEXT,
    build_info=_TEXT,
)
_SLOT = object_schema(id=_COUNT, n_ctx=_COUNT, is_processing={"type": "boolean"})
_STUDIO_MODEL = object_schema(
    id=_TEXT,
    object={"const": "model"},
    type={"const": "llm"},
    publisher=_TEXT,
    arch=_TEXT,
    compatibility_type={"const": "gguf"},
    quantization=_TEXT,
    state={"enum": ["loaded", "not-loaded"]},
    max_context_length=_COUNT,
)
_NAMED = in_query("model", "Name of a model, where there are several.", _TEXT)
_LOADING = (400, 404, 500, 503)

LLAMA_SERVER_OPERATIONS = (
    asks(
        "/completion",
        "llamaCompletion",
        "Continues a text, as llama-server does.",
        _COMPLETION,
        _COMPLETION_REQUEST,
        _EVENT,
    ),
    asks(
        "/infill",
        "llamaInfill",
        "Fills a gap in a text, if the model has tokens for it.",
        _COMPLETION,
        _INFILL_REQUEST,
        _EVENT,
    ),
    asks(
        "/tokenize",
        "llamaTokenize",
        "Returns the tokens of a text.",
        object_schema(
            tokens={"type": "array", "items": {"anyOf": [_COUNT, {"type": "object"}]}},
            count=_COUNT,
            max_model_len=_COUNT,
        ),
        _TOKENIZE_REQUEST,
    ),
    asks(
        "/detokenize",
        "llamaDetokenize",
        "Returns the text of tokens.",
        object_schema(content=_TEXT, prompt=_TEXT),
        _DETOKENIZE_REQUEST,
    ),
    asks(
        "/apply-template",
        "llamaApplyTemplate",
        "Returns the prompt that the same request to /v1/chat/completions has.",
        object_schema(prompt=_TEXT),
        CHAT_REQUEST,
    ),
    Operation(
        "GET",
        "/props",
        "llamaProperties",
        "Describes a model, as llama-server does.",
        _PROPERTIES,
        _LOADING,
        parameters=(_NAMED,),
    ),
    Operation(
        "GET",
        "/slots",
        "llamaSlots",
        "Lists the places for answers of a model.",
        {"type": "array", "items": _SLOT},
        _LOADING,
        parameters=(_NAMED,),
    ),
    Operation(
        "GET",
        "/api/v0/models",
        "studioModels",
        "Lists the models, as LM Studio does.",
        object_schema(object={"const": "list"}, data={"type": "array", "items": _STUDIO_MODEL}),
        (500,),
        error_forms=("OllamaError",),
    ),
    Operation(
        "GET",
        "/api/v0/models/{name}",
        "studioModel",
        "Describes a model, as LM Studio does.",
        _STUDIO_MODEL,
        (404, 500),
        parameters=(in_path("name", "Of the model.", _TEXT),),
        error_forms=("OllamaError",),
    ),
)
