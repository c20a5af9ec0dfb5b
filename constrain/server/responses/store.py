"""Finished responses, kept until they expire, so that clients can read and continue them."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from constrain.server.http.errors import ApiError
from constrain.server.requests.limits import MAX_PAGE
from constrain.server.requests.pages import read_page
from constrain.server.responses.input import add_ids, read_items

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from constrain.server.responses.input import Item
    from constrain.server.responses.request import ResponsesRequest

MAX_RESPONSES = 1000
"""Responses that are kept: 1000; beyond it, the oldest are dropped."""

MAX_BYTES = 256 << 20
"""Bytes, as JSON, that kept responses may take together: 256 MiB; beyond it, the oldest are dropped."""

MAX_AGE = 24 * 3600.0
"""Seconds that a response is kept: one day."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A kept response.

    Attributes:
        response: response as a JSON object.
        input_items: items of the request, each with an id.
        conversation: items for a continuation: all earlier ones, the input and the output.
        size: characters of the conversation as JSON.
    """

    response: dict[str, Any]
    input_items: tuple[Item, ...]
    conversation: tuple[Item, ...]
    size: int


@dataclass(frozen=True, slots=True)
class _Entry:
    stored: StoredResponse
    owner: str
    expires: float
    size: int


class ResponseStore:
    """Keeps responses, limited in number, size and age. Any thread may call it.

    ``owner`` identifies the key that sent a request; responses of other owners are invisible.
    """

    def __init__(
        self,
        *,
        max_responses: int = MAX_RESPONSES,
        max_bytes: int = MAX_BYTES,
        max_age: float = MAX_AGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def put(
        self,
        owner: str,
        request: ResponsesRequest,
        response: dict[str, Any],
        previous: StoredResponse | None = None,
    ) -> None:
        """Keeps a finished response (see ``response_json``) if its request asks for that.

        ``previous``: response that it continues.
        """
        if not request.store:
            return
        input_items = tuple(add_ids(request.items, response["id"]))
        output = tuple(read_items(response["output"]))
        before, size_before = ((), 0) if previous is None else (previous.conversation, previous.size)
        conversation_size = size_before + len(json.dumps([input_items, output]))
        stored = StoredResponse(response, input_items, (*before, *input_items, *output), conversation_size)
        size = len(json.dumps(response)) + conversation_size  # shared items may outlive a response
        with self._lock:
            self._entries[response["id"]] = _Entry(stored, owner, self._clock() + self._max_age, size)
            self._size += size
            self._shrink()

    def get(self, owner: str, response_id: str) -> StoredResponse:
        """Returns a response of this owner. Raises ``ApiError``."""
        with self._lock:
            self._shrink()
            entry = self._entries.get(response_id)
        if entry is None or entry.owner != owner:
            raise ApiError(f"Response with id '{response_id:.80}' not found.", status=404, param="response_id")
        return entry.stored

    def previous(self, owner: str, request: ResponsesRequest) -> StoredResponse | None:
        """Returns the response that a request continues. Raises ``ApiError`` if it is not kept."""
        response_id = request.previous_response_id
        if response_id is None:
            return None
        try:
            return self.get(owner, response_id)
        except ApiError as error:
            raise ApiError(
                f"Previous response with id '{response_id:.80}' not found.",
                param="previous_response_id",
                code="previous_response_not_found",
            ) from error

    def delete(self, owner: str, response_id: str) -> dict[str, Any]:
        """Deletes a response of this owner and returns the confirmation. Raises ``ApiError``."""
        self.get(owner, response_id)
        with self._lock:
            self._drop(response_id)
        return {"id": response_id, "object": "response", "deleted": True}

    def _shrink(self) -> None:
        now = self._clock()
        while self._entries:
            oldest = next(iter(self._entries))
            is_full = len(self._entries) > self._max_responses or self._size > self._max_bytes
            if not is_full and self._entries[oldest].expires > now:
                return
            self._drop(oldest)

    def _drop(self, response_id: str) -> None:
        entry = self._entries.pop(response_id, None)
        self._size -= 0 if entry is None else entry.size


def input_items_page(stored: StoredResponse, query: Mapping[str, str]) -> dict[str, Any]:
    """Returns the page of input items that a query asks for (``limit``, ``order``, ``after``). Raises ``ApiError``."""
    return read_page(stored.input_items, query, most=MAX_PAGE, default=20, name=itemgetter("id"), describe=dict)
