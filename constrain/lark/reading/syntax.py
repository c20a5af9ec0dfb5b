"""A grammar text as data; ``at`` is always the place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class GrammarText(Protocol):
    """The attributes of a ``Lark`` that reading needs."""

    @property
    def text(self) -> str:
        """Returns the grammar."""

    @property
    def start(self) -> str:
        """Returns the rule that the whole text must match."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A rule or terminal by its name."""

    name: str
    at: int

    @property
    def is_terminal(self) -> bool:
        """Returns whether this names a terminal: its first letter is a capital."""
        return self.name.lstrip("_")[:1].isupper()


@dataclass(frozen=True, slots=True)
class Literal:
    """A string or pattern in its original form, with delimiters and flags."""

    written: str
    at: int


@dataclass(frozen=True, slots=True)
class Range:
    """One character from ``first`` to ``last``, two strings."""

    first: Literal
    last: Literal

    @property
    def at(self) -> int:
        """Returns the place of the first string."""
        return self.first.at


@dataclass(frozen=True, slots=True)
class Sequence:
    """``parts`` one after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of ``parts``."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """The texts that all ``parts`` match (``&``); in terminals only."""

    parts: tuple[Node, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Complement:
    """The texts that ``part`` does not match (``~``); in terminals only."""

    part: Node
    at: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """``part``, ``minimum`` to ``maximum`` times (``None``: without limit)."""

    part: Node
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Alias:
    """``part`` with a name for Lark's tree, which does not affect texts."""

    part: Node
    at: int


@dataclass(frozen=True, slots=True)
class Embedded:
    """The JSON texts of the values of a JSON Schema, given as JSON text."""

    schema: str
    at: int


@dataclass(frozen=True, slots=True)
class Substring:
    """Parts of a text, given as the JSON text after ``%regex``."""

    given: str
    at: int


@dataclass(frozen=True, slots=True)
class Special:
    """A special token, by name."""

    name: str
    at: int


Node = (
    Symbol | Literal | Range | Sequence | Choice | Both | Complement | Repeat | Alias | Embedded | Substring | Special
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule or terminal; ``at`` is the place of its name."""

    body: Node
    at: int


@dataclass(frozen=True, slots=True)
class Import:
    """A terminal of the ``common`` library."""

    original: str
    at: int


@dataclass(frozen=True, slots=True)
class Syntax:
    """A whole grammar text: definitions by name, and terminals to ignore between lexemes."""

    text: str
    rules: dict[str, Definition]
    terminals: dict[str, Definition | Import]
    ignored: tuple[Definition, ...]


def place_of(node: Node) -> int:
    """Returns the place of the first word of a node; that of the text's beginning for an empty sequence."""
    waiting: list[Node] = [node]
    while waiting:
        match waiting.pop():
            case Sequence(parts) | Choice(parts):
                waiting.extend(reversed(parts))
            case Repeat(part, _, _):
                waiting.append(part)
            case other:
                return other.at
    return 0
