r"""All spellings of JSON strings: expressions of the canonical spelling, widened to every spelling of the same strings.

A character is spelled as in the canonical escape policy (``constrain.language.tree``), or as ``\u`` and four
hexadecimal digits of either case (two of these, a surrogate pair, above U+FFFF); a slash also as ``\/``. Every spelling
stands for one string only, and no spelling of a character is the beginning of another one. So the widened expression
matches the texts whose canonical spelling the given one matches: it is computed character by character, and Boolean
operations keep their meaning. A lone surrogate is no character: no spelling has one.
"""

from __future__ import annotations

import json
from itertools import groupby
from json.encoder import encode_basestring
from typing import TYPE_CHECKING

from constrain.language.tree import (
    ANY_BYTE,
    EMPTY_TEXT,
    MAX_CODE_POINT,
    NOTHING,
    PART_BYTES,
    Alternation,
    ByteClass,
    CharClass,
    Concatenation,
    Expression,
    Inner,
    Intersection,
    Literal,
    LiteralSet,
    LiteralTable,
    Ranges,
    Window,
    tree_bytes,
    with_parts,
)
from constrain.regex import classes
from constrain.regex.anchors import sequence, union
from constrain.remembering import remembered
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_BRANCHINGS = 64
"""Nested branchings of the tree that a set of texts becomes; below them, texts are listed."""

CHARACTER_STEPS = 3
"""Compilation steps for one character of a constant or key, all of whose spellings take about 250 bytes of memory."""

CACHED_BYTES = 16 << 20
"""Bytes of cached spellings of classes, and as many of numbers and of lengths; beyond it, the least recently used are
dropped."""


def _ranges_bytes(ranges: Ranges, *_: int) -> int:
    return 2 * PART_BYTES * len(ranges)


def _no_bytes(*_: int) -> int:
    return 0


_QUOTE = Literal(b'"')
_UNICODE = Literal(b"\\u")
_SLASH = Literal(b"\\/")
_ASCII: Ranges = ((0, 0x7F),)
_WRITTEN_AS_IT_IS: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F))
_OCTETS: tuple[tuple[int, Ranges], ...] = (
    (1, _WRITTEN_AS_IT_IS),
    (2, ((0x08, 0x0A), (0x0C, 0x0D), (0x22, 0x22), (0x5C, 0x5C), (0x80, 0x7FF))),
    (3, ((0x800, 0xFFFF),)),
    (4, ((0x10000, MAX_CODE_POINT),)),
    (6, ((0x00, 0x07), (0x0B, 0x0B), (0x0E, 0x1F))),
)
"""The characters that the canonical spelling writes with each number of bytes."""


class AnySpelling:
    """Widens expressions; shared nodes stay shared."""

    def __init__(self) -> None:
        self._done: dict[int, tuple[Expression, Expression]] = {}  # by identity, with the node to keep it alive

    def of(self, node: Expression) -> Expression:
        """Returns all spellings of the strings, or of their contents, that ``node`` matches."""
        known = self._done.get(id(node))
        if known is None:
            is_limited = isinstance(node, Window) and node.unit == ANY_BYTE and node.maximum is not None
            is_inner = isinstance(node, Inner) and not is_limited  # a complement stays inside contents of strings
            known = self._done[id(node)] = node, with_parts(node, self.of) if is_inner else self._made(node)
        return known[1]

    def _made(self, node: Expression) -> Expression:
        match node:
            case Literal(text):
                return self._listed((text,))
            case LiteralSet(texts) | LiteralTable(texts):
                return self._listed(tuple(texts))
            case CharClass(ranges, json=True):
                return spelled_class(ranges)
            case ByteClass(ranges) if classes.difference(ranges, _ASCII) == ():
                return spelled_class(classes.intersection(ranges, _WRITTEN_AS_IT_IS))
            case Window(part, _, minimum, int(maximum)):
                return Intersection((self.of(part), _octets(minimum, maximum)))
        raise TypeError(f"{type(node).__name__} is no expression of the content of JSON strings")

    def _listed(self, texts: tuple[bytes, ...]) -> Expression:
        listed = sorted(set(map(_characters, texts)))
        spend(CHARACTER_STEPS * sum(map(len, listed)), 'with escapes="any", list fewer constants and keys')
        return _tree(listed, 0)


@remembered(4096, CACHED_BYTES, _ranges_bytes, tree_bytes)
def spelled_class(ranges: Ranges) -> Expression:
    """Returns all spellings of one character of a class."""
    ranges = classes.difference(ranges, ((0xD800, 0xDFFF),))
    if not ranges:
        return NOTHING
    one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    plain = Literal(_canonical(chr(ranges[0][0]))) if one else CharClass(ranges, json=True)
    slash = [_SLASH] if classes.intersection(ranges, ((0x2F, 0x2F),)) else []
    escaped = [_hexadecimal(classes.intersection(ranges, ((0, 0xFFFF),)), 4), *_surrogate_pairs(ranges)]
    return Alternation((plain, *slash, sequence(_UNICODE, union([each for each in escaped if each is not NOTHING]))))


def _surrogate_pairs(ranges: Ranges) -> list[Expression]:
    r"""Returns characters above U+FFFF, after the first ``\u``: first halves with equal second halves are joined."""
    by_first: dict[int, list[tuple[int, int]]] = {}
    full: list[tuple[int, int]] = []
    for low, high in classes.intersection(ranges, ((0x10000, MAX_CODE_POINT),)):
        first, last = (low - 0x10000) >> 10, (high - 0x10000) >> 10
        begin, end = low & 0x3FF, high & 0x3FF
        for half in {first, last}:
            piece = (begin if half == first else 0, end if half == last else 0x3FF)
            by_first.setdefault(half, []).append(piece)
        if last - first > 1:
            full.append((first + 1, last - 1))
    by_second: dict[Ranges, list[tuple[int, int]]] = {((0, 0x3FF),): full} if full else {}
    for half, pieces in by_first.items():
        by_second.setdefault(classes.normalize(pieces), []).append((half, half))
    return [
        sequence(_hexadecimal(_moved(firsts, 0xD800), 4), _UNICODE, _hexadecimal(_moved(seconds, 0xDC00), 4))
        for seconds, firsts in by_second.items()
    ]


def _moved(ranges: Iterable[tuple[int, int]], by: int) -> Ranges:
    return classes.normalize((low + by, high + by) for low, high in ranges)


@remembered(4096, CACHED_BYTES, _ranges_bytes, tree_bytes)
def _hexadecimal(ranges: Ranges, digits: int) -> Expression:
    """Returns numbers with so many hexadecimal digits of either case."""
    if not ranges:
        return NOTHING
    if digits == 0:
        return EMPTY_TEXT
    block = 16 ** (digits - 1)
    by_rest: dict[Ranges, list[int]] = {}
    for digit in range(16):
        inside = classes.intersection(ranges, ((digit * block, (digit + 1) * block - 1),))
        if inside:
            by_rest.setdefault(_moved(inside, -digit * block), []).append(digit)
    return union([sequence(_digits(each), _hexadecimal(rest, digits - 1)) for rest, each in by_rest.items()])


def _digits(digits: list[int]) -> ByteClass:
    texts = "".join(f"{digit:x}{digit:X}" for digit in digits)
    return ByteClass(classes.normalize((ord(each), ord(each)) for each in texts))


def _canonical(character: str) -> bytes:
    return encode_basestring(character)[1:-1].encode()


def _characters(text: bytes) -> str:
    """Returns the characters of the content of a string, with each enclosing quote as a lone surrogate."""
    before = text.startswith(b'"')
    after = len(text) > 1 and text.endswith(b'"') and not _is_escaped(text, len(text) - 1)
    content: str = json.loads(b'"%b"' % text[before : len(text) - after])
    return "\ud800" * before + content + "\ud800" * after


def _is_escaped(text: bytes, place: int) -> bool:
    backslashes = place - len(text[:place].rstrip(b"\\"))
    return backslashes % 2 == 1


def _chain(characters: str) -> Expression:
    parts = tuple(_QUOTE if each == "\ud800" else spelled_class(((ord(each), ord(each)),)) for each in characters)
    return parts[0] if len(parts) == 1 else Concatenation(parts) if parts else EMPTY_TEXT


def _tree(texts: Sequence[str], depth: int) -> Expression:
    """Returns sorted texts, joined by common beginnings, so that few paths are open at a time."""
    if not texts:
        return NOTHING
    if len(texts) == 1:
        return _chain(texts[0])
    if depth == MAX_BRANCHINGS:
        return Alternation(tuple(map(_chain, texts)))
    same = _same_beginning(texts[0], texts[-1])
    branches: list[Expression] = []
    for first, group in groupby(texts, lambda text: text[same : same + 1]):
        rests = [text[same + 1 :] for text in group]
        branches.append(Concatenation((_chain(first), _tree(rests, depth + 1))) if first else EMPTY_TEXT)
    tree = Alternation(tuple(branches))
    return Concatenation((_chain(texts[0][:same]), tree)) if same else tree


def _same_beginning(a: str, b: str) -> int:
    both = zip(a, b, strict=False)
    return next((place for place, (one, other) in enumerate(both) if one != other), min(len(a), len(b)))


@remembered(16, CACHED_BYTES, _no_bytes, tree_bytes)
def _octets(minimum: int, maximum: int) -> Expression:
    """Returns contents whose canonical spelling has so many bytes."""
    spelled = [(octets, spelled_class(ranges)) for octets, ranges in _OCTETS]
    rests: list[Expression] = []  # after ``maximum - i`` bytes
    for left in range(maximum + 1):
        ways = [Concatenation((each, rests[left - octets])) for octets, each in spelled if octets <= left]
        if maximum - left >= minimum:
            rests.append(Alternation((EMPTY_TEXT, *ways)) if ways else EMPTY_TEXT)
        else:
            rests.append(Alternation(tuple(ways)) if ways else NOTHING)
    return rests[maximum]
