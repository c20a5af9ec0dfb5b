"""``stream`` and ``stream_options``: the way answers are sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.fields.values import FieldError, boolean, mapping

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Streaming:
    """The way the answers to a request are sent.

    Attributes:
        is_wanted: whether answers are sent while they are written.
        include_usage: whether the last chunk has token counts.
    """

    is_wanted: bool = False
    include_usage: bool = False


def read_stream(body: Mapping[str, Any]) -> bool:
    """Reads whether answers are sent while they are written. Raises ``FieldError``."""
    return boolean(body, "stream") or False


def read_streaming(body: Mapping[str, Any]) -> Streaming:
    """Reads the way answers are sent, with ``stream_options``. Raises ``FieldError``."""
    is_wanted, given = read_stream(body), body.get("stream_options")
    if given is None:
        return Streaming(is_wanted)
    if not is_wanted:
        raise FieldError(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
            code="invalid_value",
        )
    options = mapping(given, "stream_options")
    return Streaming(is_wanted, boolean(options, "include_usage", "stream_options.") or False)
