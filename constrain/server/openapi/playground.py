"""The request and responses of each path of the playground, for the OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.fields.sampling import MAX_TOKEN_ID
from constrain.server.openapi.operation import Operation, asks, in_path
from constrain.server.openapi.shapes import COUNT, FLAG, OBJECT, TEXT, WrittenShape, array_of, object_schema, reference
from constrain.server.playground.endpoint import API
from constrain.server.playground.objects import VERSION
from constrain.server.playground.page import FILES, PAGE
from constrain.server.playground.request import BudgetBody, CheckBody, ExplainBody, GenerationBody, WhyBody

if TYPE_CHECKING:
    from constrain.server.openapi.shapes import Schema

_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}
_NUMBER: Schema = {"type": "number"}
_LOGPROB: Schema = {"type": "number", "maximum": 0.001}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_TOKEN: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_TOKEN_ID}
_EXPECTED = array_of(object_schema(name=TEXT, pointer=TEXT))


_LIKELY = object_schema(token=_TOKEN, text=TEXT, logprob=_LOGPROB)
_TRACED = object_schema(
    index=COUNT,
    token=_TOKEN,
    text=TEXT,
    special=FLAG,
    offset=COUNT,
    origin={"enum": ["chosen", "forced", "healed", "given", "closing"]},
    logprob=_LOGPROB,
    allowed=_COUNT_OR_NULL,
    mass=_SHARE,
    top=array_of(object_schema(token=_TOKEN, text=TEXT, logprob=_LOGPROB, allowed={"type": ["boolean", "null"]})),
    allowed_top=array_of(_LIKELY),
    tokens_left=COUNT,
    least_tokens=COUNT,
    expected=_EXPECTED,
    pointer=_TEXT_OR_NULL,
)


def _event(kind: str, /, **members: Schema) -> Schema:
    return object_schema(type={"const": kind}, **members)


_PROMPT_TOKENS = array_of(object_schema(token=_TOKEN, text=TEXT, special=FLAG))
_EVENT = WrittenShape(
    "PlaygroundEvent",
    {
        "anyOf": [
            _event("prompt", text=TEXT, tokens=_PROMPT_TOKENS),
            _event("tokens", tokens=array_of(_TRACED)),
            *(_event(kind, text=TEXT) for kind in ("text", "reasoning", "refusal")),
            _event(
                "field",
                kind={"enum": ["begin", "grow", "complete"]},
                path=TEXT,
                steps=array_of({"type": ["string", "integer"]}),
                call=_COUNT_OR_NULL,
            ),
            _event("call", index=COUNT, id=TEXT, name=TEXT),
            _event("arguments", index=COUNT, text=TEXT),
            _event("call_end", index=COUNT),
            _event(
                "done",
                finish_reason={"enum": ["stop", "length", "timeout"]},
                text=TEXT,
                value={},
                has_value=FLAG,
                calls=array_of(OBJECT),
                usage=OBJECT,
                timings={"type": "object", "additionalProperties": _NUMBER},
                fields={"type": ["object", "null"]},
                quotes=array_of(OBJECT),
                log_mass={"type": ["number", "null"]},
                notes=array_of(TEXT),
            ),
            _event("error", error=OBJECT),
        ]
    },
)

_FINDING = object_schema(kind=TEXT, message=TEXT, line=_COUNT_OR_NULL, column=_COUNT_OR_NULL, pointer=_TEXT_OR_NULL)
_CHECK = object_schema(
    ok=FLAG,
    errors=array_of(_FINDING),
    findings=array_of(_FINDING),
    schema={},
    least_tokens=_COUNT_OR_NULL,
    typical_tokens=_COUNT_OR_NULL,
    facts=array_of(array_of(TEXT, minItems=2, maxItems=2)),
)
_STEP = object_schema(token=_TOKEN, text=TEXT, offset=COUNT, allowed=COUNT, is_allowed=FLAG, least_tokens=COUNT)
_EXPLANATION = object_schema(
    matches=FLAG,
    is_complete=FLAG,
    offset=COUNT,
    accepted=TEXT,
    rest=TEXT,
    line=COUNT,
    column=COUNT,
    expected=_EXPECTED,
    next=TEXT,
    completion=TEXT,
    summary=TEXT,
    steps=array_of(_STEP),
)
_BUDGET = object_schema(
    least=COUNT,
    kept=COUNT,
    closing=array_of(object_schema(token=_TOKEN, text=TEXT)),
    text=TEXT,
    total=COUNT,
    fits=FLAG,
)
_ABOUT = object_schema(
    version={"const": VERSION},
    program=TEXT,
    models=array_of(OBJECT),
    model=TEXT,
    kinds=array_of(TEXT),
    policies=OBJECT,
    grammars=array_of(TEXT),
    limits={"type": "object", "additionalProperties": COUNT},
)

PLAYGROUND_OPERATIONS = (
    Operation("GET", PAGE, "getPlayground", "Returns the page.", TEXT, media_type="text/html", is_open=True),
    Operation(
        "GET", f"{FILES}{{name}}", "getPlaygroundFile", "Returns a file of the page.", TEXT, (404,),
        parameters=(in_path("name", "Of the file.", TEXT),),
        media_type="text/javascript",
        is_open=True,
    ),
    Operation("GET", API, "getPlaygroundAbout", "Says what the playground can be asked.", _ABOUT),
    Operation(
        "GET", f"{API}/grammars/{{name}}", "getPlaygroundGrammar", "Returns a ready grammar.",
        object_schema(name=TEXT, kind={"const": "lark"}, text=TEXT),
        (404,),
        parameters=(in_path("name", "Of the grammar.", TEXT),),
    ),
    asks(
        f"{API}/generate", "createPlaygroundRun",
        "Answers a conversation as a stream of events, token by token.",
        reference(_EVENT.name), WrittenShape("PlaygroundRequest", GenerationBody.describe()), _EVENT,
        media_type="text/event-stream",
    ),
    asks(
        f"{API}/check", "checkPlaygroundLanguage", "Checks a schema or grammar.",
        _CHECK, WrittenShape("PlaygroundCheckRequest", CheckBody.describe()),
    ),
    asks(
        f"{API}/explain", "explainPlaygroundText", "Finds where a text stops matching a schema or grammar.",
        _EXPLANATION, WrittenShape("PlaygroundExplainRequest", ExplainBody.describe()),
    ),
    asks(
        f"{API}/budget", "showPlaygroundBudget", "Shows how an answer ends within another number of tokens.",
        _BUDGET, WrittenShape("PlaygroundBudgetRequest", BudgetBody.describe()),
    ),
    asks(
        f"{API}/why", "explainPlaygroundToken", "Says why a token is refused in a place of an answer.",
        object_schema(allowed=FLAG, explanation=TEXT), WrittenShape("PlaygroundWhyRequest", WhyBody.describe()),
    ),
)  # fmt: skip
