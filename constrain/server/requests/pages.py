"""Pages of lists, in OpenAI's form: ``limit``, ``order`` and ``after`` in the query of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from constrain.fields.values import FieldError, one_of, wrong_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")


def read_page(
    items: Sequence[T],
    query: Mapping[str, str],
    *,
    most: int,
    default: int,
    name: Callable[[T], str],
    describe: Callable[[T], Mapping[str, Any]],
) -> dict[str, Any]:
    """Returns the page that a query asks for. Raises ``FieldError``.

    Args:
        items: all items, the oldest first.
        query: query of the request.
        most: most items of a page.
        default: items of a page whose query has no ``limit``.
        name: function that returns the id of an item.
        describe: function that makes the JSON object of an item.
    """
    limit = _limit(query.get("limit", str(default)), most)
    ordered = list(items)
    if one_of(query.get("order", "desc"), ("asc", "desc"), "order") == "desc":
        ordered.reverse()
    after = query.get("after")
    if after is not None:
        ids = [name(item) for item in ordered]
        if after not in ids:
            raise FieldError(f"Item with id '{after:.80}' not found.", param="after")
        ordered = ordered[ids.index(after) + 1 :]
    page = ordered[:limit]
    return {
        "object": "list",
        "data": [describe(item) for item in page],
        "first_id": name(page[0]) if page else "",
        "last_id": name(page[-1]) if page else "",
        "has_more": len(ordered) > limit,
    }


def _limit(text: str, most: int) -> int:
    if not text.isascii() or not text.isdecimal():
        raise wrong_type("limit", "an integer", text)
    limit = int(text[:20])
    if not 1 <= limit <= most:
        side = "below_min" if limit < 1 else "above_max"
        message = f"Invalid 'limit': Expected a value between 1 and {most}, but got {limit} instead."
        raise FieldError(message, param="limit", code=f"integer_{side}_value")
    return limit
