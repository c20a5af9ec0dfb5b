"""Constraints of requests, compiled in a process of their own; and what is said where that is not possible."""

from __future__ import annotations

import hashlib
import pickle
import random
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from constrain._errors import BudgetError, ConstrainError, LimitError
from constrain._job import Language
from constrain.chat.answers import Answer, CustomCalls
from constrain.server.errors import ApiError
from constrain.server.formats import refused_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from constrain._job import Plan
    from constrain._options import Request
    from constrain.constraint import Constraint, Matcher, Packed
    from constrain.server.session import Session
    from constrain.vocabulary import Vocabulary

T = TypeVar("T")

_CHOICES = 24
_MASK_SECONDS = 0.5
"""A text with so many tokens that might be others is tried; at none of its places may a mask take as long."""

_ROOM = 4096
"""Tokens of an answer without a limit, as far as what can be told of them ahead is concerned."""


class Aside(Protocol):
    """Does work in a thread beside the event loop."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """What the work returns."""


async def compiled(
    plan: Plan,
    schema: Mapping[str, Any] | None,
    session: Session,
    aside: Aside,
) -> tuple[Constraint | None, float]:
    """The constraint of a plan, and how many seconds it took. ``schema``: of the content. Raises ``ApiError``."""
    started = time.perf_counter()
    vocabulary, language = plan.model.vocabulary, plan.language
    if language is None:
        return None, 0.0
    constraint = await aside(partial(_known, language, plan))
    if constraint is None:
        arguments = language, vocabulary.fingerprint, schema, plan.request
        key = await aside(partial(_key, language, vocabulary.fingerprint))
        async with session.alone(key) as has_waited:
            constraint = await aside(partial(_known, language, plan)) if has_waited else None
            if constraint is None:
                try:
                    packed = await session.run(vocabulary, compile_here, *arguments)
                except LimitError as error:
                    raise refused(schema, error) from error
                constraint = await aside(partial(language.compile, vocabulary, lambda: packed))
    return constraint, time.perf_counter() - started


def compile_here(language: Language, fingerprint: bytes, schema: Mapping[str, Any] | None, request: Request) -> Packed:
    """Compiles, with the beginning of an answer, and packs it up. Raises ``ApiError``."""
    from constrain.server.worker import vocabulary_of

    vocabulary = vocabulary_of(fingerprint)
    try:
        constraint = language.compile(vocabulary, cache=False)
    except ConstrainError as error:
        raise _refused_tool(language, vocabulary) or refused(schema, error) from error
    try:
        matcher = constraint.matcher(
            _ROOM if request.max_tokens is None else request.max_tokens,
            max_string_tokens=request.max_string_tokens,
            max_number_tokens=request.max_number_tokens,
            max_reasoning_tokens=request.max_reasoning_tokens,
        )
        _walk(matcher, constraint.allocate_bitmask()[0])
    except BudgetError:  # the server says how many tokens there must be
        pass
    except ConstrainError as error:
        raise refused(schema, error) from error
    return constraint._packed()


def _walk(matcher: Matcher, row: Any) -> None:
    """Follows a text at random for a while. Raises LimitError if a mask takes too long.

    What is met is packed up with the constraint, so that the time is not lost.
    """
    drawn = random.Random(0)  # noqa: S311 - equal requests have equal answers
    choices = 0
    while choices < _CHOICES and not matcher.is_finished:
        started = time.process_time()
        matcher.fill_bitmask(row)
        if time.process_time() - started > _MASK_SECONDS:
            raise LimitError(
                f"to say what may follow takes more than {_MASK_SECONDS} seconds at some place of a text; "
                "simplify patterns and their bounds"
            )
        words = row.nonzero()[0].tolist()
        word = drawn.choice(words)
        bits = [bit for bit in range(32) if row[word] >> bit & 1]
        matcher.accept(32 * word + drawn.choice(bits))
        choices += len(words) > 1 or len(bits) > 1


def refused(schema: Mapping[str, Any] | None, error: ConstrainError) -> ApiError:
    """What is answered where an answer cannot be compiled; tools were, each for itself."""
    if schema is None:
        wrong = "Invalid tools" if isinstance(error, LimitError) else "The tools cannot be used together"
        return ApiError(f"{wrong}: {error}", param="tools", code="invalid_grammar")
    return ApiError(
        f"Invalid schema for response_format: {refused_schema(schema, error)}",
        param="response_format",
        code="invalid_json_schema",
    )


def _refused_tool(language: Language, vocabulary: Vocabulary) -> ApiError | None:
    """What is answered where the grammar of a tool cannot be compiled by itself, with this vocabulary."""
    tools = language.schema.tools if isinstance(language.schema, Answer) else ()
    for index, tool in enumerate(tools):
        if isinstance(tool, CustomCalls) and tool.input is not None:
            try:
                Language(tool.input).compile(vocabulary, cache=False)
            except ConstrainError as error:
                message = f"Invalid grammar of the tool '{tool.name}': {error}"
                return ApiError(message, param=f"tools[{index}]", code="invalid_grammar")
    return None


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
