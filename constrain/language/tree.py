r"""The one tree of expressions: sequences, choices, repetitions and classes.

Without other leaves than those below, a tree is a regular expression over bytes, the content of terminals, which the
kernel reads (``constrain/kernel``). Front ends read their texts into the same tree, with leaves of their own, such as
the names of rules, in the place of which they put expressions later.

A tree is immutable and may be shared: the kernel translates an object once, however many terminals contain it, so
front ends keep frequent trees as module constants. Boolean operations share operands many times, so a tree may be
exponentially larger than its number of nodes. Therefore leaves compare by content and inner nodes by identity, and
printing omits large parts.

Texts are UTF-8. A class of code points denotes the UTF-8 encodings of its members, or, with ``json=True``, their
spellings inside a JSON string (RFC 8259 section 7) under the canonical escape policy: a code point stands for
itself, except ``"`` and ``\`` (backslash escaped), U+0008, U+0009, U+000A, U+000C, U+000D (two-character escapes)
and the other code points below U+0020 (``\u00xx`` with lower-case digits). Surrogates (U+D800 to U+DFFF) have no
encoding and are ignored in ranges. Every code point has exactly one spelling, so Boolean operations on spelled
expressions mean the same as on decoded text, as long as they stay inside "any JSON string".
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from constrain.kernel import Texts

    _Node = TypeVar("_Node", bound="Expression")

Ranges = tuple[tuple[int, int], ...]
"""Inclusive ranges of code points or bytes, ascending and disjoint."""

MAX_CODE_POINT = 0x10FFFF

MAX_PRINTED_NODES = 100
"""Inner nodes that printing writes out, and levels of them; only the kind is written of further ones."""

_OF_ONE = ("part", "unit")
"""Fields of nodes that hold one expression; ``parts`` hold several."""


class Expression:
    """A node of a tree."""

    __slots__ = ()


class Inner(Expression):
    """A node with expressions inside it. It is equal to itself only, and its own copy."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Returns the content; only the kind of most of a large expression's nodes."""
        left = MAX_PRINTED_NODES
        written: list[str] = []
        stack: list[object] = [self]  # no recursion; a string is written unchanged
        while stack:
            value = stack.pop()
            if isinstance(value, str):
                written.append(value)
            elif isinstance(value, tuple):
                parts = [each for part in value for each in (part, ", ")][:-1]
                stack += reversed(["(", *parts, ",)" if len(value) == 1 else ")"])
            elif not isinstance(value, Inner):
                written.append(repr(value))
            elif left == 0:
                written.append(f"{type(value).__name__}(...)")
            else:
                left -= 1
                pairs = [(f"{field}=", getattr(value, field), ", ") for field in value.__match_args__]
                stack += reversed([f"{type(value).__name__}(", *[each for pair in pairs for each in pair][:-1], ")"])
        return "".join(written)

    def __copy__(self, _: object = None) -> Inner:
        """Returns the expression itself, which is immutable."""
        return self

    __deepcopy__ = __copy__

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles a list of the nodes."""
        entries, (root,) = listed((self,))
        return _rebuilt_one, (entries, root)


def _rebuilt_one(entries: list[Entry], root: int) -> Expression:
    return rebuilt(entries)[root]


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """Exactly these bytes."""

    text: bytes


@dataclass(frozen=True, slots=True)
class ByteClass(Expression):
    """One byte out of ``ranges``."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class CharClass(Expression):
    """One code point out of ``ranges``, encoded as UTF-8 or (``json``) spelled as in a JSON string."""

    ranges: Ranges
    json: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Concatenation(Inner):
    """The texts of all ``parts``, one after the other.

    With no parts it matches the empty text only: then use the object ``EMPTY_TEXT``; make no other.
    """

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Alternation(Inner):
    """The texts of any one of the ``parts``.

    With no parts it matches no text: then use the object ``NOTHING``; make no other.
    """

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intersection(Inner):
    """The texts that all ``parts`` match; at least one part."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Complement(Inner):
    """Every byte string that ``part`` does not match; intersect it to stay inside valid texts."""

    part: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Repetition(Inner):
    """``part``, ``minimum`` to ``maximum`` times (``None``: without limit). Large counts cost nothing."""

    part: Expression
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class LiteralSet(Expression):
    """Any one of ``texts``; suited to thousands of texts."""

    texts: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Multiple(Expression):
    """Decimal numbers ``-?digits(.digits)?`` whose value is a multiple of ``divisor * 10**-scale``.

    Only the value is tested; intersect the node with the wanted spelling. ``divisor`` is at least 1.
    """

    divisor: int
    scale: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Window(Inner):
    """The texts of ``part`` that consist of ``minimum`` to ``maximum`` (``None``: unlimited) times ``unit``.

    For a pattern with a length: ``part`` is the pattern, ``unit`` one character. ``unit`` is prefix-free (no match
    is the beginning of another) and ``part`` matches only sequences of it, possibly followed by something that
    cannot begin a unit (the closing quote of a string).
    """

    part: Expression
    unit: Expression
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True, repr=False)
class Substring(Expression):
    """Any run of consecutive chunks of one of ``texts``, of ``minimum`` to ``maximum`` code points (``None``: any).

    A chunk is one code point; or, with ``cuts``, the code points between two places where a run may begin and end.
    ``cuts`` has one byte for each code point of a text: not 0 if a chunk begins there. A run may be empty. With
    ``json``, code points are spelled as in a JSON string. Texts have no surrogates.
    """

    texts: tuple[str, ...]
    minimum: int = 0
    maximum: int | None = None
    json: bool = True
    cuts: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        """Returns a text that determines the expression and is short: the texts stand in it as their SHA-256."""
        digest = hashlib.sha256()
        for part in (*(text.encode() for text in self.texts), b"", *self.cuts):
            digest.update(b"%d " % len(part) + part)
        about = f"minimum={self.minimum}, maximum={self.maximum}, json={self.json}"
        return f"Substring(<{len(self.texts)} texts, {digest.hexdigest()}>, {about})"


@dataclass(frozen=True, slots=True, repr=False)
class LiteralTable(Expression):
    """Any one of ``texts``, which may be millions; ``digest`` tells which they are.

    Expressions with the same texts share their memory. Make one with ``of``. ``origin``: an equal expression with the
    tables that the texts were taken from; ``None`` for a table of its own.
    """

    texts: Texts = field(compare=False)
    digest: str
    origin: Expression | None = field(default=None, compare=False)

    @classmethod
    def of(cls, texts: Texts, origin: Expression | None = None) -> LiteralTable:
        """Returns the expression of some texts; ``digest`` is the SHA-256 of their lines."""
        return cls(texts, hashlib.sha256(texts.lines()).hexdigest(), origin)

    def __repr__(self) -> str:
        """Returns a text that determines the expression and is short."""
        return f"LiteralTable(<{len(self.texts)} texts, {self.digest}>)"


NODE_BYTES = 120
"""Bytes of one node, its tuple of parts included; ``PART_BYTES``: of each part, range or text in it."""

PART_BYTES = 60


def tree_bytes(*expressions: Expression) -> int:
    """Returns the approximate bytes of the nodes of expressions; shared nodes count once."""
    found = 0
    for node in each_node(*expressions):
        found += NODE_BYTES + 8 * len(getattr(node, "parts", ()))
        if isinstance(node, Literal):
            found += len(node.text)
        elif isinstance(node, LiteralSet):
            found += sum(map(len, node.texts)) + PART_BYTES * len(node.texts)
        elif isinstance(node, Substring):
            found += sum(map(len, (*node.texts, *node.cuts)))
        elif isinstance(node, (ByteClass, CharClass)):
            found += PART_BYTES * 2 * len(node.ranges)
    return found


EMPTY_TEXT = Concatenation(())
NOTHING = Alternation(())
ANY_BYTE = ByteClass(((0, 255),))
ANY_BYTES = Repetition(ANY_BYTE, 0, None)
ANY_CHAR = CharClass(((0, MAX_CODE_POINT),))
ANY_JSON_CHAR = CharClass(((0, MAX_CODE_POINT),), json=True)

Entry: TypeAlias = "tuple[Expression] | tuple[type[Any], tuple[object, ...]]"
"""A leaf; or the type of an inner node and its fields, with numbers of earlier entries as expressions."""


def listed(roots: Iterable[Expression]) -> tuple[list[Entry], list[int]]:
    """Returns all nodes of some expressions, each once and parts first, and the numbers of these expressions.

    Pickling uses the list, because recursion would be as deep as the tree.
    """
    entries: list[Entry] = []
    numbers: dict[int, int] = {}  # by identity; the roots keep their parts alive
    ends = []

    def number(part: Expression) -> int:
        return numbers[id(part)]

    for root in roots:
        for node in parts_first(root, numbers):
            numbers[id(node)] = len(entries)
            if isinstance(node, Inner):
                entries.append(
                    (type(node), tuple(_held(each, getattr(node, each), number) for each in node.__match_args__))
                )
            else:
                entries.append((node,))
        ends.append(numbers[id(root)])
    return entries, ends


def parts_first(root: Expression, known: Mapping[int, object]) -> Iterator[Expression]:
    """Yields each node of an expression once, after its parts.

    ``known``: what the caller has found out, by the ids of the nodes; it must have an entry for each node before the
    next one is asked for. Nodes with an entry are left out.
    """
    stack = [root]
    while stack:
        node = stack[-1]
        if id(node) in known:
            stack.pop()
        elif waiting := [part for part in parts_of(node) if id(part) not in known]:
            stack += waiting
        else:
            yield node


def tree_size(root: Expression) -> int:
    """Returns the number of nodes of an expression, a shared part counted as often as it occurs."""
    sizes: dict[int, int] = {}
    for node in parts_first(root, sizes):
        sizes[id(node)] = 1 + sum(sizes[id(part)] for part in parts_of(node))
    return sizes[id(root)]


def rebuilt(entries: Iterable[Entry]) -> list[Expression]:
    """Returns the nodes of such a list."""
    nodes: list[Expression] = []
    for entry in entries:
        if len(entry) == 1:
            nodes.append(entry[0])
            continue
        kind, fields = entry
        known = [_held(*field, nodes.__getitem__) for field in zip(kind.__match_args__, fields, strict=True)]
        made = kind(*known)
        nodes.append(next((one for one in (EMPTY_TEXT, NOTHING) if type(one) is kind and known == [()]), made))
    return nodes


def parts_of(node: Expression) -> tuple[Any, ...]:
    """Returns the expressions directly inside a node."""
    if not isinstance(node, Inner):
        return ()
    parts: tuple[Any, ...] | None = getattr(node, "parts", None)
    return tuple([getattr(node, name) for name in _OF_ONE if hasattr(node, name)]) if parts is None else parts


def with_parts(node: _Node, change: Callable[[Any], Any]) -> _Node:
    """Returns a node with other expressions directly inside it; a single call per level, as trees are deep."""
    if not parts_of(node):
        return node
    fields = []
    for name in type(node).__match_args__:  # type: ignore[attr-defined]
        field = getattr(node, name)
        fields.append(tuple(map(change, field)) if name == "parts" else change(field) if name in _OF_ONE else field)
    return type(node)(*fields)


def _held(name: str, field: Any, change: Callable[[Any], object]) -> object:
    return tuple(map(change, field)) if name == "parts" else change(field) if name in _OF_ONE else field


def inside(node: Expression) -> Iterator[Any]:
    """Yields a node and all nodes in it, from left to right, as often as they stand there."""
    stack = [node]
    while stack:
        yield (node := stack.pop())
        stack += reversed(parts_of(node))


def each_node(*roots: Expression) -> Iterator[Expression]:
    """Yields each node of some expressions once."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack += parts_of(node)


def encodable(ranges: Ranges) -> bool:
    """Returns whether UTF-8 encodes some member, that is, whether it is no surrogate."""
    return any(low < 0xD800 or high > 0xDFFF for low, high in ranges)


def nullable(expression: Expression) -> bool:
    """Returns whether the expression matches the empty text."""
    known: dict[int, bool] = {}
    for node in parts_first(expression, known):
        known[id(node)] = _nullable(node, known)
    return known[id(expression)]


def _nullable(node: Expression, known: Mapping[int, bool]) -> bool:
    """The same; ``known``: the answers for its parts, by their ids."""
    match node:
        case Concatenation(parts) | Intersection(parts):
            return all(known[id(part)] for part in parts)
        case Alternation(parts):
            return any(known[id(part)] for part in parts)
        case Repetition(part, minimum, _):
            return minimum == 0 or known[id(part)]
        case Complement(part):
            return not known[id(part)]
        case Literal(text):
            return not text
        case LiteralSet(texts):
            return b"" in texts
        case LiteralTable(texts):
            return len(texts) > 0 and not texts[0]
        case Substring(_, minimum):
            return minimum == 0
        case Window(part, _, minimum, _):
            return minimum == 0 and known[id(part)]
    return False
