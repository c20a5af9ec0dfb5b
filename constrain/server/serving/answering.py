"""Endpoints whose model answers questions: from the body of a request to its response or stream."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Generic, TypeVar

from starlette.responses import JSONResponse

from constrain.errors import ConstrainError
from constrain.generation.completion import Finished
from constrain.generation.reasoning import idle_switches
from constrain.server.http.account import warn
from constrain.server.http.errors import ApiError, failure
from constrain.server.serving.endpoint import Endpoint, send_stream
from constrain.server.serving.progress import PromptProgress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from starlette.types import Send

    from constrain.server.requests.declared import Body
    from constrain.server.requests.question import Asked, Question
    from constrain.server.sandbox.session import Session
    from constrain.server.serving.dialect import Writer
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.generation import Answers
    from constrain.server.serving.models import ServedModel

_log = logging.getLogger("constrain.server")


R = TypeVar("R", bound="Asked")


class Answering(Endpoint, Generic[R]):
    """An endpoint whose model writes answers.

    Args:
        serving: models, generator and settings.
        body: body of a request.
        writer: function that makes the writer of a request's answers, which the model has begun.
    """

    def __init__(
        self,
        serving: Serving,
        body: type[Body],
        writer: Callable[[R, ServedModel, Answers], Writer],
    ) -> None:
        super().__init__(serving, body)
        self._writer = writer

    def check(self, asked: R, served: ServedModel) -> None:
        """Raises ``ApiError`` if the model cannot do what a request asks for, as far as its fields tell, or warns."""
        warn_of_idle_switches(asked.questions[:1], served)

    async def prepare(self, asked: R) -> None:
        """Does what must be done before the answers to a request that has room are begun. Raises ``ApiError``."""

    async def keep(self, writer: Writer) -> None:
        """Keeps what a writer has made of a finished answer, before its end is sent. Raises ``ApiError``."""

    async def respond(self, asked: R, session: Session, send: Send) -> JSONResponse | None:
        """Returns the response to a request that was read; see ``Endpoint``."""
        generator, questions = self._serving.generator, asked.questions
        require_room(questions, generator.room)
        with generator.admit(_count(questions) - 1):
            await self.prepare(asked)
            async with self._serving.models.lease(self.find(asked.model)) as served:
                self.check(asked, served)
                answers = await generator.start(
                    served, questions, session, tells_progress=asked.streaming.tells_progress
                )
                with contextlib.closing(answers):
                    writer = self._writer(asked, served, answers)
                    if asked.streaming.is_wanted:
                        await send_stream(send, self._chunks(answers, questions, writer), writer.media_type)
                        return None
                    return await self._response(answers, questions, writer)

    async def _response(self, answers: Answers, questions: Sequence[Question], writer: Writer) -> JSONResponse:
        try:
            decide = self._serving.generator.decide
            completions = await (decide(answers) if questions[0].vote else answers.completions())
        except ConstrainError as error:
            _log.exception("a generation failed")
            raise failure() from error
        document = writer.response(completions)
        await self.keep(writer)
        return JSONResponse(document)

    async def _chunks(
        self, answers: Answers, questions: Sequence[Question], writer: Writer
    ) -> AsyncGenerator[str, None]:
        """Yields the answers in progress, chunk by chunk."""
        try:
            for chunk in writer.begin(_count(questions)):
                yield chunk
            async with contextlib.aclosing(answers.events()) as events:
                async for number, event in events:
                    if isinstance(event, PromptProgress):
                        for chunk in writer.tell(number, event):
                            yield chunk
                        continue
                    if isinstance(event, Finished):
                        self._serving.metrics.add(event.completion, is_first=_is_first(number, questions))
                    chunks = writer.write(number, event)
                    if isinstance(event, Finished):
                        chunks = iter([*chunks])
                        await self.keep(writer)
                    for chunk in chunks:
                        yield chunk
            for chunk in writer.end():
                yield chunk
        except ApiError as error:
            error.log_reason()
            yield writer.fail(error)
        except Exception:  # noqa: BLE001 - the client has to hear of it, whatever it is
            _log.exception("a generation failed")
            yield writer.fail(failure())


def warn_of_idle_switches(questions: Sequence[Question], served: ServedModel) -> None:
    """Warns of options about reasoning that the model's template does not heed."""
    for question in questions:
        if not question.prefill:
            for warning in idle_switches(served.model, question.options):
                warn(warning)


def _count(questions: Sequence[Question]) -> int:
    """Returns the number of answers."""
    return sum(question.n for question in questions)


def _is_first(number: int, questions: Sequence[Question]) -> bool:
    """Returns whether an answer is the first one for its question."""
    return number % questions[0].n == 0


def require_room(questions: Sequence[Question], room: int) -> None:
    """Raises ``ApiError`` for more answers than the server ever has room for."""
    count, prompt = _count(questions), questions[0].places.prompt
    if count <= room:
        return
    if len(questions) > 1:
        raise ApiError(
            f"Invalid '{prompt}': the prompts times n ask for {count} answers, and this server takes at most {room} at "
            "once. Send fewer prompts, or a smaller n.",
            param=prompt,
            code="array_above_max_length",
        )
    raise ApiError(
        f"Invalid 'n': integer above maximum value. Expected a value <= {room}, but got {count} instead.",
        param="n",
        code="integer_above_max_value",
    )
