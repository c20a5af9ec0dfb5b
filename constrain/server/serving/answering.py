"""Endpoints that have a model answer questions: from the body of a request to its response or stream."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from starlette.responses import JSONResponse

from constrain.errors import ConstrainError
from constrain.generation.completion import Finished
from constrain.server.http.errors import ApiError, failure
from constrain.server.http.events import data_event
from constrain.server.serving.endpoint import Endpoint, send_stream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence

    from starlette.requests import Request
    from starlette.types import Send

    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.completion import Completion
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.generation import Answers, Question
    from constrain.server.serving.models import ServedModel
    from constrain.server.settings import Settings

_log = logging.getLogger("constrain.server")


class Writer(Protocol):
    """Writes the answers to one request: all at once, or chunk by chunk."""

    def response(self, completions: Sequence[Completion]) -> dict[str, Any]:
        """The response."""
        ...

    def begin(self, count: int) -> Iterator[str]:
        """What so many answers begin with."""
        ...

    def write(self, number: int, event: StreamEvent | Finished) -> Iterator[str]:
        """The chunks for something that happened in an answer."""
        ...

    def end(self) -> Iterator[str]:
        """What follows when all answers are finished."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was read.

    Attributes:
        model: the name of that which is asked.
        questions: they differ in their prompts alone.
        stream: whether the answers are sent as they are written.
        writer: makes what writes them.
        renamed: an error with its place as the request names it; None where that is the place already.
    """

    model: str
    questions: tuple[Question, ...]
    stream: bool
    writer: Callable[[ServedModel], Writer]
    renamed: Callable[[ApiError], ApiError] | None = None

    @property
    def count(self) -> int:
        """The number of answers."""
        return sum(question.n for question in self.questions)

    def is_first(self, number: int) -> bool:
        """Whether an answer is the first to its question."""
        return number % self.questions[0].n == 0


class Reads(Protocol):
    """Makes of a parsed body what is asked. Raises ``ApiError``."""

    def __call__(self, body: Mapping[str, Any], settings: Settings) -> Asked:
        """What is asked."""
        ...


class Answering(Endpoint):
    """An endpoint. ``read``: can be pickled."""

    def __init__(self, serving: Serving, read: Reads) -> None:
        super().__init__(serving)
        self._read = read

    async def answer(self, body: bytes, request: Request, send: Send) -> None:
        """See ``Endpoint``."""
        generator = self._serving.generator
        with generator.admit(1), generator.session() as session:
            asked = await self.read(body, partial(self._read, settings=self._serving.settings), session)
            _require_room(asked, generator.room)
            with generator.admit(asked.count - 1):
                async with self._serving.models.lease(asked.model) as served:
                    try:
                        answers = await generator.start(served, asked.questions, session)
                    except ApiError as error:
                        if asked.renamed is None:
                            raise
                        raise asked.renamed(error) from error
                    with contextlib.closing(answers):
                        writer = asked.writer(served)
                        if asked.stream:
                            await send_stream(send, self._chunks(answers, asked, writer))
                            return
                        response = await self._response(answers, asked, writer)
        await response(request.scope, request.receive, send)

    async def _response(self, answers: Answers, asked: Asked, writer: Writer) -> JSONResponse:
        try:
            completions = await answers.completions()
        except ConstrainError as error:
            _log.exception("a generation failed")
            raise failure() from error
        for number, completion in enumerate(completions):
            self._serving.metrics.add(completion, is_first=asked.is_first(number))
        return JSONResponse(writer.response(completions))

    async def _chunks(self, answers: Answers, asked: Asked, writer: Writer) -> AsyncGenerator[str, None]:
        """The answers as they are written, as server-sent events."""
        try:
            for chunk in writer.begin(asked.count):
                yield chunk
            async with contextlib.aclosing(answers.events()) as events:
                async for number, event in events:
                    if isinstance(event, Finished):
                        self._serving.metrics.add(event.completion, is_first=asked.is_first(number))
                    for chunk in writer.write(number, event):
                        yield chunk
            for chunk in writer.end():
                yield chunk
        except ApiError as error:
            error.note()
            yield data_event(error.body())
        except Exception:  # noqa: BLE001 - the client has to hear of it, whatever it is
            _log.exception("a generation failed")
            yield data_event(failure().body())


def _require_room(asked: Asked, room: int) -> None:
    """Raises ``ApiError`` for more answers than there ever is room for."""
    if asked.count <= room:
        return
    if len(asked.questions) > 1:
        raise ApiError(
            f"Invalid '{asked.questions[0].place}': {asked.count} answers are asked for. Expected a value <= {room}: "
            "that many this server takes at once.",
            param=asked.questions[0].place,
            code="array_above_max_length",
        )
    raise ApiError(
        f"Invalid 'n': integer above maximum value. Expected a value <= {room}, but got {asked.count} instead.",
        param="n",
        code="integer_above_max_value",
    )
