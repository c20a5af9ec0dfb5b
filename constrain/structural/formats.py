"""Formats of a structural tag as data: each stands for a set of texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.language.source import Source


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the vocabulary: ``name`` is its text, or ``<[id]>``."""

    name: str


Mark = str | Token
"""A text, in which the names of special tokens stand for these tokens, or one token."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Exactly one text, or one token. ``place``: JSON Pointer of the format, as in all formats."""

    value: Mark
    place: str


@dataclass(frozen=True, slots=True)
class Json:
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
class Language:
    """The texts of a regular expression or grammar."""

    source: Source
    place: str


@dataclass(frozen=True, slots=True)
class AnyText:
    """Free text that contains none of ``excludes``, of at most so many characters and tokens.

    ``of_tokens``: whether only a token that ends the tag around it is excluded too, and not a text.
    """

    excludes: tuple[Mark, ...]
    max_chars: int | None
    max_tokens: int | None
    of_tokens: bool
    place: str


@dataclass(frozen=True, slots=True)
class OneToken:
    """One token, which may be a special one; not one of ``excludes``, and none that ends the tag around it."""

    excludes: tuple[Mark, ...]
    place: str


@dataclass(frozen=True, slots=True)
class InOrder:
    """Formats one after the other."""

    parts: tuple[Format, ...]
    place: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any one of several formats."""

    parts: tuple[Format, ...]
    place: str


@dataclass(frozen=True, slots=True)
class Repeated:
    """A format ``minimum`` to ``maximum`` times (``None``: without limit), with a text between two of them."""

    part: Format
    minimum: int
    maximum: int | None
    separator: str
    place: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A format between a mark and any one of several marks."""

    begin: Mark
    content: Format
    ends: tuple[Mark, ...]
    place: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """A mark that must be followed by any one of several formats."""

    mark: Mark
    ways: tuple[Format, ...]
    place: str


@dataclass(frozen=True, slots=True)
class Triggered:
    """Free text in which each trigger must be followed by a format of its rule.

    ``excludes``: marks that free text must not contain. ``loop``: whether free text goes on after such a format.
    ``of_tokens``: as in ``AnyText``.
    """

    rules: tuple[Trigger, ...]
    excludes: tuple[Mark, ...]
    loop: bool
    of_tokens: bool
    place: str


Format = Constant | Json | Language | AnyText | OneToken | InOrder | OneOf | Repeated | Tag | Triggered


def inner(node: Format) -> tuple[Format, ...]:
    """Returns the formats directly inside a format."""
    match node:
        case InOrder(parts) | OneOf(parts):
            return parts
        case Repeated(part):
            return (part,)
        case Tag(_, content):
            return (content,)
        case Triggered(rules):
            return tuple(way for rule in rules for way in rule.ways)
    return ()


def marks(node: Format) -> tuple[Mark, ...]:
    """Returns the marks of a format, without those of inner formats."""
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
