"""``stream`` and ``stream_options``: the way answers are sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from constrain.fields.declared import Fields, Flag, inside
from constrain.fields.values import refuse_together


@dataclass(frozen=True, slots=True)
class Streaming:
    """The way the answers to a request are sent.

    Attributes:
        is_wanted: whether answers are sent while they are written.
        include_usage: whether the last chunk has token counts.
        tells_progress: whether chunks tell how much of the prompt is read.
    """

    is_wanted: bool = False
    include_usage: bool = False
    tells_progress: bool = False


class _StreamOptions(Fields):
    include_usage: Flag = None
    include_obfuscation: object = None


class ProgressFields(Fields):
    """The field for chunks that tell how much of the prompt is read, as llama-server's."""

    return_progress: Flag = None


class StreamFields(Fields):
    """Fields for the way answers are sent."""

    stream: Flag = None
    stream_options: Annotated[_StreamOptions | None, inside(_StreamOptions)] = None

    def streaming(self) -> Streaming:
        """Returns the way answers are sent. Raises ``FieldError``."""
        refuse_together(stream_options=self.stream_options is not None, stream=self.stream)
        options = self.stream_options or _StreamOptions()
        return Streaming(self.stream or False, options.include_usage or False)
