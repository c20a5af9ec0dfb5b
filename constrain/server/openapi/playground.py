"""The request and responses of each path of the playground, for the OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.fields.sampling import MAX_TOKEN_ID
from constrain.server.openapi.operation import Operation, asks, in_path, object_schema
from constrain.server.openapi.shapes import WrittenShape, reference
from constrain.server.playground.endpoint import API
from constrain.server.playground.objects import VERSION
from constrain.server.playground.page import FILES, PAGE
from constrain.server.playground.request import BudgetBody, CheckBody, ExplainBody, GenerationBody, WhyBody

if TYPE_CHECKING:
    from constrain.server.openapi.shapes import Schema

_TEXT: Schema = {"type": "string"}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}
_NUMBER: Schema = {"type": "number"}
_LOGPROB: Schema = {"type": "number", "maximum": 0.001}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_TOKEN: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_TOKEN_ID}
_EXPECTED: Schema = {"type": "array", "items": object_schema(name=_TEXT, pointer=_TEXT)}

GENERATION_REQUEST = WrittenShape("PlaygroundRequest", {"PlaygroundRequest": GenerationBody.describe()})
BUDGET_REQUEST = WrittenShape("PlaygroundBudgetRequest", {"PlaygroundBudgetRequest": BudgetBody.describe()})
WHY_REQUEST = WrittenShape("PlaygroundWhyRequest", {"PlaygroundWhyRequest": WhyBody.describe()})
CHECK_REQUEST = WrittenShape("PlaygroundCheckRequest", {"PlaygroundCheckRequest": CheckBody.describe()})
EXPLAIN_REQUEST = WrittenShape("PlaygroundExplainRequest", {"PlaygroundExplainRequest": ExplainBody.describe()})

_LIKELY = object_schema(token=_TOKEN, text=_TEXT, logprob=_LOGPROB)
_TRACED = object_schema(
    index=_COUNT,
    token=_TOKEN,
    text=_TEXT,
    special={"type": "boolean"},
    offset=_COUNT,
    origin={"enum": ["chosen", "forced", "healed", "given", "closing"]},
    logprob=_LOGPROB,
    allowed=_COUNT_OR_NULL,
    mass=_SHARE,
    top={
        "type": "array",
        "items": object_schema(token=_TOKEN, text=_TEXT, logprob=_LOGPROB, allowed={"type": ["boolean", "null"]}),
    },
    allowed_top={"type": "array", "items": _LIKELY},
    tokens_left=_COUNT,
    least_tokens=_COUNT,
    expected=_EXPECTED,
    pointer=_TEXT_OR_NULL,
)


def _event(kind: str, /, **members: Schema) -> Schema:
    return object_schema(type={"const": kind}, **members)


_PROMPT_TOKENS: Schema = {
    "type": "array",
    "items": object_schema(token=_TOKEN, text=_TEXT, special={"type": "boolean"}),
}
_EVENT = WrittenShape(
    "PlaygroundEvent",
    {
        "PlaygroundEvent": {
            "anyOf": [
                _event("prompt", text=_TEXT, tokens=_PROMPT_TOKENS),
                _event("tokens", tokens={"type": "array", "items": _TRACED}),
                *(_event(kind, text=_TEXT) for kind in ("text", "reasoning", "refusal")),
                _event(
                    "field",
                    kind={"enum": ["begin", "grow", "complete"]},
                    path=_TEXT,
                    steps={"type": "array", "items": {"type": ["string", "integer"]}},
                    call=_COUNT_OR_NULL,
                ),
                _event("call", index=_COUNT, id=_TEXT, name=_TEXT),
                _event("arguments", index=_COUNT, text=_TEXT),
                _event("call_end", index=_COUNT),
                _event(
                    "done",
                    finish_reason={"enum": ["stop", "length", "timeout"]},
                    text=_TEXT,
                    value={},
                    has_value={"type": "boolean"},
                    calls={"type": "array", "items": {"type": "object"}},
                    usage={"type": "object"},
                    timings={"type": "object", "additionalProperties": _NUMBER},
                    fields={"type": ["object", "null"]},
                    quotes={"type": "array", "items": {"type": "object"}},
                    log_mass={"type": ["number", "null"]},
                    notes={"type": "array", "items": _TEXT},
                ),
                _event("error", error={"type": "object"}),
            ]
        }
    },
)

_FINDING = object_schema(kind=_TEXT, message=_TEXT, line=_COUNT_OR_NULL, column=_COUNT_OR_NULL, pointer=_TEXT_OR_NULL)
_CHECK = object_schema(
    ok={"type": "boolean"},
    errors={"type": "array", "items": _FINDING},
    findings={"type": "array", "items": _FINDING},
    schema={},
    least_tokens=_COUNT_OR_NULL,
    typical_tokens=_COUNT_OR_NULL,
    facts={"type": "array", "items": {"type": "array", "items": _TEXT, "minItems": 2, "maxItems": 2}},
)
_STEP = object_schema(
    token=_TOKEN, text=_TEXT, offset=_COUNT, allowed=_COUNT, is_allowed={"type": "boolean"}, least_tokens=_COUNT
)
_EXPLANATION = object_schema(
    matches={"type": "boolean"},
    is_complete={"type": "boolean"},
    offset=_COUNT,
    accepted=_TEXT,
    rest=_TEXT,
    line=_COUNT,
    column=_COUNT,
    expected=_EXPECTED,
    next=_TEXT,
    completion=_TEXT,
    summary=_TEXT,
    steps={"type": "array", "items": _STEP},
)
_BUDGET = object_schema(
    least=_COUNT,
    kept=_COUNT,
    closing={"type": "array", "items": object_schema(token=_TOKEN, text=_TEXT)},
    text=_TEXT,
    total=_COUNT,
    fits={"type": "boolean"},
)
_ABOUT = object_schema(
    version={"const": VERSION},
    program=_TEXT,
    models={"type": "array", "items": {"type": "object"}},
    model=_TEXT,
    kinds={"type": "array", "items": _TEXT},
    policies={"type": "object"},
    grammars={"type": "array", "items": _TEXT},
    limits={"type": "object", "additionalProperties": _COUNT},
)

PLAYGROUND_OPERATIONS = (
    Operation("GET", PAGE, "getPlayground", "Returns the page.", _TEXT, media_type="text/html", is_open=True),
    Operation(
        "GET",
        f"{FILES}{{name}}",
        "getPlaygroundFile",
        "Returns a file of the page.",
        _TEXT,
        (404,),
        parameters=(in_path("name", "Of the file.", _TEXT),),
        media_type="text/javascript",
        is_open=True,
    ),
    Operation("GET", API, "getPlaygroundAbout", "Says what the playground can be asked.", _ABOUT),
    Operation(
        "GET",
        f"{API}/grammars/{{name}}",
        "getPlaygroundGrammar",
        "Returns a ready grammar.",
        object_schema(name=_TEXT, kind={"const": "lark"}, text=_TEXT),
        (404,),
        parameters=(in_path("name", "Of the grammar.", _TEXT),),
    ),
    asks(
        f"{API}/generate",
        "createPlaygroundRun",
        "Answers a conversation as a stream of events, token by token.",
        reference(_EVENT.name),
        GENERATION_REQUEST,
        _EVENT,
        media_type="text/event-stream",
    ),
    asks(f"{API}/check", "checkPlaygroundLanguage", "Checks a schema or grammar.", _CHECK, CHECK_REQUEST),
    asks(
        f"{API}/explain",
        "explainPlaygroundText",
        "Finds where a text stops matching a schema or grammar.",
        _EXPLANATION,
        EXPLAIN_REQUEST,
    ),
    asks(
        f"{API}/budget",
        "showPlaygroundBudget",
        "Shows how an answer ends within another number of tokens.",
        _BUDGET,
        BUDGET_REQUEST,
    ),
    asks(
        f"{API}/why",
        "explainPlaygroundToken",
        "Says why a token is refused in a place of an answer.",
        object_schema(allowed={"type": "boolean"}, explanation=_TEXT),
        WHY_REQUEST,
    ),
)
