"""The description of one method of a path, and parts of such descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constrain.server.openapi.shapes import AnyShape, Schema


@dataclass(frozen=True, slots=True)
class Operation:
    """The description of one method of a path.

    Attributes:
        name: name of the operation.
        request: body of the request.
        response: body of a response with status 200; ``None`` if there is none.
        event: content of a stream's events, if the request can ask for a stream.
        stream_type: media type of the stream: server-sent events, or lines.
        errors: statuses of errors, in addition to 401 and 403.
        is_open: whether the method needs no key.
        error_forms: names of the schemas of errors, whose form may depend on the client.
        request_type: media type of the request's body.
    """

    method: str
    path: str
    name: str
    summary: str
    response: AnyShape | Schema | None
    errors: tuple[int, ...] = ()
    request: AnyShape | None = None
    event: AnyShape | None = None
    parameters: tuple[dict[str, Any], ...] = ()
    media_type: str = "application/json"
    is_open: bool = False
    stream_type: str = "text/event-stream"
    error_forms: tuple[str, ...] = ("Error",)
    request_type: str = "application/json"


WORK = (400, 404, 408, 413, 415, 429, 500, 503)
"""Status codes of errors that a request to a model can get."""


def asks(
    path: str,
    name: str,
    summary: str,
    response: AnyShape | Schema,
    request: AnyShape,
    event: AnyShape | None = None,
    **more: Any,
) -> Operation:
    """Returns the description of requests to a model. ``more``: further attributes."""
    return Operation("POST", path, name, summary, response, WORK, request, event, **more)


def in_path(name: str, about: str, schema: Schema) -> dict[str, Any]:
    """Returns the description of a parameter in a path."""
    return {"name": name, "in": "path", "required": True, "description": about, "schema": schema}


def in_query(name: str, about: str, schema: Schema) -> dict[str, Any]:
    """Returns the description of a parameter in a query."""
    return {"name": name, "in": "query", "description": about, "schema": schema}
