"""Reads the operands of ``%ignore`` as one expression for each *gap*, the ignored text between two lexemes.

``separation`` puts the gaps into the grammar. A gap is a sequence of ignored lexemes, each as long as possible.
A gap is read as the beginning of the lexeme after it. As an expression, a gap is a sequence of lexemes of which none is
followed by a byte that could continue it: white space after white space, any byte but the line's end in a comment that
it ends, none after a closed comment. The matches of an ignored terminal are of one *kind* if the same bytes continue
them: of ``/ {1,2}/``, a space continues one space, but not two. If a terminal of the rules begins like ignored text
(" and "), both readings count.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from constrain import kernel
from constrain.errors import LimitError
from constrain.language.emptiness import non_empty_part
from constrain.language.tree import (
    ANY_BYTES,
    ANY_CHAR,
    EMPTY_TEXT,
    NOTHING,
    Alternation,
    ByteClass,
    CharClass,
    Complement,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Repetition,
    each_node,
    inside,
    tree_size,
)
from constrain.lark.reading.places import error_at, placed
from constrain.lark.reading.syntax import Both, Definition, Not, Substring, Symbol
from constrain.lark.terminals import terminal_expression
from constrain.regex.anchors import repetition, sequence, union
from constrain.regex.classes import normalize
from constrain.work import asked

if TYPE_CHECKING:
    from constrain.language.tree import Ranges
    from constrain.lark.reading.syntax import Syntax

MAX_IGNORED_PARTS = 100
"""Parts of an ignored terminal, a shared one counted as often as it occurs, and ten bytes of a string as one; white
space and comments have fewer than 20. Also pairs of sets of bytes that continue ignored lexemes. Beyond: LimitError."""


class Gap(NamedTuple):
    """Gaps after which no byte of ``onward`` follows."""

    expression: Expression
    onward: Ranges


def gaps(syntax: Syntax, named: dict[str, Expression], known: dict[tuple[object, ...], list[Gap]]) -> list[Gap]:
    """Returns the possible gaps between two lexemes; none if nothing is ignored. Raises GrammarError, LimitError.

    ``known``: gaps of other grammars of the same language, which equal ignored terminals share.
    """
    wholes: list[tuple[int, Expression]] = []
    for ignored in syntax.ignored:
        whole = terminal_expression(syntax, named, ignored.body)
        if tree_size(whole) > MAX_IGNORED_PARTS:
            message = f"the ignored text has more than {MAX_IGNORED_PARTS} parts (MAX_IGNORED_PARTS)"
            raise placed(LimitError, syntax.text, ignored.at, message)
        if not syntax.settings.ignore_once:
            _refuse_unreadable(syntax, ignored.body)
        wholes.extend((ignored.at, part) for part in (whole.parts if isinstance(whole, Alternation) else (whole,)))
    key = (syntax.settings.ignore_once, *(whole for _, whole in wholes))
    if key not in known:
        known[key] = _once(wholes) if syntax.settings.ignore_once else _repeated(syntax, wholes)
    return known[key]


def _once(wholes: list[tuple[int, Expression]]) -> list[Gap]:
    """Returns gaps of one ignored terminal each; any match of it counts, not the longest only."""
    parts = [expression for _, whole in wholes if (expression := non_empty_part(whole)[0]) is not None]
    return [Gap(union(parts), ())] if parts else []


def _repeated(syntax: Syntax, wholes: list[tuple[int, Expression]]) -> list[Gap]:
    """Returns gaps that are sequences of ignored terminals, each as long as possible."""
    beginnings = union([_beginnings_at(syntax, at, whole) for at, whole in wholes])
    kinds: dict[Ranges, list[Expression]] = {}
    for at, whole in wholes:
        expression, _ = non_empty_part(whole)
        if expression is None:
            continue
        found = _by_bytes_onward(expression, beginnings, [each for _, each in wholes])
        if all(_not_beginning(ANY_CHAR, gap.onward) is None for gap in found):
            raise error_at(syntax.text, at, "this terminal never ends: every byte continues it")
        for gap in found:
            kinds.setdefault(gap.onward, []).append(gap.expression)
        if len(kinds) ** 2 > MAX_IGNORED_PARTS:
            message = f"there are more than {MAX_IGNORED_PARTS} pairs of kinds of ignored text (MAX_IGNORED_PARTS)"
            raise placed(LimitError, syntax.text, at, message)
    return _sequences([Gap(union(expressions), onward) for onward, expressions in kinds.items()])


def _refuse_unreadable(syntax: Syntax, whole: Expression) -> None:
    """Raises GrammarError for parts of ignored text whose beginnings ``_beginnings`` cannot tell."""
    for node in inside(whole):
        match node:
            case Both(at=at) | Not(at=at):
                message = "& and ~ are not allowed in ignored terminals; write a pattern without them"
                raise error_at(syntax.text, at, message)
            case Substring(at=at):
                message = "%regex is not allowed in ignored terminals, only in rules and their terminals"
                raise error_at(syntax.text, at, message)
            case Symbol(name) if isinstance(definition := syntax.terminals[name], Definition):
                _refuse_unreadable(syntax, definition.body)


def after_gaps(expression: Expression, between: list[Gap]) -> Expression:
    """Returns a terminal, with or without a gap before it."""
    free: list[Expression] = [EMPTY_TEXT]
    others: list[Expression] = []
    for gap in between:
        rest = _not_beginning(expression, gap.onward)
        if rest is expression:
            free.append(gap.expression)
        elif rest is not None:
            others.append(sequence(gap.expression, rest))
    return union([sequence(_optional(free), expression), *others])


def _optional(parts: list[Expression]) -> Expression:
    return repetition(union(parts[1:]), 0, 1) if len(parts) > 1 else EMPTY_TEXT


def _sequences(kinds: list[Gap]) -> list[Gap]:
    """Returns all sequences, by the kind of their last part (Kleene 1956, on an automaton with one state per kind)."""
    ways = [[_not_beginning(after.expression, before.onward) for after in kinds] for before in kinds]
    found: list[Expression | None] = [kind.expression for kind in kinds]
    for middle in range(len(kinds)):
        again = ways[middle][middle]
        loop = EMPTY_TEXT if again is None else repetition(again, 0, None)
        through = [None if way is None else sequence(loop, way) for way in ways[middle]]
        found = [_either(known, _both(found[middle], onward)) for known, onward in zip(found, through, strict=True)]
        ways = [
            [_either(known, _both(row[middle], onward)) for known, onward in zip(row, through, strict=True)]
            for row in ways
        ]
    return [Gap(way, kind.onward) for way, kind in zip(found, kinds, strict=True) if way is not None]


def _both(left: Expression | None, right: Expression | None) -> Expression | None:
    return None if left is None or right is None else sequence(left, right)


def _either(left: Expression | None, right: Expression | None) -> Expression | None:
    return right if left is None else left if right is None else union([left, right])


def _not_beginning(expression: Expression, onward: Ranges) -> Expression | None:
    """Returns the texts that begin with none of these bytes; the same object if all texts do so."""
    if not onward or asked(kernel.is_empty, Intersection((expression, sequence(ByteClass(onward), ANY_BYTES)))):
        return expression
    rest = Intersection((expression, sequence(ByteClass(_other_bytes(onward)), ANY_BYTES)))
    return None if asked(kernel.is_empty, rest) else rest


def _other_bytes(ranges: Ranges) -> Ranges:
    edges = [0, *(edge for low, high in ranges for edge in (low, high + 1)), 256]
    return tuple((low, high - 1) for low, high in zip(edges[::2], edges[1::2], strict=True) if low < high)


def _by_bytes_onward(expression: Expression, beginnings: Expression, wholes: list[Expression]) -> list[Gap]:
    """Returns the matches of an ignored terminal, by the bytes that continue them.

    ``wholes``: all ignored terminals; ``beginnings``: the prefixes of their texts.
    """
    edges = sorted({0, 256, *_edges(beginnings)})
    found: list[tuple[Expression, list[tuple[int, int]]]] = [(expression, [])]
    for low, high in pairwise(edges):  # borders of ranges of bytes that are all treated alike
        followed = sequence(expression, ByteClass(((low, high - 1),)))
        if asked(kernel.is_empty, Intersection((followed, beginnings))):
            continue
        if asked(kernel.is_empty, Intersection((followed, Complement(beginnings)))):
            found = [(matches, [*onward, (low, high - 1)]) for matches, onward in found]
            continue
        continued = union([_beginnings_before(whole, low, high) for whole in wholes])
        parts: list[tuple[Expression, list[tuple[int, int]]]] = []
        for matches, onward in found:
            parts.append((Intersection((matches, continued)), [*onward, (low, high - 1)]))
            parts.append((Intersection((matches, Complement(continued))), onward))
        found = [(matches, onward) for matches, onward in parts if not asked(kernel.is_empty, matches)]
    return [Gap(matches, normalize(onward)) for matches, onward in found]


def _edges(expression: Expression) -> set[int]:
    """Returns the borders of the byte classes in an expression made by ``_beginnings``."""
    found: set[int] = set()
    for node in each_node(expression):
        match node:
            case Literal(text):
                found.update(edge for byte in text for edge in (byte, byte + 1))
            case ByteClass(ranges):
                found.update(edge for low, high in ranges for edge in (low, high + 1))
    return found


def _beginnings_at(syntax: Syntax, at: int, ignored: Expression) -> Expression:
    """Returns the prefixes of an ignored expression; errors name its place."""
    try:
        return _beginnings(ignored)
    except LimitError as error:
        raise placed(LimitError, syntax.text, at, error.message) from error


def _beginnings(expression: Expression) -> Expression:
    """Returns the prefixes of texts, up to the first byte of a character; for expressions of patterns."""
    match expression:
        case Literal(text):
            return _literal_beginnings([text])
        case LiteralSet(texts):
            return _literal_beginnings(list(texts))
        case ByteClass():
            return repetition(expression, 0, 1)
        case CharClass(ranges, _):
            return union([EMPTY_TEXT, ByteClass(_first_bytes(ranges)), expression])
        case Alternation(parts):
            return union([_beginnings(part) for part in parts])
        case Repetition(part, _, maximum):
            before = repetition(part, 0, None if maximum is None else maximum - 1)
            return sequence(before, _beginnings(part)) if maximum != 0 else EMPTY_TEXT
    assert isinstance(expression, Concatenation), expression
    result: Expression = EMPTY_TEXT
    for part in reversed(expression.parts):
        result = union([_beginnings(part), sequence(part, result)])
    return result


def _beginnings_before(expression: Expression, low: int, high: int) -> Expression:
    """Returns the beginnings that a byte from ``low`` to ``high - 1`` continues; for expressions of patterns."""
    match expression:
        case Literal() | LiteralSet():
            texts = (expression.text,) if isinstance(expression, Literal) else expression.texts
            return union([Literal(text[:end]) for text in texts for end, byte in enumerate(text) if low <= byte < high])
        case ByteClass(ranges) | CharClass(ranges):
            first = ranges if isinstance(expression, ByteClass) else _first_bytes(ranges)
            return EMPTY_TEXT if any(least < high and low <= most for least, most in first) else NOTHING
        case Alternation(parts):
            return union([_beginnings_before(part, low, high) for part in parts])
        case Repetition(part, _, maximum):
            before = repetition(part, 0, None if maximum is None else maximum - 1)
            return sequence(before, _beginnings_before(part, low, high)) if maximum != 0 else NOTHING
    assert isinstance(expression, Concatenation), expression
    result: Expression = NOTHING
    for part in reversed(expression.parts):
        result = union([_beginnings_before(part, low, high), sequence(part, result)])
    return result


def _literal_beginnings(texts: list[bytes]) -> Expression:
    if max(map(len, texts)) > 10 * MAX_IGNORED_PARTS:
        raise LimitError(
            f"an ignored string has more than {10 * MAX_IGNORED_PARTS} bytes (ten times MAX_IGNORED_PARTS)"
        )
    return union([EMPTY_TEXT, *(Literal(text[:end]) for text in texts for end in range(1, len(text) + 1))])


def _first_bytes(ranges: Ranges) -> Ranges:
    """Returns the first bytes of the UTF-8 encodings."""
    parts = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF))
    spans = [(max(low, first), min(high, last)) for low, high in ranges for first, last in parts]
    return normalize((chr(low).encode()[0], chr(high).encode()[0]) for low, high in spans if low <= high)
