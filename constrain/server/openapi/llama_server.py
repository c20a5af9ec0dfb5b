"""The operations of llama-server and LM Studio, and their bodies, for the OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.server.openapi.bodies import CHAT_REQUEST, CONTENT, EXTENSION, FLAG, MODEL_NAME, PENALTY, SAMPLING
from constrain.server.openapi.operation import WORK, Operation, in_path, in_query, object_schema
from constrain.server.openapi.shapes import WrittenShape
from constrain.server.requests.limits import RANGES

if TYPE_CHECKING:
    from constrain.server.openapi.shapes import Schema

_TEXT: Schema = {"type": "string"}
_INTEGER: Schema = {"type": ["integer", "null"]}
_NUMBER: Schema = {"type": ["number", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_IDS: Schema = {"type": "array", "items": _COUNT}
_MODEL: Schema = {"anyOf": [MODEL_NAME, {"type": "null"}]}

_ANSWERING: dict[str, Schema] = {
    **CONTENT,
    **{name: schema for name, schema in SAMPLING.items() if name != "seed"},
    "frequency_penalty": {"type": ["number", "null"], **PENALTY},
    "max_tokens": _INTEGER,
    "model": _MODEL,
    "n_predict": _INTEGER,
    "presence_penalty": {"type": ["number", "null"], **PENALTY},
    "return_tokens": FLAG,
    "seed": _INTEGER,
    "stop": {
        "anyOf": [
            {"type": ["string", "null"], "minLength": 1},
            {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": RANGES["stop_sequences"][1]},
        ]
    },
    "stream": FLAG,
    "temperature": {**_NUMBER, "minimum": 0},
    "top_p": {**_NUMBER, "minimum": 0, "maximum": 1},
}


def _request(name: str, required: dict[str, Schema], optional: dict[str, Schema]) -> WrittenShape:
    members = {**required, **optional}
    return WrittenShape(name, {name: {"type": "object", "properties": members, "required": list(required)}})


_COMPLETION_REQUEST = _request(
    "LlamaCompletionRequest",
    {"prompt": {"anyOf": [_TEXT, {"type": "array", "items": {"anyOf": [_TEXT, _COUNT]}}]}},
    _ANSWERING,
)
_FILE: Schema = {
    "type": "object",
    "properties": {"filename": {"type": ["string", "null"]}, "text": _TEXT},
    "required": ["text"],
}
_INFILL_REQUEST = _request(
    "LlamaInfillRequest",
    {"input_prefix": _TEXT, "input_suffix": _TEXT},
    {
        **_ANSWERING,
        "input_extra": {"anyOf": [{"type": "array", "items": _FILE}, {"type": "null"}]},
        "prompt": {"type": ["string", "null"]},
    },
)
_TOKENIZE_REQUEST = _request(
    "LlamaTokenizeRequest",
    {},
    {
        **dict.fromkeys(("add_special", "add_special_tokens", "parse_special", "with_pieces"), FLAG),
        **{name: {"type": ["string", "null"]} for name in ("content", "prompt")},
        "model": _MODEL,
    },
)
_DETOKENIZE_REQUEST = _request("LlamaDetokenizeRequest", {"tokens": _IDS}, {"model": _MODEL})

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
    Operation(
        "POST",
        "/completion",
        "llamaCompletion",
        "Continues a text, as llama-server does.",
        _COMPLETION,
        WORK,
        _COMPLETION_REQUEST,
        _EVENT,
    ),
    Operation(
        "POST",
        "/infill",
        "llamaInfill",
        "Fills a gap in a text, if the model has tokens for it.",
        _COMPLETION,
        WORK,
        _INFILL_REQUEST,
        _EVENT,
    ),
    Operation(
        "POST",
        "/tokenize",
        "llamaTokenize",
        "Returns the tokens of a text.",
        object_schema(
            tokens={"type": "array", "items": {"anyOf": [_COUNT, {"type": "object"}]}},
            count=_COUNT,
            max_model_len=_COUNT,
        ),
        WORK,
        _TOKENIZE_REQUEST,
    ),
    Operation(
        "POST",
        "/detokenize",
        "llamaDetokenize",
        "Returns the text of tokens.",
        object_schema(content=_TEXT, prompt=_TEXT),
        WORK,
        _DETOKENIZE_REQUEST,
    ),
    Operation(
        "POST",
        "/apply-template",
        "llamaApplyTemplate",
        "Returns the prompt that the same request to /v1/chat/completions has.",
        object_schema(prompt=_TEXT),
        WORK,
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
