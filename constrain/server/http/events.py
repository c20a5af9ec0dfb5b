"""Server-sent events (WHATWG HTML, section 9.2) as OpenAI's clients read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENT_STREAM = "text/event-stream; charset=utf-8"
"""Media type of server-sent events."""

LAST_EVENT = "data: [DONE]\n\n"
"""Last line of a stream without named events."""


def data_event(document: Mapping[str, Any], name: str = "") -> str:
    """Returns a server-sent event as text, with an ``event:`` line if a name is given.

    Characters beyond ASCII are escaped, because some clients end lines at U+0085, U+2028 and U+2029, too.
    """
    data = f"data: {json.dumps(document, separators=(',', ':'))}\n\n"
    return f"event: {name}\n{data}" if name else data
