"""Anthropic's paths: messages, the count of their tokens, and models."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route

from constrain.fields.values import invalid, refuse_together
from constrain.server.messages.errors import error_object
from constrain.server.messages.request import CountBody, MessagesBody
from constrain.server.messages.response import Heading
from constrain.server.messages.stream import MessageWriter
from constrain.server.requests.limits import MESSAGE_RANGES
from constrain.server.serving.answering import Answering
from constrain.server.serving.dialect import ChosenRoute, Dialect
from constrain.server.serving.endpoint import Inspecting
from constrain.server.serving.models import MODELS, find_model, require_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.datastructures import Headers
    from starlette.requests import Request

    from constrain.server.messages.request import MessagesRequest
    from constrain.server.sandbox.session import Session
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.models import Models, ServedModel


_PATH = "/v1/messages"

_VERSION_HEADER = "anthropic-version"
"""Header that Anthropic's clients send with every request."""

_PAGE = 20
"""Models of one page, if the request does not say how many."""


def _make_writer(request: MessagesRequest, *_: object) -> MessageWriter:
    """Returns the writer of the answer to a request."""
    question = request.question
    return MessageWriter(Heading(request.model, question.content is None, request.shows_thinking))


class TokenCount(Inspecting):
    """The endpoint that counts the tokens of the prompt that a request for a message would have."""

    async def inspect(self, asked: MessagesRequest, served: ServedModel, _: Session) -> dict[str, Any]:
        """Returns the count; see ``Inspecting``."""
        return {"input_tokens": await self._serving.generator.count(served, asked.question)}


def _routes(serving: Serving) -> list[Route]:
    """Returns the routes; those about models are for Anthropic's clients alone."""

    async def every(request: Request) -> JSONResponse:
        return JSONResponse(list_models(serving.models, request.query_params))

    async def one(request: Request) -> JSONResponse:
        name: Any = request.path_params["name"]
        return JSONResponse(describe_model(serving.models, name))

    def is_for(_: str, headers: Headers) -> bool:
        return is_for_messages(headers)

    return [
        Route(_PATH, Answering(serving, MessagesBody, _make_writer), methods=["POST"]),
        Route(f"{_PATH}/count_tokens", TokenCount(serving, CountBody), methods=["POST"]),
        ChosenRoute(MODELS, every, is_for),
        ChosenRoute(f"{MODELS}/{{name:path}}", one, is_for),
    ]


def _owns(path: str, headers: Headers) -> bool:
    return path.startswith(_PATH) or (f"{path}/".startswith(f"{MODELS}/") and is_for_messages(headers))


def is_for_messages(headers: Headers) -> bool:
    """Returns whether a request comes from a client of Anthropic's API."""
    return _VERSION_HEADER in headers


def describe_model(models: Models, name: str) -> dict[str, Any]:
    """Returns a model as a JSON object, loaded or not. Raises ``ApiError``."""
    name = require_name(models, name)
    created = datetime.fromtimestamp(find_model(models, name).created, timezone.utc)
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": created.isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
    }


def list_models(models: Models, query: Mapping[str, str]) -> dict[str, Any]:
    """Returns a page of the models. Raises ``FieldError``.

    ``query``: may have ``limit``, the most models, and ``after_id`` or ``before_id``, the model next to the page.
    """
    names, limit = list(models), _read_limit(query)
    refuse_together(before_id="before_id" in query, after_id="after_id" in query)
    if "before_id" in query:
        behind = names[: _position(names, query, "before_id")]
        page, has_more = behind[-limit:], len(behind) > limit
    else:
        rest = names[_position(names, query, "after_id") + 1 :] if "after_id" in query else names
        page, has_more = rest[:limit], len(rest) > limit
    return {
        "data": [describe_model(models, name) for name in page],
        "has_more": has_more,
        "first_id": page[0] if page else None,
        "last_id": page[-1] if page else None,
    }


def _read_limit(query: Mapping[str, str]) -> int:
    given = query.get("limit", str(_PAGE))
    least, most = MESSAGE_RANGES["limit"]
    limit = int(given[:20]) if given.isascii() and given.isdecimal() else 0
    if not least <= limit <= most:
        raise invalid("limit", f"expected a number from {least} to {most}.")
    return limit


def _position(names: list[str], query: Mapping[str, str], field: str) -> int:
    if query[field] not in names:
        raise invalid(field, "this server has no such model.")
    return names.index(query[field])


MESSAGES = Dialect(
    _routes,
    (MessagesBody, CountBody),
    _owns,
    error_object,
    stream_error=MessageWriter.failed,
    id_header="request-id",
)
"""Anthropic's messages."""
