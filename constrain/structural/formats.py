"""Formats of a structural tag as data: each stands for a set of texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.language.tree import Alternation, Concatenation, Expression, Inner, Repetition

if TYPE_CHECKING:
    from constrain.language.source import Source


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the vocabulary: ``name`` is its text, or ``<[id]>``."""

    name: str


Mark = str | Token
"""A text, in which the names of special tokens stand for these tokens, or one token."""


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """Exactly one text, or one token. ``place``: JSON Pointer of the format, as in all formats."""

    value: Mark
    place: str


@dataclass(frozen=True, slots=True)
class Json(Expression):
    """The values of a JSON Schema.

    ``style``: notation; ``any_order``: members of objects may have any order; ``compact``: no white space inside JSON;
    ``line_breaks``: whether a line break may stand where the style has one.
    """

    schema: str
    style: str
    any_order: bool
    compact: bool
    line_breaks: bool
    place: str


@dataclass(frozen=True, slots=True)
class Language(Expression):
    """The texts of a regular expression or grammar."""

    source: Source
    place: str


@dataclass(frozen=True, slots=True)
class AnyText(Expression):
    """Free text that contains none of ``excludes``, of at most so many characters and tokens.

    ``of_tokens``: whether only a token that ends the tag around it is excluded too, and not a text.
    """

    excludes: tuple[Mark, ...]
    max_chars: int | None
    max_tokens: int | None
    of_tokens: bool
    place: str


@dataclass(frozen=True, slots=True)
class OneToken(Expression):
    """One token, which may be a special one; not one of ``excludes``, and none that ends the tag around it."""

    excludes: tuple[Mark, ...]
    place: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InOrder(Concatenation):
    """Formats one after the other."""

    place: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OneOf(Alternation):
    """Any one of several formats."""

    place: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Repeated(Repetition):
    """A format ``minimum`` to ``maximum`` times (``None``: without limit), with a text between two of them."""

    separator: str
    place: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tag(Inner):
    """A format between a mark and any one of several marks."""

    begin: Mark
    part: Expression
    ends: tuple[Mark, ...]
    place: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trigger(Inner):
    """A mark that must be followed by any one of several formats."""

    mark: Mark
    parts: tuple[Expression, ...]
    place: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Triggered(Inner):
    """Free text in which each trigger must be followed by a format of its rule.

    ``excludes``: marks that free text must not contain. ``loop``: whether free text goes on after such a format.
    ``of_tokens``: as in ``AnyText``.
    """

    parts: tuple[Trigger, ...]
    excludes: tuple[Mark, ...]
    loop: bool
    of_tokens: bool
    place: str


def marks(node: Expression) -> tuple[Mark, ...]:
    """Returns the marks of a format, without those of formats inside it."""
    match node:
        case Constant(value):
            return (value,)
        case AnyText(excludes) | OneToken(excludes):
            return excludes
        case Repeated(_, _, _, separator):
            return (separator,)
        case Tag(begin, _, ends):
            return (begin, *ends)
        case Triggered(rules, excludes):
            return (*(rule.mark for rule in rules), *excludes)
    return ()
