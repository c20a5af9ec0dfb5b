"""Constraints of requests, compiled in a process of their own; and what is said where that is not possible."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import random
import time
from functools import partial
from http import HTTPStatus
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from constrain._completion import TextDelta
from constrain._errors import BudgetError, ConstrainError, LimitError
from constrain.chat.answers import Answer
from constrain.chat.reading import CallStarted, Reader
from constrain.server.errors import ApiError
from constrain.server.parts import parts_of, refused, refused_part
from constrain.server.reading import come_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain._job import Language, Plan
    from constrain._options import Request
    from constrain.constraint import Constraint, Matcher, Packed
    from constrain.server.formats import Format
    from constrain.server.parts import Part
    from constrain.server.session import Session
    from constrain.vocabulary import Vocabulary

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
        arguments = language, vocabulary.fingerprint, content, plan.request
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
    parts, vocabulary = parts_of(plan.language, content), plan.model.vocabulary
    place = parts[0].place if len(parts) == 1 else session.place
    if place is not None:
        return refused_part(place, error, content)
    with contextlib.closing(session.another(_BLAME_SHARE)) as one:
        try:
            seconds = await one.run(vocabulary, require_parts, parts, vocabulary.fingerprint, content, plan.request)
            if max(seconds, default=0.0) > _MOST * sum(seconds):
                return refused_part(parts[seconds.index(max(seconds))].place, error, content)
        except LimitError:
            if one.place is not None:
                return refused_part(one.place, error, content)
        except ApiError as found:
            if found.status == HTTPStatus.BAD_REQUEST:  # else there is no room to find out
                return found
    return refused(content, error, has_tools=True)


def compile_here(language: Language, fingerprint: bytes, content: Format | None, request: Request) -> Packed:
    """Compiles, with the beginning of an answer, and packs it up. Raises ``LimitError`` and ``ApiError``."""
    from constrain.server.worker import vocabulary_of

    parts = parts_of(language, content)
    try:
        return _compiled(language, vocabulary_of(fingerprint), request, parts)._packed()
    except LimitError:
        raise
    except ConstrainError as error:
        require_parts(parts, fingerprint, content, request)
        has_tools = isinstance(language.schema, Answer) and bool(language.schema.callable_tools())
        raise refused(content, error, has_tools=has_tools) from error


def require_parts(parts: Sequence[Part], fingerprint: bytes, content: Format | None, request: Request) -> list[float]:
    """Compiles the parts of an answer, each for itself; returns the seconds that these took of a processor.

    Raises ``ApiError`` for the first one that cannot be compiled.
    """
    from constrain.server.worker import vocabulary_of

    times = [time.process_time()]
    for part in parts:
        come_to(part.place)
        try:
            _compiled(part.language, vocabulary_of(fingerprint), request, [part])
        except ConstrainError as error:
            raise refused_part(part.place, error, content) from error
        times.append(time.process_time())
    return [after - before for before, after in pairwise(times)]


def _compiled(language: Language, vocabulary: Vocabulary, request: Request, parts: Sequence[Part]) -> Constraint:
    """The constraint, with what the beginnings of two answers need; says which of the parts these come to.

    Raises ``ConstrainError``.
    """
    constraint = language.compile(vocabulary, cache=False)
    try:
        matcher = constraint.matcher(
            _ROOM if request.max_tokens is None else request.max_tokens,
            max_string_tokens=request.max_string_tokens,
            max_number_tokens=request.max_number_tokens,
            max_reasoning_tokens=request.max_reasoning_tokens,
        )
        for hurries in (False, True):
            come = _follower(language, vocabulary, parts)
            _walk(matcher, constraint.allocate_bitmask()[0], come, hurries=hurries)
            matcher.reset()
    except BudgetError:  # the server says how many tokens there must be
        pass
    return constraint


def _follower(language: Language, vocabulary: Vocabulary, parts: Sequence[Part]) -> Callable[[int], None]:
    """What is told the tokens of a text, and says which of several parts that has come to."""
    answer = language.schema
    reader = Reader(answer) if isinstance(answer, Answer) and len(parts) > 1 else None
    places = {part.tool: part.place for part in parts}

    def follow(token: int) -> None:
        for event in [] if reader is None else reader.feed(vocabulary.marked_bytes(token)):
            if isinstance(event, CallStarted):
                come_to(places[event.name])
            elif isinstance(event, TextDelta) and "" in places:
                come_to(places[""])

    return follow


def _walk(matcher: Matcher, row: Any, come: Callable[[int], None], *, hurries: bool) -> None:
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
        if now - started > _MASK_SECONDS or now - begun > _TEXT_SECONDS:
            raise LimitError(
                f"it takes too long to say what may follow at some place of a text ({_MASK_SECONDS:g} seconds), "
                f"or in all of it ({_TEXT_SECONDS:g}); simplify patterns and their bounds"
            )
        come(token)
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
