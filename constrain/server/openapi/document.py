"""The OpenAPI 3.1 description of the server at ``GET /openapi.json``.

It describes the existing routes; ``OPERATIONS`` has the request and response of each. A new route needs an entry there.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from constrain.server.ollama.lines import LINES
from constrain.server.ollama.names import full_name
from constrain.server.openapi.messages import MESSAGES_ERROR
from constrain.server.openapi.ollama import LINE_ERROR
from constrain.server.openapi.operations import OPERATIONS
from constrain.server.openapi.shapes import (
    TEXT,
    AnyShape,
    Shape,
    WrittenShape,
    component_schemas,
    object_schema,
    reference,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.routing import Route

    from constrain.server.openapi.operation import Operation
    from constrain.server.openapi.shapes import Schema

_KEY_SCHEMES = {
    "key": {"type": "http", "scheme": "bearer"},
    "keyHeader": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
}
"""The two ways to send a key. A request needs one of them."""

_REQUEST_ID = {"x-request-id": {"description": "A name for this answer.", "schema": {"type": "string"}}}

_ERRORS = {
    400: "The request is wrong, or asks for what this server cannot do; the message says what, and `param` where.",
    401: "There is no API key in the request, or a wrong one.",
    403: "The request calls the server by a name that it does not answer to, or comes from another site's page.",
    404: "What the request names is not there.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is not declared as JSON (a file: as a form), or is compressed.",
    429: "The queue is full, other large schemas are being compiled, or large bodies take all their room.",
    500: "The server had an error of its own.",
    503: "The server is stopping or has too many connections, or a model or the disk is not there.",
}

_TEXT_OR_NULL = {"type": ["string", "null"]}
_ERROR = WrittenShape(
    "Error",
    object_schema(
        error=object_schema(
            message={"type": "string", "minLength": 1}, type=TEXT, param=_TEXT_OR_NULL, code=_TEXT_OR_NULL
        )
    ),
)


def describe(routes: Iterable[Route], models: Sequence[str], *, has_keys: bool) -> dict[str, Any]:
    """Returns the description of the given routes.

    Args:
        routes: routes of the application; ``OPERATIONS`` has an entry for each method of each.
        models: names of models that requests may use.
        has_keys: whether requests need a key.
    """
    served = {(method, route.path_format) for route in routes for method in route.methods or ()}
    operations = [one for one in OPERATIONS if (one.method, one.path) in served]
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {each.name: each.schema for each in (_ERROR, MESSAGES_ERROR, LINE_ERROR)}
    schemas["ModelName"] = _names(models)
    schemas["TaggedModelName"] = _names(dict.fromkeys([*models, *map(full_name, models)]))
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, has_keys=has_keys)
        for body in (operation.request, operation.response, operation.event):
            if isinstance(body, Shape | WrittenShape):
                schemas |= component_schemas(body)
    description: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "constrain",
            "version": _version(),
            "description": "Local language models behind the endpoints of OpenAI, Anthropic and Ollama; every "
            "schema and grammar is enforced.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if has_keys:
        description["components"]["securitySchemes"] = _KEY_SCHEMES
        description["security"] = [{name: []} for name in _KEY_SCHEMES]
    return description


def _names(models: Iterable[str]) -> Schema:
    return {"type": "string", "enum": list(models)}


def _version() -> str:
    try:
        return version("constrain-llm")
    except PackageNotFoundError:  # run from a checkout, without installation
        return "0"


def _operation(operation: Operation, *, has_keys: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": _responses(operation, has_keys=has_keys),
    }
    if operation.is_open:
        described["security"] = []
    if operation.parameters:
        described["parameters"] = list(operation.parameters)
    if operation.request is not None:
        content = {operation.request_type: {"schema": reference(operation.request.name)}}
        described["requestBody"] = {"required": True, "content": content}
    return described


_STREAMS = {"text/event-stream": "server-sent events whose data are", LINES: "lines that are"}
"""Words for streams, by media type."""


def _event(body: AnyShape, media_type: str) -> dict[str, Any]:
    """Returns the description of one event, or one line, of a stream."""
    if media_type == LINES:
        return reference(body.name)
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": reference(body.name)}
    either = {"anyOf": [data, {"const": "[DONE]"}]}  # the last line of some streams is no JSON
    return {"type": "object", "properties": {"event": {"type": "string"}, "data": either}, "required": ["data"]}


def _error_schema(operation: Operation) -> dict[str, Any]:
    """Returns the schema of an operation's errors, whose form may depend on the client."""
    forms = [reference(name) for name in operation.error_forms]
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _responses(operation: Operation, *, has_keys: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if operation.response is not None:
        body = operation.response
        schema = reference(body.name) if isinstance(body, Shape | WrittenShape) else body
        content = {operation.media_type: {"schema": schema}}
        about = operation.summary
        if operation.event is not None:
            content[operation.stream_type] = {"schema": _event(operation.event, operation.stream_type)}
            about += f" With `stream`, {_STREAMS[operation.stream_type]} `{operation.event.name}` objects."
        found["200"] = {"description": about, "headers": _REQUEST_ID, "content": content}
    statuses = {403, *operation.errors} | ({401} if has_keys and not operation.is_open else set())
    for status in sorted(statuses):
        headers: dict[str, Any] = dict(_REQUEST_ID)
        if status in (429, 503):
            headers["retry-after"] = {"description": "Seconds to wait.", "schema": {"type": "string"}}
        found[str(status)] = {
            "description": _ERRORS[status],
            "headers": headers,
            "content": {"application/json": {"schema": _error_schema(operation)}},
        }
    return found
