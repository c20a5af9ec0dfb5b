"""A grammar text as data; ``at`` is always the place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class GrammarText(Protocol):
    """The attribute of a ``Lark`` that reading needs."""

    @property
    def text(self) -> str:
        """Returns the grammar."""


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
class Call:
    """A function of a rule's value: a new value, or a condition on the value.

    ``arguments``: numbers, pairs for bits ``[x:y]``, and conditions. A number alone is the function ``NUMBER``, and the
    value itself (``_``) the function ``SELF``.
    """

    name: str
    arguments: tuple[int | tuple[int, int] | Call, ...]
    at: int


NUMBER, SELF = "number", "_"
"""Names of the functions for a given number and for the value itself."""


@dataclass(frozen=True, slots=True)
class Parametric:
    """A parametric rule by its name, and the value with which it is read (``rule::set_bit(0)``)."""

    name: str
    value: Call
    at: int


@dataclass(frozen=True, slots=True)
class Guarded:
    """``part``, if the value of the rule around it meets a condition (``%if``)."""

    part: Node
    condition: Call
    at: int


@dataclass(frozen=True, slots=True)
class Nested:
    """The texts of a whole grammar inside another one (``%lark``)."""

    syntax: Syntax
    at: int


@dataclass(frozen=True, slots=True)
class Reference:
    """The texts of another grammar, by its name without the ``@``."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Embedded:
    """The JSON texts of the values of a JSON Schema, given as JSON text."""

    schema: str
    at: int


@dataclass(frozen=True, slots=True)
class Substring:
    """Parts of a text, or numbers, given as the JSON text after ``%regex``."""

    given: str
    at: int


@dataclass(frozen=True, slots=True)
class Special:
    """One token out of those that ``name`` stands for (see ``language.special.token_set``)."""

    name: str
    at: int


Node = (
    Symbol
    | Parametric
    | Literal
    | Range
    | Sequence
    | Choice
    | Both
    | Complement
    | Repeat
    | Alias
    | Guarded
    | Embedded
    | Nested
    | Reference
    | Substring
    | Special
)


@dataclass(frozen=True, slots=True)
class Given(Generic[T]):
    """The value of an option; ``at`` is the place of the value."""

    value: T
    at: int


@dataclass(frozen=True, slots=True)
class Options:
    """The options in brackets behind the name of a rule, ``[lazy, capture="x"]``; ``None``: not given.

    Attributes:
        lazy: place of the option ``lazy``: the rule reads as little as possible.
        suffix: text that ends the rule, and is a part of it.
        stop: text that ends the rule, and is no part of it.
        stop_capture: name under which captures have the text of ``suffix`` or ``stop``.
        capture: name under which captures have the text of the rule.
        max_tokens: number of tokens that the text of the rule may take.
        temperature: temperature for sampling the text of the rule.
    """

    lazy: int | None = None
    suffix: Literal | Range | Substring | Symbol | None = None
    stop: Literal | Range | Substring | Symbol | None = None
    stop_capture: Given[str] | None = None
    capture: Given[str] | None = None
    max_tokens: Given[int] | None = None
    temperature: Given[float] | None = None


NO_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule or terminal; ``at`` is the place of its name. Only rules have options.

    A parametric rule has a value, a 64-bit number.
    """

    body: Node
    at: int
    parametric: bool = False
    options: Options = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class Import:
    """A terminal of the ``common`` library."""

    original: str
    at: int


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a grammar, by ``%llguidance``.

    ``ignore_once``: ignored text is one ignored terminal, not several in a row. ``allow_initial_skip``: ignored text
    may stand before the first lexeme, too. ``no_forcing``: the model writes forced text, in any tokens.
    """

    ignore_once: bool = False
    allow_initial_skip: bool = False
    no_forcing: bool = False


@dataclass(frozen=True, slots=True)
class Syntax:
    """A whole grammar text: definitions by name, terminals to ignore between lexemes, and settings.

    ``text`` is the text for places in errors: a grammar after ``%lark`` has the whole text, and its place is ``at``.
    """

    text: str
    rules: dict[str, Definition]
    terminals: dict[str, Definition | Import]
    ignored: tuple[Definition, ...]
    settings: Settings = Settings()
    at: int = 0


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
