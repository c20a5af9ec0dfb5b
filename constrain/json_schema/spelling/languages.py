"""Questions about patterns: which texts match, is there a text at all, do two patterns overlap, how many texts match.

Expressions here describe the content of JSON strings. The kernel answers, and bounds every answer by its own limits;
this module bounds what all questions of one compilation take together. Only schemas with key patterns, or with several
conditions on one string, ask any.
"""

from __future__ import annotations

import threading
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

from constrain.engine import core
from constrain.errors import LimitError
from constrain.json_schema.spelling.canonical import spell_content
from constrain.language.tree import ANY_JSON_CHAR, Concatenation, Intersection, Literal, LiteralSet, Repetition, Window
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from constrain.language.tree import Expression

MAX_PATTERN_WORK = 2_000_000
"""Derivatives that all questions of one compilation about patterns take: up to a second. Real schemas take a few
hundredths of it. Beyond: LimitError."""

MANY = 10_000
"""Numbers of texts above this one are not told apart: no answer of a model has as many different keys."""

MAX_LISTED_LENGTH = 256
"""Bytes of a text that is listed together with others; real keys stay below."""

MAX_CYCLE_STATES = 5_000
"""States of a pattern that are searched for a repetition without end; where none is found, texts are listed."""

MAX_WALKED_LENGTH = 1_000
"""Greater minima are not walked to: where the possible lengths become periodic tells more."""

_QUESTION_STEPS = 20
"""Steps of a compilation that a question takes: its expressions are read."""

_DERIVATIVES_PER_STEP = 3
"""The kernel's count of work, against steps of a compilation."""

_PAIRS_PER_STEP = 10
"""Pairs of patterns, each counted twice, whose beginnings are compared in a step."""

Answer = TypeVar("Answer")


class _PatternWork(threading.local):
    """What the compilation under way in this thread may still take for its questions."""

    def __init__(self) -> None:
        self.allowance = core.Allowance(MAX_PATTERN_WORK)
        self.matching: dict[tuple[int, tuple[str, ...]], tuple[Expression, list[str]]] = {}  # answers, by id and texts


_work = _PatternWork()


def begin_compilation() -> None:
    """Allows this thread MAX_PATTERN_WORK from here on."""
    _work.allowance = core.Allowance(MAX_PATTERN_WORK)
    _work.matching.clear()


def _ask(question: Callable[..., Answer], *arguments: object) -> Answer:
    allowance = _work.allowance
    before = allowance.left
    try:
        answer = question(*arguments, allowance)
    except LimitError:
        if allowance.left == 0:
            raise LimitError(
                f"questions about patterns take more work than MAX_PATTERN_WORK = {MAX_PATTERN_WORK} together"
            ) from None
        raise
    spend(_QUESTION_STEPS + (before - allowance.left) // _DERIVATIVES_PER_STEP)
    return answer


def matching(expression: Expression, texts: Iterable[str]) -> list[str]:
    """Those of the (decoded, different) texts that are in the language, in their order."""
    key = id(expression), tuple(texts)
    known = _work.matching.get(key)
    if known is None:  # the expression is kept, so that no other one gets its id
        known = _work.matching[key] = expression, _matching(expression, key[1])
    return list(known[1])


def _matching(expression: Expression, texts: tuple[str, ...]) -> list[str]:
    spelled = {content: text for text in texts if (content := spell_content(text)) is not None}
    if not spelled:
        return []
    short = tuple(content for content in spelled if len(content) <= MAX_LISTED_LENGTH)
    found = set(_ask(core.list_matches, Intersection((LiteralSet(short), expression)), len(short)) or ())
    found.update(content for content in spelled if len(content) > MAX_LISTED_LENGTH and _matches(expression, content))
    return [text for content, text in spelled.items() if content in found]


def _matches(expression: Expression, content: bytes) -> bool:
    return _ask(core.matches, expression, content)


def list_texts(expression: Expression, limit: int) -> list[bytes] | None:
    """All texts of the language, or ``None`` if there are more than ``limit``."""
    return _ask(core.list_matches, expression, limit)


def has_text(parts: tuple[Expression, ...], minimum: int = 0, maximum: int | None = None) -> bool:
    """Whether some text of ``minimum`` to ``maximum`` code points is in the languages of all ``parts``.

    Raises LimitError if that takes too many states.
    """
    if minimum > MAX_WALKED_LENGTH:
        return not _ask(core.is_empty, Window(Intersection(parts), ANY_JSON_CHAR, minimum, maximum))
    if minimum or maximum is not None:
        parts += (Repetition(ANY_JSON_CHAR, minimum, maximum),)
    return not _ask(core.is_empty, Intersection(parts))


def is_surely_empty(parts: tuple[Expression, ...], minimum: int = 0, maximum: int | None = None) -> bool:
    """Whether it is proved that no such text is in the languages of all ``parts``."""
    spend(len(parts) ** 2 // _PAIRS_PER_STEP)
    for one, two in combinations(map(_beginning, parts), 2):  # spares 200 patterns with prefixes most of a second
        if not one.startswith(two) and not two.startswith(one):
            return True
    try:
        return not has_text(parts, minimum, maximum)
    except LimitError:
        if _work.allowance.left == 0:
            raise
        return False


def _beginning(expression: Expression) -> bytes:
    """A text that all texts of the language begin with."""
    if isinstance(expression, Concatenation) and expression.parts:
        expression = expression.parts[0]
    return expression.text if isinstance(expression, Literal) else b""


def count_texts(expression: Expression) -> int | None:
    """How many texts the language has; ``None`` if more than MANY."""
    if _ask(core.has_endless_matches, expression, MAX_CYCLE_STATES):
        return None
    texts = list_texts(expression, MANY)
    return None if texts is None else len(texts)


def has_endless_texts(expression: Expression) -> bool:
    """Whether the language surely has endlessly many texts. Raises LimitError if that takes too many states."""
    return bool(_ask(core.has_endless_matches, expression, MAX_CYCLE_STATES))
