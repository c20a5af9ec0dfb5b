"""A grammar to convert, as data: rules with the place of each part, and comments.

Bodies of rules are the nodes ``Choice``, ``Sequence``, ``Repeat``, ``Symbol`` and ``Special`` of
``lark.reading.syntax``, and those of this module. Symbols have the names of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.gbnf.reading import Characters
from constrain.lark.reading.syntax import Choice, Repeat, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Characters", "Comment", "Except", "Original", "OriginalRule", "Text", "leaves", "nodes"]


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    value: str
    at: int


@dataclass(frozen=True, slots=True)
class Except:
    """The texts of ``part`` without those of ``other``; with ``other`` None, without the empty text."""

    part: Any
    other: Any
    at: int


@dataclass(frozen=True, slots=True)
class Comment:
    """The lines of a comment, without its marks."""

    lines: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class OriginalRule:
    """A rule; ``at`` is the place of its name."""

    body: Any
    at: int


@dataclass(frozen=True, slots=True)
class Original:
    """A whole grammar text; ``syntax`` is the name of its syntax, ``start`` the rule to begin with.

    ``bars``: the places of the marks between alternatives.
    """

    syntax: str
    text: str
    rules: dict[str, OriginalRule]
    start: str
    comments: tuple[Comment, ...]
    bars: tuple[int, ...]


def nodes(node: Any) -> Iterator[Any]:
    """Yields a node and all nodes inside it, from left to right."""
    yield node
    match node:
        case Sequence(parts) | Choice(parts):
            for part in parts:
                yield from nodes(part)
        case Repeat(part, _, _):
            yield from nodes(part)
        case Except(part, other, _):
            yield from nodes(part)
            if other is not None:
                yield from nodes(other)


def leaves(node: Any) -> Iterator[Any]:
    """Yields the nodes that hold no others, from left to right."""
    return (each for each in nodes(node) if not isinstance(each, Sequence | Choice | Repeat | Except))
