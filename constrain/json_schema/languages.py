"""Questions about the language of an expression: is a text in it, is it empty, do two overlap, how many texts has it.

Expressions here describe the content of JSON strings. Cheap proofs come first; what they leave open is decided by
``constrain.json_schema.derivatives``. Only schemas with key patterns, or with several conditions on one string, ever
come here.
"""

from __future__ import annotations

from itertools import combinations
from threading import RLock
from typing import TYPE_CHECKING

from constrain.json_schema.derivatives import (
    MAX_LANGUAGE_STATES,
    NOTHING,
    Language,
    TooManyStatesError,
    decode,
    encodable,
)
from constrain.regex import tree

if TYPE_CHECKING:
    from constrain.regex.tree import Expression

MAX_OVERLAP_STATES = 500
"""The same for proofs that two patterns exclude each other, where failing only means to refuse."""

MAX_CACHED_LANGUAGES = 256
"""Languages whose derivatives are remembered; the oldest go first."""

MAX_CACHED_NODES = 10_000
"""Larger ones are dropped with the next new one."""

MANY = 1_000_000
"""Numbers of texts from here on are not told apart: no answer of a model has as many different keys."""

_lock = RLock()
_languages: dict[tuple[int, ...], tuple[tuple[Expression, ...], Language]] = {}


def matches(expression: Expression, text: str) -> bool:
    """Whether the (decoded) text is in the language."""
    with _lock:
        language = _language(expression)
        node = language.root
        for char in text:
            node = language.derivative(node, ord(char))
            if node == NOTHING:
                return False
        return language.nullable[node]


def has_text(parts: tuple[Expression, ...], minimum: int = 0, maximum: int | None = None) -> bool:
    """Whether some text of ``minimum`` to ``maximum`` code points is in the languages of all ``parts``.

    Raises LimitError if that takes more than MAX_LANGUAGE_STATES states or MAX_LENGTH_STEPS lengths.
    """
    if len(parts) == 1 and _surely_has(parts[0], minimum, maximum):
        return True
    with _lock:
        return _language(*parts).has(minimum, maximum, MAX_LANGUAGE_STATES)


def is_surely_empty(parts: tuple[Expression, ...], minimum: int = 0, maximum: int | None = None) -> bool:
    """Whether it is proved within MAX_OVERLAP_STATES that no such text is in the languages of all ``parts``."""
    for one, two in combinations(map(_beginning, parts), 2):
        if not one.startswith(two) and not two.startswith(one):
            return True
    if len(parts) == 1 and _surely_has(parts[0], minimum, maximum):
        return False
    with _lock:
        try:
            return not _language(*parts).has(minimum, maximum, MAX_OVERLAP_STATES)
        except TooManyStatesError:
            return False


def _beginning(expression: Expression) -> bytes:
    """A text that all texts of the language begin with."""
    if isinstance(expression, tree.Concatenation) and expression.parts:
        expression = expression.parts[0]
    return expression.text if isinstance(expression, tree.Literal) else b""


def count_texts(expression: Expression) -> int | None:
    """How many texts the language has; ``None`` if at least MANY."""
    if _least_count(expression) >= MANY:
        return None
    with _lock:
        language = _language(expression)
        total = None if language.pumps() else language.count()
    return None if total is None or total >= MANY else total


def _least_count(expression: Expression) -> int:
    """A lower bound of the number of texts, quickly found: ``MANY`` or more for most patterns."""
    match expression:
        case tree.Literal():
            return 1
        case tree.LiteralSet(texts):
            return len(texts)
        case tree.CharClass(ranges) | tree.ByteClass(ranges):
            return sum(last - first + 1 for first, last in encodable(ranges))
        case tree.Concatenation(parts):  # different beginnings before one and the same end are different texts
            counts = [_least_count(part) for part in parts]
            return 0 if 0 in counts else max(counts, default=1)
        case tree.Alternation(parts):
            return max(map(_least_count, parts), default=0)
        case tree.Repetition(part, minimum, maximum):
            count = _least_count(part)
            if maximum == 0 or count == 0:
                return int(minimum == 0)
            if maximum is None:
                return MANY if count > 1 or _lengths(part) not in (None, (0, 0)) else 1
            return int(min(float(count) ** min(maximum, 20), MANY)) if isinstance(part, tree.CharClass) else count
    return 0


def _language(*parts: Expression) -> Language:
    """The intersection of ``parts``, known by their identities while they are remembered."""
    key = tuple(map(id, parts))
    found = _languages.get(key)
    if found is None:
        if len(_languages) >= MAX_CACHED_LANGUAGES:
            del _languages[next(iter(_languages))]
        newest = next(reversed(_languages), None)
        if newest is not None and len(_languages[newest][1]) > MAX_CACHED_NODES:
            del _languages[newest]
        found = _languages[key] = (parts, Language(parts[0] if len(parts) == 1 else tree.Intersection(parts)))
    return found[1]


def _surely_has(expression: Expression, minimum: int, maximum: int | None) -> bool:
    """A quick proof for what most patterns and formats are; never wrong when it says yes."""
    if not _surely_nonempty(expression):
        return False
    if minimum == 0 and maximum is None:
        return True
    lengths = _lengths(expression)
    if lengths is None:
        return False
    least, greatest = lengths
    return (maximum is None or least <= maximum) and (greatest is None or minimum <= greatest)


def _surely_nonempty(expression: Expression) -> bool:
    match expression:
        case tree.Literal():
            return True
        case tree.LiteralSet(texts):
            return bool(texts)
        case tree.CharClass(ranges) | tree.ByteClass(ranges):
            return any(first < 0xD800 or last > 0xDFFF for first, last in ranges)
        case tree.Concatenation(parts):
            return all(map(_surely_nonempty, parts))
        case tree.Alternation(parts):
            return any(map(_surely_nonempty, parts))
        case tree.Repetition(part, minimum):
            return minimum == 0 or _surely_nonempty(part)
    return False


def _lengths(expression: Expression) -> tuple[int, int | None] | None:
    """The least and the greatest length in code points if every length between them occurs; otherwise ``None``."""
    match expression:
        case tree.Literal(text):
            length = len(decode(text))
            return length, length
        case tree.CharClass():
            return 1, 1
        case tree.Concatenation(parts):
            least = 0
            greatest: int | None = 0
            for part in parts:
                lengths = _lengths(part)
                if lengths is None:
                    return None
                least += lengths[0]
                greatest = None if greatest is None or lengths[1] is None else greatest + lengths[1]
            return least, greatest
        case tree.Repetition(part, minimum, maximum):
            inner = _lengths(part)
            if inner is None or inner[0] > 1 or inner == (0, 0):
                return None
            longest = None if maximum is None or inner[1] is None else maximum * inner[1]
            return minimum * inner[0], longest
    return None
