r"""Regular expression trees over bytes: what terminals are made of.

Front ends build these; the kernel reads them (``constrain/core``). A tree is immutable and may be shared freely:
the kernel translates an object once, however many terminals contain it, so a front end should keep the trees it
uses often as module constants. Boolean operations share their operands many times over, so what a node contains may
be exponentially more than there are nodes: leaves are compared by what they say, inner nodes are equal to themselves
only, and printing leaves out what would take too long.

Texts are UTF-8. A class of code points denotes the UTF-8 encodings of its members, or, with ``json=True``, their
spellings inside a JSON string (RFC 8259 section 7) under the canonical escape policy: a code point stands for
itself, except ``"`` and ``\`` (backslash escaped), U+0008, U+0009, U+000A, U+000C, U+000D (two-character escapes)
and the other code points below U+0020 (``\u00xx`` with lower-case digits). Surrogates (U+D800 to U+DFFF) have no
encoding and are ignored in ranges. Every code point has exactly one spelling, so Boolean operations on spelled
expressions mean the same as on decoded text, as long as they stay inside "any JSON string".
"""

from __future__ import annotations

from dataclasses import dataclass

Ranges = tuple[tuple[int, int], ...]
"""Inclusive ranges of code points or bytes, ascending and disjoint."""

MAX_CODE_POINT = 0x10FFFF

MAX_PRINTED_NODES = 100
"""Inner nodes that are written out, which may be nested as deep; of further ones only the kind."""


def _printed(node: Expression) -> str:
    left = MAX_PRINTED_NODES

    def written(value: object) -> str:
        nonlocal left
        if isinstance(value, tuple):
            return f"({', '.join(map(written, value))}{',' if len(value) == 1 else ''})"
        if not isinstance(value, INNER_NODES):
            return repr(value)
        left -= 1
        name = type(value).__name__
        if left < 0:
            return f"{name}(...)"
        return f"{name}({', '.join(f'{field}={written(getattr(value, field))}' for field in value.__slots__)})"

    return written(node)


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly these bytes."""

    text: bytes


@dataclass(frozen=True, slots=True)
class ByteClass:
    """One byte out of ``ranges``."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class CharClass:
    """One code point out of ``ranges``, encoded as UTF-8 or spelled as in a JSON string."""

    ranges: Ranges
    json: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Concatenation:
    """``parts`` one after the other; of none, the empty text (EMPTY_TEXT, the only one made)."""

    parts: tuple[Expression, ...]

    __repr__ = _printed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Alternation:
    """Any of ``parts``; of none, nothing at all, the empty language (NOTHING, the only one made)."""

    parts: tuple[Expression, ...]

    __repr__ = _printed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intersection:
    """What all ``parts`` match; at least one part."""

    parts: tuple[Expression, ...]

    __repr__ = _printed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Complement:
    """Every byte string that ``part`` does not match: intersect it with something to stay inside valid texts."""

    part: Expression

    __repr__ = _printed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Repetition:
    """``part``, ``minimum`` to ``maximum`` times (``None``: without limit). Large counts cost nothing."""

    part: Expression
    minimum: int
    maximum: int | None

    __repr__ = _printed


@dataclass(frozen=True, slots=True)
class LiteralSet:
    """Any one of ``texts``; made for thousands of them."""

    texts: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Multiple:
    """Decimal numbers ``-?digits(.digits)?`` whose value is a multiple of ``divisor * 10**-scale``.

    Only the value is judged; intersect it with the wanted spelling. ``divisor`` is at least 1.
    """

    divisor: int
    scale: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Window:
    """The texts of ``part`` that are made of ``minimum`` to ``maximum`` (``None``: unlimited) times ``unit``.

    For a pattern with a length: ``part`` is the pattern, ``unit`` one character. ``unit`` is prefix-free (no match
    is the beginning of another) and ``part`` matches only sequences of it, possibly followed by something that
    cannot begin a unit (the closing quote of a string).
    """

    part: Expression
    unit: Expression
    minimum: int
    maximum: int | None

    __repr__ = _printed


Expression = (
    Literal
    | ByteClass
    | CharClass
    | Concatenation
    | Alternation
    | Intersection
    | Complement
    | Repetition
    | LiteralSet
    | Multiple
    | Window
)

INNER_NODES = (Concatenation, Alternation, Intersection, Complement, Repetition, Window)

NODE_BYTES = 120
"""Bytes of one node, its tuple of parts included; ``PART_BYTES``: of each part, range or text in it."""

PART_BYTES = 60


def tree_bytes(*expressions: Expression) -> int:
    """About how many bytes the nodes of expressions take; one that stands in several places counts once."""
    found = 0
    seen: set[int] = set()
    stack = list(expressions)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        found += NODE_BYTES
        if isinstance(node, (Concatenation, Alternation, Intersection)):
            stack += node.parts
            found += 8 * len(node.parts)
        elif isinstance(node, (Repetition, Complement)):
            stack.append(node.part)
        elif isinstance(node, Window):
            stack += (node.part, node.unit)
        elif isinstance(node, Literal):
            found += len(node.text)
        elif isinstance(node, LiteralSet):
            found += sum(map(len, node.texts)) + PART_BYTES * len(node.texts)
        elif isinstance(node, (ByteClass, CharClass)):
            found += PART_BYTES * 2 * len(node.ranges)
    return found


EMPTY_TEXT = Concatenation(())
NOTHING = Alternation(())
ANY_BYTE = ByteClass(((0, 255),))
ANY_BYTES = Repetition(ANY_BYTE, 0, None)
ANY_CHAR = CharClass(((0, MAX_CODE_POINT),))
ANY_JSON_CHAR = CharClass(((0, MAX_CODE_POINT),), json=True)


def nullable(expression: Expression) -> bool:
    """Does the expression match the empty text?"""
    match expression:
        case Concatenation(parts) | Intersection(parts):
            return all(map(nullable, parts))
        case Alternation(parts):
            return any(map(nullable, parts))
        case Repetition(part, minimum, _):
            return minimum == 0 or nullable(part)
        case Complement(part):
            return not nullable(part)
        case Literal(text):
            return not text
        case LiteralSet(texts):
            return b"" in texts
    return False
