"""``stream`` and ``stream_options``: the way answers are sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from constrain.fields.declared import Fields, Flag, inside
from constrain.fields.values import FieldError


@dataclass(frozen=True, slots=True)
class Streaming:
    """The way the answers to a request are sent.

    Attributes:
        is_wanted: whether answers are sent while they are written.
        include_usage: whether the last chunk has token counts.
    """

    is_wanted: bool = False
    include_usage: bool = False


class _StreamOptions(Fields):
    include_usage: Flag = None
    include_obfuscation: object = None


class StreamFields(Fields):
    """Fields for the way answers are sent."""

    stream: Flag = None
    stream_options: Annotated[_StreamOptions | None, inside(_StreamOptions)] = None

    def streaming(self) -> Streaming:
        """Returns the way answers are sent. Raises ``FieldError``."""
        if self.stream_options is None:
            return Streaming(self.stream or False)
        if not self.stream:
            raise FieldError(
                "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
                param="stream_options",
                code="invalid_value",
            )
        return Streaming(is_wanted=True, include_usage=self.stream_options.include_usage or False)
