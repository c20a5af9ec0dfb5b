"""Constraints of requests, compiled in a process of their own; and what is said where that is not possible.

Threads find and unpack constraints; ``session`` compiles them.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.reading.events import TextDelta
from constrain.chat.reading.reader import CallEnded, CallStarted, Reader
from constrain.engine.constraint import to_compile
from constrain.errors import BudgetError, ConstrainError, LimitError
from constrain.server.http.errors import ApiError
from constrain.server.requests.places import come_to
from constrain.server.sandbox.parts import parts_of, refused, refused_part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.engine.constraint import Constraint, Matcher, Packed, ToCompile
    from constrain.generation.job import Language, Plan
    from constrain.generation.options import AnswerSettings
    from constrain.server.requests.formats import Format
    from constrain.server.requests.places import Places
    from constrain.server.requests.question import Question
    from constrain.server.sandbox.parts import Part
    from constrain.server.sandbox.session import Session
    from constrain.vocabulary.vocabulary import Vocabulary

T = TypeVar("T")

_CHOICES = 24
"""So often is a token chosen among many when a text is tried."""

_MANY = 64
"""Words of a mask that have tokens. Fewer are mostly ways to write what has to be written, or spaces."""

_TRIED_TOKENS = 200
"""The most tokens of such a text."""

_MASK_SECONDS = 0.5
"""CPU seconds that one mask of a trial text may take. Beyond: LimitError, status 400."""

_TEXT_SECONDS = 2.0
"""CPU seconds that one trial text may take, all its masks together. Beyond: LimitError, status 400."""

_BLAME_SHARE = 0.3
"""Of the time to compile: once all of an answer took too long, its parts have so much more to show which one it is."""

_PART_SHARE = 1 / 3
"""Of that time: what takes longer is the only such part, or none is to blame by itself."""

_MOST = 0.8
"""More than that, of the time that the parts take, is for one of them to have taken too long."""

_ROOM = 4096
"""Tokens of an answer without a limit, as far as what can be told of them ahead is concerned."""


class InThread(Protocol):
    """Does work in a thread beside the event loop: ``serving.generation`` has the one there is (``aside``)."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """What the work returns."""


@dataclass(frozen=True, slots=True)
class _Order:
    """What the process of a session compiles for a request, and where the request has its parts. Can be pickled.

    Attributes:
        language: of the answer.
        fingerprint: of the vocabulary, which the process knows.
        content: what the content of the answer must match.
        places: of the request.
        settings: limits on tokens, which the beginning of an answer keeps to.
    """

    language: Language
    fingerprint: bytes
    content: Format | None
    places: Places
    settings: AnswerSettings

    def parts(self) -> list[Part]:
        """The parts of the answer that can be compiled by themselves."""
        return parts_of(self.language, self.content, self.places)


async def compile_for(
    plan: Plan, question: Question, session: Session, aside: InThread
) -> tuple[Constraint | None, float]:
    """The constraint of a plan, and how many seconds it took. Raises ``ApiError``.

    In three steps: find it; where it is not known, compile it in the process of the session; unpack what that sends.
    """
    started = time.perf_counter()
    if plan.language is None:
        return None, 0.0
    wanted, constraint = await aside(partial(_find, plan.language, plan.model.vocabulary))
    if constraint is None:
        async with session.alone(await aside(wanted.identity)) as has_waited:
            constraint = await aside(wanted.find) if has_waited else None
            if constraint is None:
                packed = await _compile_in_sandbox(plan, wanted, question, session)
                constraint = await aside(partial(wanted.unpack, packed))
    return constraint, time.perf_counter() - started


def _find(language: Language, vocabulary: Vocabulary) -> tuple[ToCompile, Constraint | None]:
    """A language on its way to a constraint, and that if it is known."""
    wanted = to_compile(language.schema, vocabulary, close_objects=True, **language.policies)
    return wanted, wanted.find()


async def _compile_in_sandbox(plan: Plan, wanted: ToCompile, question: Question, session: Session) -> Packed:
    """What the process of a session makes of a language, packed. Raises ``ApiError``."""
    assert plan.language is not None
    vocabulary, text = plan.model.vocabulary, wanted.schema_text
    language = plan.language if text is None else replace(plan.language, schema=text)  # so that it is written once
    order = _Order(language, vocabulary.fingerprint, question.content, question.places, plan.settings)
    try:
        return await session.run(vocabulary, compile_here, order)
    except LimitError as error:
        raise await _blamed(order, vocabulary, session, error) from error


async def _blamed(order: _Order, vocabulary: Vocabulary, session: Session, error: LimitError) -> ApiError:
    """What is answered where it takes too much to compile something: the part of it that takes most, if one does."""
    parts, content = order.parts(), order.content
    if len(parts) == 1:
        return refused_part(parts[0].place, error, content)
    with contextlib.closing(session.another(_BLAME_SHARE)) as one:
        try:
            heaviest = await _heaviest(parts, order, vocabulary, one)
        except LimitError:  # more than one is heavy
            heaviest = None
        except ApiError as found:
            if found.status == HTTPStatus.BAD_REQUEST:
                return found
            heaviest = None  # there is no room to find out
    if heaviest is None:
        return refused(content, error, tools=order.places.tools)
    return refused_part(heaviest.place, error, content)


async def _heaviest(parts: Sequence[Part], order: _Order, vocabulary: Vocabulary, one: Session) -> Part | None:
    """The part that takes most of the time by far, if there is one.

    A part that takes more than its share is left until the others are done, and has what they leave. Raises
    ``LimitError`` if there are two; ``ApiError`` for a part that cannot be compiled at all.
    """

    async def times(some: Sequence[Part], most: float) -> list[float]:
        return await one.run(vocabulary, times_of, some, most, order)

    seconds = one.limits.seconds
    try:
        each = await times(parts, seconds * _PART_SHARE)
        longest = max(each)
        heaviest, others = parts[each.index(longest)], sum(each) - longest
    except LimitError:
        if one.place is None:  # it did not come to any of them
            raise
        index = [part.place for part in parts].index(one.place)
        heaviest, others = parts[index], one.reached
        one.close()
        others += sum(await times(parts[index + 1 :], seconds * _PART_SHARE))
        longest = seconds * (1 - _PART_SHARE) - others
        if longest > 0:
            with contextlib.suppress(LimitError):
                (longest,) = await times([heaviest], longest)
    return heaviest if longest > _MOST * (longest + others) else None


def compile_here(order: _Order) -> Packed:
    """Compiles, with the beginning of an answer, and packs it up. Raises ``LimitError`` and ``ApiError``."""
    parts = order.parts()
    try:
        return _compile_and_try(order.language, parts, order)._packed()
    except LimitError:
        raise
    except ConstrainError as error:
        for part in parts:
            _require(part, order)
        schema = order.language.schema
        has_tools = isinstance(schema, AnswerLanguage) and bool(schema.callable_tools())
        raise refused(order.content, error, tools=order.places.tools if has_tools else "") from error


def times_of(parts: Sequence[Part], most: float, order: _Order) -> list[float]:
    """Compiles parts of an answer, each for itself; returns the seconds that these took of a processor.

    One that takes more than ``most`` ends the process, which has come to its place. Raises ``ApiError`` for the first
    one that cannot be compiled.
    """
    times = []
    for part in parts:
        signal.setitimer(signal.ITIMER_PROF, most)
        come_to(part.place)
        begun = time.process_time()
        _require(part, order)
        times.append(time.process_time() - begun)
    return times


def _require(part: Part, order: _Order) -> None:
    """Compiles a part. Raises ``ApiError``."""
    try:
        _compile_and_try(part.language, [part], order)
    except ConstrainError as error:
        raise refused_part(part.place, error, order.content) from error


def _compile_and_try(language: Language, parts: Sequence[Part], order: _Order) -> Constraint:
    """The constraint of an answer or of one of its parts, with what the beginnings of two answers need.

    Raises ``ConstrainError``, and ``ApiError`` where one of the parts is to blame.
    """
    from constrain.server.sandbox.worker import vocabulary_of

    vocabulary, settings = vocabulary_of(order.fingerprint), order.settings
    try:
        constraint = language.compile(vocabulary, cache=False)
    except RecursionError as error:
        raise LimitError("it is nested too deeply to be compiled; make it flatter") from error
    try:
        matcher = constraint.matcher(
            _ROOM if settings.max_tokens is None else settings.max_tokens,
            max_string_tokens=settings.max_string_tokens,
            max_number_tokens=settings.max_number_tokens,
            max_reasoning_tokens=settings.max_reasoning_tokens,
        )
    except BudgetError:  # the server says how many tokens there must be
        return constraint
    for hurries in (False, True):
        where = _Whereabouts(language, vocabulary, parts)
        try:
            _walk(matcher, constraint.allocate_bitmask()[0], where.take, hurries=hurries)
        except _SlowPlaceError as error:
            if where.place is None:
                raise
            raise refused_part(where.place, error, order.content) from error
        matcher.reset()
    return constraint


class _SlowPlaceError(LimitError):
    """It takes too long to say what may follow at one place."""


class _Whereabouts:
    """Which of several parts of an answer a text has come to.

    Attributes:
        place: the part's; ``None`` for a place between them.
    """

    def __init__(self, language: Language, vocabulary: Vocabulary, parts: Sequence[Part]) -> None:
        self.place = parts[0].place if len(parts) == 1 else None
        answer = language.schema
        self._reader = Reader(answer) if isinstance(answer, AnswerLanguage) and len(parts) > 1 else None
        self._bytes = vocabulary.marked_bytes
        self._places = {part.tool: part.place for part in parts}

    def take(self, token: int) -> None:
        """Feeds one token and updates the place."""
        for event in [] if self._reader is None else self._reader.feed(self._bytes(token)):
            if isinstance(event, CallStarted):
                self.place = self._places[event.name]
            elif isinstance(event, CallEnded):
                self.place = None
            elif isinstance(event, TextDelta):
                self.place = self._places.get("")


def _walk(matcher: Matcher, row: Any, take: Callable[[int], None], *, hurries: bool) -> None:
    """Follows a text at random for a while. Raises LimitError where it takes too long to say what may follow.

    One that ``hurries`` takes the shortest way to the end every other time; so it meets more parts of the answer, and
    the other one more of each. What is met is packed up with the constraint, so that the time is not lost.
    """
    drawn = random.Random(0)  # noqa: S311 - equal requests have equal answers
    begun = time.process_time()
    choices = tokens = 0
    while choices < _CHOICES and tokens < _TRIED_TOKENS and not matcher.is_finished:
        started = time.process_time()
        matcher.fill_bitmask(row)
        words = row.nonzero()[0].tolist()
        ending = matcher.completion_tokens() if hurries and tokens % 2 else []
        token = ending[0] if ending else _drawn(row, words, drawn)
        matcher.accept(token)
        now = time.process_time()
        if now - started > _MASK_SECONDS:
            raise _SlowPlaceError(
                f"it takes more than {_MASK_SECONDS:g} seconds to say what may follow at some place of a text; "
                f"simplify patterns and their bounds"
            )
        if now - begun > _TEXT_SECONDS:
            raise LimitError(
                f"it takes more than {_TEXT_SECONDS:g} seconds to say what may follow at the places of a text; "
                f"simplify patterns and their bounds"
            )
        take(token)
        choices += len(words) > _MANY
        tokens += 1


def _drawn(row: Any, words: list[int], drawn: random.Random) -> int:
    """A token of one of the words of a mask."""
    word = drawn.choice(words)
    return 32 * word + drawn.choice([bit for bit in range(32) if row[word] >> bit & 1])
