"""The seam between the server and a dialect of HTTP: chat completions, messages, Ollama's API, ...

A dialect is one ``Dialect``, in a folder of its own that imports no other dialect. ``server.dialects`` lists them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.routing import Match, Route

from constrain.server.http.events import EVENT_STREAM, data_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from starlette.types import Scope

    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.completion import Completion, Finished
    from constrain.server.http.account import ErrorObject
    from constrain.server.http.errors import ApiError
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.progress import PromptProgress


def _nowhere(*_: object) -> bool:
    return False


class Writer(ABC):
    """A writer of the answers to one request: all at once, or chunk by chunk.

    Attributes:
        media_type: media type of a stream of chunks.
    """

    media_type = EVENT_STREAM

    @abstractmethod
    def response(self, completions: Sequence[Completion]) -> dict[str, Any]:
        """Returns the response for finished answers."""

    def begin(self, count: int) -> Iterator[str]:  # noqa: ARG002 - subclasses' use
        """Yields the chunks in front of ``count`` answers: none."""
        return iter(())

    @abstractmethod
    def write(self, number: int, event: StreamEvent | Finished) -> Iterator[str]:
        """Yields the chunks for an event of an answer."""

    def tell(self, number: int, progress: PromptProgress) -> Iterator[str]:  # noqa: ARG002 - subclasses' use
        """Yields the chunks that tell how much of a prompt is read, where a request asks for it: none."""
        return iter(())

    def end(self) -> Iterator[str]:
        """Yields the chunks after all answers are finished: none."""
        return iter(())

    @staticmethod
    def failed(error: ApiError, sent: int = 0) -> str:  # noqa: ARG004 - subclasses' use
        """Returns the last part of a stream which an error ends. ``sent``: number of events before it."""
        return data_event(error.body())

    def fail(self, error: ApiError) -> str:
        """Returns the last part of this stream, which an error ends."""
        return self.failed(error)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A dialect of HTTP that the server speaks.

    Attributes:
        routes: function that returns its routes; nothing if the settings turn it off.
        readers: bodies, and functions that the sandbox calls. Their modules are imported there early.
        owns: function that returns whether errors have the dialect's form, for the path and headers of a request.
        error_object: function that makes the JSON object of an error; ``None`` for OpenAI's form.
        stream_type: how the media type of its streams begins.
        stream_error: function that returns the last part of a stream which an error ends, from the error and the number
            of events before.
        id_header: header of its own with the id of the request; ``""`` for none.
        is_open: function that returns whether a path needs no key.
    """

    routes: Callable[[Serving], Sequence[Route]]
    readers: tuple[Callable[..., Any], ...] = ()
    owns: Callable[[str, Headers], bool] = _nowhere
    error_object: ErrorObject | None = None
    stream_type: str = "text/event-stream"
    stream_error: Callable[[ApiError, int], str] = Writer.failed
    id_header: str = ""
    is_open: Callable[[str], bool] = _nowhere


class ChosenRoute(Route):
    """A route for some requests alone; others go on to the next route of the path.

    ``is_for``: function that returns whether the route is for a request with a method and headers.
    """

    def __init__(self, path: str, endpoint: Any, is_for: Callable[[str, Headers], bool], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self._is_for = is_for

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Returns whether a request takes this route."""
        if scope["type"] == "http" and self._is_for(scope["method"], Headers(scope=scope)):
            return super().matches(scope)
        return Match.NONE, {}
