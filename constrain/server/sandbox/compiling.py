"""Constraints of requests, compiled in a process of their own; and what is said where that is not possible."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import random
import signal
import time
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.reading.events import TextDelta
from constrain.chat.reading.reader import CallEnded, CallStarted, Reader
from constrain.errors import BudgetError, ConstrainError, LimitError
from constrain.server.http.errors import ApiError
from constrain.server.requests.places import come_to
from constrain.server.sandbox.parts import parts_of, refused, refused_part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.engine.constraint import Constraint, Matcher, Packed
    from constrain.generation.job import Language, Plan
    from constrain.generation.options import AnswerSettings
    from constrain.server.requests.formats import Format
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
"""At none of its places may it take as long to say what may follow."""

_TEXT_SECONDS = 2.0
"""Nor at all of them together."""

_BLAME_SHARE = 0.3
"""Of the time to compile: once all of an answer took too long, its parts have so much more to show which one it is."""

_PART_SHARE = 1 / 3
"""Of that time: what takes longer is the only such part, or none is to blame by itself."""

_MOST = 0.8
"""More than that, of the time that the parts take, is for one of them to have taken too long."""

_ROOM = 4096
"""Tokens of an answer without a limit, as far as what can be told of them ahead is concerned."""


class Aside(Protocol):
    """Does work in a thread beside the event loop."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """What the work returns."""


async def compiled(
    plan: Plan,
    content: Format | None,
    session: Session,
    aside: Aside,
) -> tuple[Constraint | None, float]:
    """The constraint of a plan, and how many seconds it took. Raises ``ApiError``."""
    started = time.perf_counter()
    vocabulary, language = plan.model.vocabulary, plan.language
    if language is None:
        return None, 0.0
    constraint = await aside(partial(_known, language, plan))
    if constraint is None:
        arguments = language, vocabulary.fingerprint, content, plan.settings
        key = await aside(partial(_key, language, vocabulary.fingerprint))
        async with session.alone(key) as has_waited:
            constraint = await aside(partial(_known, language, plan)) if has_waited else None
            if constraint is None:
                try:
                    packed = await session.run(vocabulary, compile_here, *arguments)
                except LimitError as error:
                    raise await _blamed(plan, content, session, error) from error
                constraint = await aside(partial(language.compile, vocabulary, lambda: packed))
    return constraint, time.perf_counter() - started


async def _blamed(plan: Plan, content: Format | None, session: Session, error: LimitError) -> ApiError:
    """What is answered where it takes too much to compile something: the part of it that takes most, if one does."""
    assert plan.language is not None
    parts = parts_of(plan.language, content)
    if len(parts) == 1:
        return refused_part(parts[0].place, error, content)
    with contextlib.closing(session.another(_BLAME_SHARE)) as one:
        try:
            heaviest = await _heaviest(parts, plan, content, one)
        except LimitError:  # more than one is heavy
            heaviest = None
        except ApiError as found:
            if found.status == HTTPStatus.BAD_REQUEST:
                return found
            heaviest = None  # there is no room to find out
    return refused(content, error, has_tools=True) if heaviest is None else refused_part(heaviest.place, error, content)


async def _heaviest(parts: Sequence[Part], plan: Plan, content: Format | None, one: Session) -> Part | None:
    """The part that takes most of the time by far, if there is one.

    A part that takes more than its share is left until the others are done, and has what they leave. Raises
    ``LimitError`` if there are two; ``ApiError`` for a part that cannot be compiled at all.
    """
    vocabulary = plan.model.vocabulary

    async def times(some: Sequence[Part], most: float) -> list[float]:
        return await one.run(vocabulary, times_of, some, most, vocabulary.fingerprint, content, plan.settings)

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


def compile_here(language: Language, fingerprint: bytes, content: Format | None, settings: AnswerSettings) -> Packed:
    """Compiles, with the beginning of an answer, and packs it up. Raises ``LimitError`` and ``ApiError``."""
    from constrain.server.sandbox.worker import vocabulary_of

    parts = parts_of(language, content)
    try:
        return _compiled(language, vocabulary_of(fingerprint), settings, parts, content)._packed()
    except LimitError:
        raise
    except ConstrainError as error:
        for part in parts:
            _require(part, fingerprint, content, settings)
        has_tools = isinstance(language.schema, AnswerLanguage) and bool(language.schema.callable_tools())
        raise refused(content, error, has_tools=has_tools) from error


def times_of(
    parts: Sequence[Part], most: float, fingerprint: bytes, content: Format | None, settings: AnswerSettings
) -> list[float]:
    """Compiles parts of an answer, each for itself; returns the seconds that these took of a processor.

    One that takes more than ``most`` ends the process, which has come to its place. Raises ``ApiError`` for the first
    one that cannot be compiled.
    """
    times = []
    for part in parts:
        signal.setitimer(signal.ITIMER_PROF, most)
        come_to(part.place)
        begun = time.process_time()
        _require(part, fingerprint, content, settings)
        times.append(time.process_time() - begun)
    return times


def _require(part: Part, fingerprint: bytes, content: Format | None, settings: AnswerSettings) -> None:
    """Compiles a part. Raises ``ApiError``."""
    from constrain.server.sandbox.worker import vocabulary_of

    try:
        _compiled(part.language, vocabulary_of(fingerprint), settings, [part], content)
    except ConstrainError as error:
        raise refused_part(part.place, error, content) from error


def _compiled(
    language: Language, vocabulary: Vocabulary, settings: AnswerSettings, parts: Sequence[Part], content: Format | None
) -> Constraint:
    """The constraint, with what the beginnings of two answers need.

    Raises ``ConstrainError``, and ``ApiError`` where one of the parts is to blame.
    """
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
            raise refused_part(where.place, error, content) from error
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
        """Reads on."""
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


def _key(language: Language, fingerprint: bytes) -> bytes:
    """The same for what is compiled alike."""
    return hashlib.sha256(pickle.dumps((language, fingerprint))).digest()


class _NotKnownError(Exception):
    pass


def _known(language: Language, plan: Plan) -> Constraint | None:
    """The constraint, if it was compiled before."""
    try:
        return language.compile(plan.model.vocabulary, _not_known)
    except _NotKnownError:
        return None


def _not_known() -> Packed:
    raise _NotKnownError
