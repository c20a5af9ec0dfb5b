"""The models of a server in Anthropic's form: pages of a list, and one model."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from constrain.fields.values import invalid, refuse_together
from constrain.server.requests.limits import MESSAGE_RANGES
from constrain.server.serving.models import find_model, require_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.datastructures import Headers

    from constrain.server.serving.models import Models

_VERSION_HEADER = "anthropic-version"
"""Header that Anthropic's clients send with every request."""

_PAGE = 20
"""Models of one page, if the request does not say how many."""


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
