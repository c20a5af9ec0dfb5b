"""Constraints of requests, compiled in the sandbox; and the errors for constraints that cannot be compiled.

Threads find and unpack constraints; the process of a ``session`` compiles them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import pickle
import random
import time
from copy import copy
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from constrain.chat.answers.arguments import reads_languages, tool_arguments
from constrain.chat.answers.choices import FunctionCalls
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.reading.events import TextDelta
from constrain.chat.reading.reader import CallEnded, CallStarted, Reader
from constrain.chat.tools.compiled import compile_arguments
from constrain.engine.compiling import to_compile
from constrain.errors import BudgetError, ConstrainError, LimitError
from constrain.json_schema.stages.pointers import find_data
from constrain.language.schema_text import JsonSchema, parse_schema, read_schema
from constrain.server.http.errors import ApiError
from constrain.server.requests.places import report_place
from constrain.server.sandbox.parts import answer_error, part_error, parts_of
from constrain.server.sandbox.workers import workers
from constrain.tables.dependent import rows_in
from constrain.work import steps_taken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.chat.tools.compiled import ToolArguments
    from constrain.engine.compiling import ToCompile
    from constrain.engine.constraint import Constraint, Matcher, Packed
    from constrain.generation.options import AnswerSettings
    from constrain.generation.plan import Language, Plan
    from constrain.server.requests.formats import Format
    from constrain.server.requests.places import Places
    from constrain.server.requests.question import Question
    from constrain.server.sandbox.parts import Part
    from constrain.server.sandbox.session import Session
    from constrain.tables.dependent import Dependent
    from constrain.vocabulary.vocabulary import Vocabulary

T = TypeVar("T")

_CHOICES = 24
"""Tokens of one trial text that are chosen among many candidates; after this number, the trial ends."""

_MANY = 64
"""Words of a mask (of 32 tokens each) with allowed tokens, above which a choice counts as one among many.

Masks with fewer words mostly allow spellings of one text, or white space.
"""

_TRIED_TOKENS = 200
"""Tokens of one trial text at most; then the trial ends."""

_TEXT_SECONDS = 2.0
"""CPU seconds that all masks of one trial text may take; a single one, a quarter. Beyond: LimitError, status 400."""

_BLAME_SHARE = 0.3
"""Share of the time limit that the parts of an answer get, after the whole took too long, to show which part is the
slow one.
"""

_MOST = 0.8
"""Share of that time that a part must take to be named as the slow one."""

_REMEMBERED = 256
"""Constraints whose refusals are remembered: 256, so that a client, or the lines of a batch, which send one again cost
nothing; beyond it, the oldest are forgotten.
"""

_TAUGHT_FROM = 32
"""Tools from which a list is long."""

_QUICK_STEPS = 20_000
"""Steps, about 10 milliseconds, beyond which the program of the sandbox does not compile a tool itself."""

_STAGED_STEPS, STAGE_STEPS = 500_000, 50_000
"""Compilation steps (2,000 take about a millisecond) of a schema with ``$data`` or ``given``, and of the grammar for
one of its values: the server's own process takes them. Beyond: LimitError; for a value, the answer ends with it."""

_SMALLER = "make it smaller, or leave them out and compare the values of the answer"

_ROOM = 4096
"""Tokens of an answer without a limit, for the trial walks."""


class InThread(Protocol):
    """A function that runs work in a thread next to the event loop: ``serving.generation.Generator.run_in_thread``."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Returns the result of the work."""


@dataclass(frozen=True, slots=True)
class _Order:
    """An order to compile: the language, and places of its parts in the request. Can be pickled.

    Schemas are in it as texts. Processes cannot share documents, so the process of the session parses them, too.

    Attributes:
        language: language of the answer.
        fingerprint: fingerprint of the vocabulary, which the process knows.
        content: format of the answer's content.
        places: names of the request's fields.
        settings: limits on tokens that the trial texts obey.
    """

    language: Language
    fingerprint: bytes
    content: Format | None
    places: Places
    settings: AnswerSettings

    def parts(self) -> list[Part]:
        """Returns the parts of the answer that can be compiled separately."""
        return parts_of(self.language, self.content, self.places)


async def compile_for(
    plan: Plan, question: Question, session: Session, in_thread: InThread
) -> tuple[Constraint | None, float]:
    """Returns the constraint of a plan, and the seconds it took. Raises ``ApiError``.

    The constraint is searched in the caches. If it is not there, the process of the session compiles it, and a thread
    unpacks the result.
    """
    started = time.perf_counter()
    if plan.language is None:
        return None, 0.0
    wanted, constraint = await in_thread(partial(_find, plan.language, plan.model.vocabulary))
    if constraint is None:
        async with session.alone(await in_thread(wanted.identity)) as has_waited:
            constraint = await in_thread(wanted.find) if has_waited else None
            if constraint is None:
                packed = await _compile_in_sandbox(plan, question, session)
                constraint = await in_thread(partial(wanted.unpack, packed))
                await _teach(plan.language, session)
    if constraint is not None and constraint.staged is not None:
        constraint.staged.most_steps = STAGE_STEPS
    return constraint, time.perf_counter() - started


def _find(language: Language, vocabulary: Vocabulary) -> tuple[ToCompile, Constraint | None]:
    """Returns a language on its way to a constraint, and the constraint if it is cached."""
    wanted = to_compile(language.schema, vocabulary, close_objects=True, **language.policies)
    return wanted, wanted.find()


async def _compile_in_sandbox(plan: Plan, question: Question, session: Session) -> Packed:
    """Compiles a language in the process of a session; returns the packed result. Raises ``ApiError``.

    A refusal depends on the order alone, not on how busy the machine is, and is remembered.
    """
    assert plan.language is not None
    vocabulary = plan.model.vocabulary
    order = _Order(plan.language, vocabulary.fingerprint, question.content, question.places, plan.settings)
    key, refusals = hashlib.sha256(pickle.dumps(order)).digest(), session.refusals
    if (known := refusals.get(key)) is not None:
        raise copy(known)
    try:
        schema = plan.language.schema
        rows = rows_in(schema.text) if isinstance(schema, JsonSchema) else ()
        return await session.run(vocabulary, compile_here, order, rows)
    except LimitError as error:
        refusal = await _explain_limit(order, vocabulary, session, error)
    except ApiError as error:
        refusal = error
    if refusal.status == HTTPStatus.BAD_REQUEST:
        refusals[key] = copy(refusal)
        while len(refusals) > _REMEMBERED:
            refusals.popitem(last=False)
    raise refusal


async def _teach(language: Language, session: Session) -> None:
    """Has the program of the sandbox learn the tools of a long list, for the next list, in which few differ.

    The tools that took many steps are left out: while the program learns, it forks no process.
    """
    answer = language.schema
    if isinstance(answer, AnswerLanguage) and len(answer.callable_tools()) >= _TAUGHT_FROM:
        with contextlib.suppress(LimitError, ApiError):  # the constraint is there already
            quick = await session.run(None, quick_tools, answer)
            asyncio.get_running_loop().run_in_executor(None, workers().teach, quick)


def quick_tools(answer: AnswerLanguage) -> list[ToolArguments]:
    """Returns the arguments of the tools of an answer that were compiled in few steps."""
    keys_apart, called = reads_languages(answer), (answer.tools[index] for index in answer.callable_tools())
    functions = (tool for tool in called if isinstance(tool, FunctionCalls))
    found = (tool_arguments(answer, tool, keys_apart=keys_apart) for tool in functions)
    return [each for each in found if compile_arguments(each).steps <= _QUICK_STEPS]


async def _explain_limit(order: _Order, vocabulary: Vocabulary, session: Session, error: LimitError) -> ApiError:
    """Returns the error for a compilation over the limit; it names the first part that alone takes too long.

    The parts are compiled once more, one after the other, in a share of the time.
    """
    parts, content = order.parts(), order.content
    if len(parts) == 1:
        return part_error(parts[0].place, error, content)
    with contextlib.closing(session.another(_BLAME_SHARE)) as one:
        try:
            await one.run(vocabulary, require_parts, parts, order)
        except LimitError:
            if one.place is not None and one.reached < (1 - _MOST) * one.limits.seconds:
                return part_error(one.place, error, content)
        except ApiError as found:  # or there is no room to find the part
            if found.status == HTTPStatus.BAD_REQUEST:
                return found
    return answer_error(content, error, tools=order.places.tools)


def compile_here(order: _Order, rows: Sequence[Dependent] = ()) -> Packed:  # noqa: ARG001 - kept until it is compiled
    """Compiles an order, with masks of two trial texts, and packs it. Raises ``LimitError`` and ``ApiError``.

    ``rows``: those of tables that the schema needs.
    """
    parts = order.parts()
    try:
        return _compile_and_try(order.language, parts, order)._packed()
    except LimitError:
        raise
    except ConstrainError as error:
        require_parts(parts, order)
        schema = order.language.schema
        has_tools = isinstance(schema, AnswerLanguage) and bool(schema.callable_tools())
        raise answer_error(order.content, error, tools=order.places.tools if has_tools else "") from error


def require_parts(parts: Sequence[Part], order: _Order) -> None:
    """Compiles parts of an answer, and reports the place of each. Raises ``ApiError`` for the first that fails."""
    for part in parts:
        report_place(part.place)
        try:
            _compile_and_try(part.language(), [part], order)
        except ConstrainError as error:
            raise part_error(part.place, error, order.content) from error


def _compile_and_try(language: Language, parts: Sequence[Part], order: _Order) -> Constraint:
    """Compiles an answer or one of its parts, and computes the masks of two trial texts.

    Raises ``ConstrainError``, and ``ApiError`` if one of the parts is the cause.
    """
    from constrain.server.sandbox.worker import vocabulary_of

    vocabulary, settings = vocabulary_of(order.fingerprint), order.settings
    try:
        constraint = language.compile(vocabulary, cache=False)
    except RecursionError as error:
        raise LimitError("it is nested too deeply to be compiled; make it flatter") from error
    if constraint.staged is not None:  # the server itself compiles what comes next, for each value
        if steps_taken() > _STAGED_STEPS:
            message = (
                f"a schema with $data or given may take {_STAGED_STEPS} steps to compile, this one more; {_SMALLER}"
            )
            raise LimitError(message, pointer=find_data(parse_schema(read_schema(language.schema).text)))
        constraint.staged.most_steps = STAGE_STEPS
    try:
        matcher = constraint.matcher(
            _ROOM if settings.max_tokens is None else settings.max_tokens,
            max_string_tokens=settings.max_string_tokens,
            max_number_tokens=settings.max_number_tokens,
            max_reasoning_tokens=settings.max_reasoning_tokens,
        )
    except BudgetError:  # the server says later how many tokens are needed
        return constraint
    for hurries in (False, True):
        where = _Position(language, vocabulary, parts)
        try:
            _walk(matcher, constraint.allocate_bitmask()[0], where.take, hurries=hurries)
        except _SlowPlaceError as error:
            if where.place is None:
                raise
            raise part_error(where.place, error, order.content) from error
        matcher.reset()
    return constraint


class _SlowPlaceError(LimitError):
    """A place of a text where computing the allowed tokens takes too long."""


class _Position:
    """The position of a text among the parts of an answer.

    Attributes:
        place: place of the part that the text is in; ``None`` between parts.
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
    """Feeds a random trial text to a matcher. Raises LimitError if masks take too long.

    With ``hurries``, every other token takes the shortest way to the end; so the text meets more parts of the answer,
    and without it more of each part. Computed masks are packed with the constraint, so their time is not lost.
    """
    drawn = random.Random(0)  # noqa: S311 - equal requests have equal answers
    begun = time.process_time()
    choices = tokens = 0
    while choices < _CHOICES and tokens < _TRIED_TOKENS and not matcher.is_finished:
        started = time.process_time()
        matcher.fill_bitmask(row)
        words = row.nonzero()[0].tolist()
        ending = matcher.completion_tokens() if hurries and tokens % 2 else []
        token = ending[0] if ending else _draw_token(row, words, drawn)
        matcher.accept(token)
        now = time.process_time()
        if now - started > _TEXT_SECONDS / 4:
            raise _SlowPlaceError(
                f"it takes more than {_TEXT_SECONDS / 4:g} seconds to say what may follow at some place of a text; "
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


def _draw_token(row: Any, words: list[int], drawn: random.Random) -> int:
    """Returns a random token of the given words of a mask."""
    word = drawn.choice(words)
    return 32 * word + drawn.choice([bit for bit in range(32) if row[word] >> bit & 1])
