"""What a grammar text says, as data; ``at`` is always the place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class GrammarText(Protocol):
    """A ``Lark``, as far as it is read."""

    @property
    def text(self) -> str:
        """The grammar."""

    @property
    def start(self) -> str:
        """The rule that the whole text must match."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A rule or terminal by its name."""

    name: str
    at: int

    @property
    def is_terminal(self) -> bool:
        """Terminals have names in capitals."""
        return self.name.lstrip("_")[:1].isupper()


@dataclass(frozen=True, slots=True)
class Literal:
    """A string or pattern as it is written, with delimiters and flags."""

    written: str
    at: int


@dataclass(frozen=True, slots=True)
class Range:
    """One character from ``first`` to ``last``, two strings."""

    first: Literal
    last: Literal

    @property
    def at(self) -> int:
        """Where it begins."""
        return self.first.at


@dataclass(frozen=True, slots=True)
class Sequence:
    """``parts`` one after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any of ``parts``."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``part``, ``minimum`` to ``maximum`` times (``None``: without limit)."""

    part: Node
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Alias:
    """``part`` with a name for the tree that Lark would make, which says nothing about texts."""

    part: Node
    at: int


@dataclass(frozen=True, slots=True)
class Embedded:
    """The JSON texts of the values of a JSON Schema, given as JSON text."""

    schema: str
    at: int


@dataclass(frozen=True, slots=True)
class Substring:
    """Parts of a text, given as the JSON text behind ``%regex``."""

    given: str
    at: int


@dataclass(frozen=True, slots=True)
class Special:
    """The special token of a name."""

    name: str
    at: int


Node = Symbol | Literal | Range | Sequence | Choice | Repeat | Alias | Embedded | Substring | Special


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule or terminal; ``at`` is where its name stands."""

    body: Node
    at: int


@dataclass(frozen=True, slots=True)
class Import:
    """A terminal of the ``common`` library."""

    original: str
    at: int


@dataclass(frozen=True, slots=True)
class Syntax:
    """A whole grammar text: definitions by name, and what may stand between lexemes."""

    text: str
    rules: dict[str, Definition]
    terminals: dict[str, Definition | Import]
    ignored: tuple[Definition, ...]
