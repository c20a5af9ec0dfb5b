"""Kept responses, which clients read and continue until they expire."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from constrain.fields.values import FieldError, array, one_of, wrong_type
from constrain.server.http.errors import ApiError
from constrain.server.requests.limits import RANGES
from constrain.server.responses.input import REFERENCE, add_ids, read_items
from constrain.server.responses.request import StoredResponse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.server.responses.input import Item
    from constrain.server.responses.request import ResponsesRequest

MAX_AGE = 24 * 3600.0
"""Seconds that a response is kept: one day."""


class ResponseStore(ABC):
    """Keeps responses, limited in number, size and age. Any thread may call it; calls may wait for a database.

    ``owner`` identifies the key that sent a request; responses of other owners are invisible.

    Attributes:
        keeps: whether responses are kept at all.
    """

    keeps = True

    def reserve(self, owner: str, request: ResponsesRequest, response_id: str) -> None:
        """Makes sure, before a response is generated, that it can be kept if its request asks for that.

        Raises ``ApiError`` if the store is full or fails.
        """
        if request.store:
            self.try_write(owner, _make_stored(request, {"id": response_id, "output": []}))

    def put(self, owner: str, request: ResponsesRequest, response: dict[str, Any]) -> None:
        """Keeps a finished response (see ``response_json``) if its request asks for that. Raises ``ApiError``."""
        if request.store:
            self.write(owner, _make_stored(request, response))

    def get(self, owner: str, response_id: str) -> StoredResponse:
        """Returns a response of this owner. Raises ``ApiError``."""
        found = self.read(owner, response_id)
        if found is None:
            raise ApiError(f"Response with id '{response_id:.80}' not found.", status=404, param="response_id")
        return found

    def previous(self, owner: str, request: ResponsesRequest) -> StoredResponse | None:
        """Returns the response that a request continues. Raises ``ApiError`` if it is not kept."""
        response_id = request.previous_response_id
        if response_id is None:
            return None
        found = self.read(owner, response_id)
        if found is None:
            raise ApiError(
                f"Previous response with id '{response_id:.80}' not found.",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        return found

    def resolve(self, owner: str, items: Sequence[Item]) -> tuple[Item, ...]:
        """Returns items with kept ones of this owner in place of the references to them.

        Raises ``FieldError`` for more references than a conversation may have messages.
        """
        wanted = [item["id"] for item in items if item["type"] == REFERENCE]
        array(wanted, "input", RANGES["messages"][1])
        kept: dict[str, dict[str, Item]] = {}
        for response_id in {name for item_id in wanted for name in _responses_of(item_id)} if self.keeps else ():
            found = self.read(owner, response_id)
            kept[response_id] = {} if found is None else {item["id"]: item for item in found.conversation}

        def resolved(item: Item) -> Item:
            places = _responses_of(item["id"]) if item["type"] == REFERENCE else ()
            return next((kept[place][item["id"]] for place in places if item["id"] in kept.get(place, ())), item)

        return tuple(map(resolved, items))

    def delete(self, owner: str, response_id: str) -> dict[str, Any]:
        """Deletes a response of this owner and returns the confirmation. Raises ``ApiError``."""
        self.get(owner, response_id)
        self.remove(owner, response_id)
        return {"id": response_id, "object": "response", "deleted": True}

    @abstractmethod
    def try_write(self, owner: str, stored: StoredResponse) -> None:
        """Writes a response without its output as one that has expired. Raises ``ApiError`` if it cannot be kept."""

    @abstractmethod
    def write(self, owner: str, stored: StoredResponse) -> None:
        """Keeps a response, in place of one with the same id; the oldest ones may have to go. Raises ``ApiError``."""

    @abstractmethod
    def read(self, owner: str, response_id: str) -> StoredResponse | None:
        """Returns a response of an owner; ``None`` if it is not kept. Raises ``ApiError``."""

    @abstractmethod
    def remove(self, owner: str, response_id: str) -> None:
        """Removes a response of an owner, if it is kept. Raises ``ApiError``."""

    @abstractmethod
    def close(self) -> None:
        """Ends the use of the store."""


def _responses_of(item_id: str) -> tuple[str, str]:
    """Returns the ids of responses that an item may be of: they are a part of its own (``add_ids``, ``item_id``)."""
    unique = item_id.partition("_")[2]
    return f"resp_{unique[:-4]}", f"resp_{unique[:-5]}"


def require_size(stored: StoredResponse, max_bytes: int) -> None:
    """Raises ``ApiError`` for a response that takes more than a store keeps of all. ``max_bytes``: bytes as JSON."""
    if (size := stored.whole_size) > max_bytes:
        raise ApiError(
            f"This response cannot be stored: its conversation takes {size} bytes, and all stored responses together "
            f'may take {max_bytes}. Send "store": false.',
            param="store",
            code="storage_limit_exceeded",
        )


def _make_stored(request: ResponsesRequest, response: dict[str, Any]) -> StoredResponse:
    """Returns a response as it is kept."""
    previous = request.previous
    input_items = tuple(add_ids(request.items, response["id"]))
    output = tuple(read_items(response["output"]))
    before, size_before = ((), 0) if previous is None else (previous.conversation, previous.size)
    size = size_before + len(json.dumps([input_items, output]))
    return StoredResponse(response, input_items, (*before, *input_items, *output), size)


def input_items_page(stored: StoredResponse, query: Mapping[str, str]) -> dict[str, Any]:
    """Returns the page of input items that a query asks for, in OpenAI's form. Raises ``FieldError``."""
    limit = _limit(query.get("limit", "20"))
    order = one_of(query.get("order", "desc"), ("asc", "desc"), "order")
    ordered = [*stored.input_items] if order == "asc" else [*reversed(stored.input_items)]
    after = query.get("after")
    if after is not None:
        ids = [item["id"] for item in ordered]
        if after not in ids:
            raise FieldError(f"Item with id '{after:.80}' not found.", param="after")
        ordered = ordered[ids.index(after) + 1 :]
    page = ordered[:limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else "",
        "last_id": page[-1]["id"] if page else "",
        "has_more": len(ordered) > limit,
    }


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise wrong_type("limit", "an integer", text)
    limit, (least, most) = int(text[:20]), RANGES["limit"]
    if not least <= limit <= most:
        side = "below_min" if limit < least else "above_max"
        message = f"Invalid 'limit': Expected a value between {least} and {most}, but got {limit} instead."
        raise FieldError(message, param="limit", code=f"integer_{side}_value")
    return limit
