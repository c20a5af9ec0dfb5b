r"""Texts of formats in generation, where usual readers reject some of the format.

A schema that says ``format: email`` and no more mostly comes from a type that checks its strings once more, such as
Pydantic's ``EmailStr`` or ``z.string().email()``. These types reject some strings that the RFCs allow:

- email: a local part without quotes, of letters, digits and ``_'+-``; a domain of two labels or more, whose last one
  has letters alone and is of no special use (RFC 6761), of at most 63 characters;
- date-time: with a capital ``T`` and ``Z``, to the nanosecond. Offsets stay, since a time without its offset is another
  time (zod 3 needs ``datetime({ offset: true })`` to accept them; zod 4 emits a pattern);
- ipv6: an IPv4 address at the end only behind ``::``, and at most four groups before that;
- uri: also readable by the URL Standard of WHATWG: with its special schemes (such as ``https``), the host is a name or
  an address, and the port is valid.

Each is a subset of the format in ``expressions``. The whole format is written if the subset would leave no string, or
if this takes too long to find out. The policy ``years`` narrows date and date-time.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from constrain.json_schema.formats.expressions import DELIMITERS, PERCENT, UNRESERVED, day
from constrain.json_schema.formats.hosts import MAX_LOCAL_PART_LENGTH, groups_of_ipv6, ipv4, label_of
from constrain.language.tree import (
    ANY_JSON_CHAR,
    ByteClass,
    Complement,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    Repetition,
    Window,
)
from constrain.regex.builders import either, many, optional, sequence, tree

if TYPE_CHECKING:
    from collections.abc import Callable


MAX_MAIL_HOST_LENGTH = 63
"""Characters of a host in a mail address: the limit of one label (RFC 1035, section 2.3.4), so labels need no count."""

SPECIAL_USE_DOMAINS = ("arpa", "invalid", "local", "localhost", "onion", "test")
"""Top-level domains without mailboxes (RFC 6761 and its successors)."""

SPECIAL_SCHEMES = ("file", "ftp", "http", "https", "ws", "wss")
"""Schemes whose host is read as a domain or an address (URL Standard, section 4.2)."""


def generated_format(name: str) -> Expression:
    """Returns the texts that generation writes for one of GENERATED_FORMATS."""
    return _GENERATED[name]()


@cache
def _email() -> Expression:
    # zod allows no apostrophe at the end.
    local = tree(r"(?:[A-Za-z0-9_'+\-]+\.)*[A-Za-z0-9_'+\-]*[A-Za-z0-9_+\-]")
    domain = many(sequence(label_of(None), r"\."), 1)
    host = Window(sequence(domain, _top_level()), ByteClass(((0x2D, 0x7A),)), 1, MAX_MAIL_HOST_LENGTH)
    return sequence(Window(local, ANY_JSON_CHAR, 1, MAX_LOCAL_PART_LENGTH), "@", host)


def _top_level() -> Expression:
    return Intersection((tree("[A-Za-z]{2,}"), Complement(_any_case(SPECIAL_USE_DOMAINS))))


def _any_case(words: tuple[str, ...]) -> Expression:
    return either(*("".join(f"[{letter}{letter.upper()}]" for letter in word) for word in words))


@cache
def _date_time() -> Expression:
    return sequence(day(), r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+\-](?:[01]\d|2[0-3]):[0-5]\d)")


@cache
def _ipv6() -> Expression:
    group = "[0-9A-Fa-f]{1,4}"
    mapped = sequence(either(r"::(?:ffff:)?", rf"{group}(?::{group}){{0,3}}::"), ipv4())
    return either(groups_of_ipv6(), mapped)


@cache
def _uri() -> Expression:
    plain = f"{UNRESERVED}{DELIMITERS}"
    character = tree(f"[{plain}:@]|{PERCENT}")
    segments = many(sequence("/", many(character)))
    user = optional(f"(?:(?:[{plain}]|{PERCENT})+(?::(?:[{plain}]|{PERCENT})*)?|:(?:[{plain}]|{PERCENT})+)@")
    address = sequence(r"\[", groups_of_ipv6(), r"\]")
    host = either(_named_host(), ipv4(), address)
    port = optional(r":(?:[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])")
    network = sequence("://", user, host, port, segments)
    file = sequence("://", optional(_named_host()), many(sequence("/", many(character)), 1))
    absolute = sequence(":/", optional(many(character, 1), segments))
    rootless = sequence(":", many(character, 1), segments)
    other = Intersection((tree(r"[A-Za-z][A-Za-z0-9+.\-]*"), Complement(_any_case(SPECIAL_SCHEMES))))
    forms = either(
        sequence(_any_case(("http", "https", "ws", "wss", "ftp")), network),
        sequence(_any_case(("file",)), file),
        sequence(other, either(network, sequence(":///", many(character), segments), absolute, rootless)),
    )
    tail = rf"(?:\?(?:[{plain}:@/?]|{PERCENT})*)?(?:#(?:[{plain}:@/?]|{PERCENT})*)?"
    return sequence(forms, tail)


def _named_host() -> Expression:
    """Returns a name whose last label begins with a letter, so that no reader takes it for an IPv4 address.

    No label is Punycode, which may be invalid. The URL Standard does not limit lengths.
    """
    name = tree(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_\-]*[A-Za-z0-9])?\.)*[A-Za-z](?:[A-Za-z0-9_\-]*[A-Za-z0-9])?")
    return Intersection((name, Complement(tree(r"(?:[^.]*\.)*[Xx][Nn]--.*"))))


_REST = Repetition(ANY_JSON_CHAR, 0, None)

DATED = frozenset(("date", "date-time"))
"""Formats that begin with a year."""

FAR_YEARS = {
    side: tuple(Concatenation((Literal(year), _REST)) for year in years)
    for side, years in (("past", (b"0001-", b"0999-")), ("future", (b"3000-", b"9999-")))
}
"""Dates of the far years of a side: of both, if the schema bounds the years on neither."""

USUAL_YEARS = {
    side: Concatenation((ByteClass((digits,)), _REST))
    for side, digits in (("past", (0x31, 0x39)), ("future", (0x30, 0x32)), ("pastfuture", (0x31, 0x32)))
}
"""Dates from the year 1000, up to 2999, and both."""

_GENERATED: dict[str, Callable[[], Expression]] = {
    "date": day,
    "date-time": _date_time,
    "email": _email,
    "ipv6": _ipv6,
    "uri": _uri,
}

GENERATED_FORMATS = frozenset(_GENERATED)
"""Formats that generation or the policy ``years`` narrows."""
