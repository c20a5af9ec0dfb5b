"""Questions about patterns: which texts match, whether any does, whether two patterns overlap, how many texts match.

The expressions are of the content of JSON strings. The kernel answers each question within its own limits; this module
limits all questions of one compilation together. Only schemas with key patterns, or with several conditions on one
string, have questions.
"""

from __future__ import annotations

import threading
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

from constrain import kernel
from constrain.errors import LimitError
from constrain.json_schema.spelling.canonical import spell_content
from constrain.language.tree import (
    ANY_JSON_CHAR,
    Concatenation,
    Intersection,
    Literal,
    LiteralSet,
    LiteralTable,
    Repetition,
    Window,
)
from constrain.work import MAX_COMPILE_WORK, asked, spend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from constrain.language.tree import Expression

MANY = 10_000
"""Number of texts above which they are not counted: no answer of a model has as many different keys."""

MAX_LISTED_LENGTH = 256
"""Bytes of a text that is listed together with others; longer ones are not listed, and real keys are shorter."""

MAX_CYCLE_STATES = 5_000
"""States of a pattern that are searched for an endless repetition; if none is found, texts are listed."""

MAX_WALKED_LENGTH = 1_000
"""Minimum length up to which a pattern is walked; above it, the period of its possible lengths decides."""

_PAIRS_PER_STEP = 10
"""Pairs of patterns, each counted twice, whose beginnings are compared per compilation step."""

Answer = TypeVar("Answer")


class _PatternWork(threading.local):
    """The work that the current compilation of this thread may still spend on questions."""

    def __init__(self) -> None:
        self.allowance = kernel.Allowance(MAX_COMPILE_WORK)
        # Answers, with the expressions that were asked about: these are kept, so that their ids stay unique.
        self.matching: dict[tuple[int, tuple[str, ...]], tuple[Expression, list[str]]] = {}  # by id and texts
        self.nonempty: dict[tuple[tuple[int, ...], int, int | None], tuple[tuple[Expression, ...], bool]] = {}


_work = _PatternWork()


def begin_compilation() -> None:
    """Grants this thread MAX_COMPILE_WORK steps for questions, up to a second, from here on."""
    _work.allowance = kernel.Allowance(MAX_COMPILE_WORK)
    _work.matching.clear()
    _work.nonempty.clear()


def _ask(question: Callable[..., Answer], *arguments: object) -> Answer:
    allowance = _work.allowance
    try:
        return asked(question, *arguments, allowance)
    except LimitError:
        if allowance.left == 0:
            raise LimitError(
                f"comparing the patterns takes more steps than MAX_COMPILE_WORK = {MAX_COMPILE_WORK}; simplify them"
            ) from None
        raise


def matching(expression: Expression, texts: Iterable[str]) -> list[str]:
    """Returns the (decoded, different) texts that are in the language, in their order."""
    key = id(expression), tuple(texts)
    known = _work.matching.get(key)
    if known is None:
        known = _work.matching[key] = expression, _matching(expression, key[1])
    return list(known[1])


def _matching(expression: Expression, texts: tuple[str, ...]) -> list[str]:
    spelled = {content: text for text in texts if (content := spell_content(text)) is not None}
    if not spelled:
        return []
    short = tuple(content for content in spelled if len(content) <= MAX_LISTED_LENGTH)
    found = set(_ask(kernel.list_matches, Intersection((LiteralSet(short), expression)), len(short)) or ())
    found.update(content for content in spelled if len(content) > MAX_LISTED_LENGTH and _matches(expression, content))
    return [text for content, text in spelled.items() if content in found]


def _matches(expression: Expression, content: bytes) -> bool:
    return _ask(kernel.matches, expression, content)


def matching_table(table: LiteralTable, expression: Expression) -> LiteralTable | None:
    """Returns the texts of a table that are in the language; ``None`` if there are none."""
    texts = _ask(table.texts.matching, expression)
    return LiteralTable.of(texts, Intersection((table, expression))) if len(texts) else None


def list_texts(expression: Expression, limit: int) -> list[bytes] | None:
    """Returns all texts of the language; ``None`` if there are more than ``limit``."""
    return _ask(kernel.list_matches, expression, limit)


def has_text(parts: tuple[Expression, ...], minimum: int = 0, maximum: int | None = None) -> bool:
    """Returns whether some text of ``minimum`` to ``maximum`` code points is in the languages of all ``parts``.

    Raises LimitError if the answer takes too many states.
    """
    key = tuple(map(id, parts)), minimum, maximum
    known = _work.nonempty.get(key)
    if known is None:
        known = _work.nonempty[key] = parts, _has_text(parts, minimum, maximum)
    return known[1]


def _has_text(parts: tuple[Expression, ...], minimum: int, maximum: int | None) -> bool:
    if minimum > MAX_WALKED_LENGTH:
        return not _ask(kernel.is_empty, Window(Intersection(parts), ANY_JSON_CHAR, minimum, maximum))
    if minimum or maximum is not None:
        parts += (Repetition(ANY_JSON_CHAR, minimum, maximum),)
    return not _ask(kernel.is_empty, Intersection(parts))


def is_surely_empty(parts: tuple[Expression, ...], minimum: int = 0, maximum: int | None = None) -> bool:
    """Returns whether provably no text of ``minimum`` to ``maximum`` code points is in all languages."""
    spend(len(parts) ** 2 // _PAIRS_PER_STEP)
    for one, two in combinations(map(_beginning, parts), 2):  # saves most of a second for 200 patterns with prefixes
        if not one.startswith(two) and not two.startswith(one):
            return True
    try:
        return not has_text(parts, minimum, maximum)
    except LimitError:
        if _work.allowance.left == 0:
            raise
        return False


def _beginning(expression: Expression) -> bytes:
    """Returns a prefix of all texts of the language."""
    if isinstance(expression, Concatenation) and expression.parts:
        expression = expression.parts[0]
    return expression.text if isinstance(expression, Literal) else b""


def count_texts(expression: Expression) -> int | None:
    """Returns the number of texts of the language; ``None`` if more than MANY."""
    if _ask(kernel.has_endless_matches, expression, MAX_CYCLE_STATES):
        return None
    texts = list_texts(expression, MANY)
    return None if texts is None else len(texts)


def has_endless_texts(expression: Expression) -> bool:
    """Returns whether the language surely has endlessly many texts. Raises LimitError for too many states."""
    return bool(_ask(kernel.has_endless_matches, expression, MAX_CYCLE_STATES))
