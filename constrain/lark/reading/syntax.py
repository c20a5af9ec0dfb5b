"""A grammar text as data: the nodes that ``language.tree`` lacks, and definitions; ``at`` is the place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from constrain.language.tree import Complement, Expression, Inner, Intersection, inside

T = TypeVar("T")


class GrammarText(Protocol):
    """The attribute of a ``Lark`` that reading needs."""

    @property
    def text(self) -> str:
        """Returns the grammar."""


@dataclass(frozen=True, slots=True)
class Symbol(Expression):
    """A rule or terminal by its name."""

    name: str
    at: int

    @property
    def is_terminal(self) -> bool:
        """Returns whether this names a terminal: its first letter is a capital."""
        return self.name.lstrip("_")[:1].isupper()


@dataclass(frozen=True, slots=True)
class Quoted(Expression):
    """A string or pattern in its original form, with delimiters and flags."""

    written: str
    at: int


@dataclass(frozen=True, slots=True)
class Range(Expression):
    """One character from ``first`` to ``last``, two strings."""

    first: Quoted
    last: Quoted

    @property
    def at(self) -> int:
        """Returns the place of the first string."""
        return self.first.at


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Both(Intersection):
    """The texts that all ``parts`` match (``&``); in terminals only."""

    at: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not(Complement):
    """The texts that ``part`` does not match (``~``); in terminals only."""

    at: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Alias(Inner):
    """``part`` with a name for Lark's tree, which does not affect texts."""

    part: Expression
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
class Parametric(Expression):
    """A parametric rule by its name, and the value with which it is read (``rule::set_bit(0)``)."""

    name: str
    value: Call
    at: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Guarded(Inner):
    """``part``, if the value of the rule around it meets a condition (``%if``)."""

    part: Expression
    condition: Call
    at: int


@dataclass(frozen=True, slots=True)
class Nested(Expression):
    """The texts of a whole grammar inside another one (``%lark``)."""

    syntax: Syntax
    at: int


@dataclass(frozen=True, slots=True)
class Reference(Expression):
    """The texts of another grammar, by its name without the ``@``."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Embedded(Expression):
    """The JSON texts of the values of a JSON Schema, given as JSON text."""

    schema: str
    at: int


@dataclass(frozen=True, slots=True)
class Substring(Expression):
    """Parts of a text, or numbers, given as the JSON text after ``%regex``."""

    given: str
    at: int


@dataclass(frozen=True, slots=True)
class Special(Expression):
    """One token out of those that ``name`` stands for (see ``language.special.token_set``)."""

    name: str
    at: int


Text: TypeAlias = Symbol | Quoted | Range | Substring
"""What may be one lexeme; of symbols, those of terminals."""

OtherGrammar: TypeAlias = Embedded | Nested | Reference
"""What reads the texts of another grammar."""

_DIRECTIVES: dict[type[Expression], str] = {Embedded: "%json", Nested: "%lark", Substring: "%regex", Guarded: "%if"}


def beginning(node: Expression) -> str:
    """Returns the first word of a node that is no text, for messages."""
    match node:
        case Special(name):
            return name
        case Reference(name):
            return f"@{name}"
        case Parametric(name):
            return f"{name}::"
    return _DIRECTIVES[type(node)]


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
    suffix: Text | None = None
    stop: Text | None = None
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

    body: Expression
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


def place_of(node: Expression) -> int:
    """Returns the place of the first word of a node; that of the text's beginning for an empty sequence."""
    return next((each.at for each in inside(node) if hasattr(each, "at")), 0)
