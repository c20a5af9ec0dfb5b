"""The limits that several front ends share: the steps of one compilation, nesting, counts, and cases.

Steps are counted, and not time, so that limits do not depend on the speed of the machine.
"""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from constrain import kernel
from constrain.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Answer = TypeVar("Answer")

MAX_COMPILE_WORK = 2_000_000
"""Steps of one compilation, about a second; the largest real schemas take 1,200,000. The kernel may take as many when
it reads the grammar, and so may all questions about patterns together.

Steps are counted by the size of the objects made or compared (subschemas, keywords, pairs of alternatives, edges,
digits of bounds), never by time, and do not depend on caches. Those of the kernel's questions and proofs count, too;
they differ by a few per cent from process to process, with the seed of its hashes.
"""

MAX_NESTING = 50
"""Levels of parts inside one another: parentheses, conditions and grammars of a grammar, compositions, formats of a
structural tag, and lists of a schema in one line; each takes a few frames of Python's stack. Beyond: LimitError, or an
error of the notation with the place of the part."""

MAX_PATTERN_NESTING = 100
"""Levels of groups, or of classes, inside one another in a pattern, of operators through all terminals of a Lark
grammar, and of operators in a pattern that a grammar is exported as; trees of expressions are hashed, compared and
translated recursively. Beyond: PatternError, GrammarError or, for an export, LimitError."""

MAX_CAPTURE_WORK = 2_000_000
"""Steps, of about a microsecond, of the second reading of a text, for captures and for the named groups of a pattern,
of which each state takes 100. Beyond: LimitError; the answer of a model is complete, but has no captures."""

MAX_ALTERNATIVES = 1_000
"""Alternatives of one JSON type that ``anyOf``, ``allOf``, ``oneOf`` and ``not`` make of one value, and classes into
which key patterns divide the keys of one object; real schemas have fewer than 100. Beyond: LimitError."""

MAX_CASES = 50_000
"""Cases of one value that must satisfy, or violate, several schemas: nodes of its decision diagrams, and states and
transitions of its automaton; the largest real schemas need 7,000. Beyond: LimitError."""

MAX_DISTINCT = 300
"""Different items that an array must have, and undeclared keys that an object must have; an answer writes all of them,
and each must differ from all before. Beyond: LimitError."""

MAX_LEAST_COUNT = 200_000
"""Times that an item of an array, or a part of a rule, may be required in a row, as 3 in ``"a"{3,}``; an answer has to
write all of them. Beyond: LimitError."""

MAX_COUNTER = 2**31 - 1
"""Items, members, repetitions or tokens that one number of a schema, grammar or pattern counts. Beyond: LimitError, or
an error of the notation with the place of the number."""

_QUESTION_STEPS = 20
"""Steps for one question to the kernel, because it reads the expressions first."""

_KERNEL_STEPS_PER_STEP = 3
"""Steps of the kernel per step of a compilation."""


class _Work(threading.local):
    """The steps that the current compilation of this thread may still take.

    ``most``: those that it may take at all. ``depth``: the nesting of compilations.
    """

    left = most = MAX_COMPILE_WORK
    depth = 0
    counted = 0  # the value of kernel.steps_taken() when the kernel's steps were last counted


_work = _Work()


class _Collector(threading.local):
    """The nesting of compilations of this thread that pause the garbage collector."""

    depth = 0


_collector = _Collector()
_collector_lock = threading.Lock()
_threads_compiling = 0
_was_enabled = False


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Pauses Python's garbage collector while a grammar is made.

    The collector would traverse all objects of the compilation repeatedly, which doubles the time of large ones. Almost
    all are in use until the end, and ``MAX_COMPILE_WORK`` limits them. When one of several threads ends, it collects
    the young generation, so that threads that compile all the time cannot postpone collection forever.
    """
    global _threads_compiling, _was_enabled  # noqa: PLW0603 - the collector is one for the process
    _collector.depth += 1
    if _collector.depth == 1:
        with _collector_lock:
            if _threads_compiling == 0:
                _was_enabled = gc.isenabled()
                gc.disable()
            _threads_compiling += 1
    try:
        yield
    finally:
        _collector.depth -= 1
        if _collector.depth == 0:
            with _collector_lock:
                _threads_compiling -= 1
                if _was_enabled and _threads_compiling == 0:
                    gc.enable()
                elif _was_enabled:
                    gc.collect(0)


@contextmanager
def compilation(most: int | None = None) -> Iterator[None]:
    """Grants this thread so many steps, ``MAX_COMPILE_WORK`` for ``None``, unless an enclosing compilation has them."""
    if _work.depth == 0:
        _work.left = _work.most = MAX_COMPILE_WORK if most is None else most
        _work.counted = kernel.steps_taken()
    _work.depth += 1
    try:
        yield
    finally:
        _work.depth -= 1


@contextmanager
def apart() -> Iterator[None]:
    """Grants a separate budget to work whose result is cached: the cost of a compilation must not depend on caches."""
    spend(0)
    left, _work.left = _work.left, MAX_COMPILE_WORK
    try:
        yield
    finally:
        _work.left, _work.counted = left, kernel.steps_taken()


def spend(steps: int, cure: str = "leave parts out, or make them smaller") -> None:
    """Counts steps of the current compilation, if any, and those that the kernel has taken since the last call.

    Raises ``LimitError`` without a place; callers add the place. ``cure``: the end of its message.
    """
    taken = kernel.steps_taken()
    _work.left -= steps + (taken - _work.counted) // _KERNEL_STEPS_PER_STEP
    _work.counted = taken
    if _work.left < 0 and _work.depth:
        limit = f"MAX_COMPILE_WORK = {MAX_COMPILE_WORK}" if _work.most == MAX_COMPILE_WORK else f"{_work.most}"
        raise LimitError(f"compiling this takes more steps than {limit}; {cure}")


def asked(question: Callable[..., Answer], *arguments: object, **options: object) -> Answer:
    """Asks the kernel a question about expressions or a grammar, and counts its steps. Returns the answer."""
    spend(_QUESTION_STEPS)
    try:
        return question(*arguments, **options)
    finally:
        spend(0)


def steps_taken() -> int:
    """Returns the steps of the current compilation of this thread, or of the last one."""
    return _work.most - _work.left
