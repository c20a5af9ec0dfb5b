"""Hosts and addresses as expressions: names, mail addresses, IPv4 and IPv6."""

from __future__ import annotations

from functools import cache

from constrain.language.tree import ANY_JSON_CHAR, ByteClass, Expression, Window
from constrain.regex.builders import either, many, optional, sequence, tree

MAX_HOSTNAME_LENGTH = 253
"""RFC 1035, section 2.3.4, without the bytes that the wire format adds."""


MAX_LOCAL_PART_LENGTH = 64
"""RFC 5321, section 4.5.3.1.1."""


MAX_LABEL_LENGTH = 63
"""RFC 1035, section 2.3.4."""


@cache
def hostname() -> Expression:
    """A name of host; the expression that all callers share."""
    return host_of(label_of(MAX_LABEL_LENGTH))


def label_of(length: int | None) -> Expression:
    """A label in ASCII of at most so many characters, without ``--`` in third and fourth place."""
    more = "*" if length is None else f"{{0,{length - 5}}}"
    return tree(
        "[A-Za-z0-9](?:[A-Za-z0-9-]?[A-Za-z0-9]|[A-Za-z0-9-]{2}[A-Za-z0-9]"
        f"|[A-Za-z0-9-](?:[A-Za-z0-9][A-Za-z0-9-]|-[A-Za-z0-9])[A-Za-z0-9-]{more}[A-Za-z0-9])?"
    )


def host_of(label: str | Expression) -> Expression:
    """Labels with dots between them."""
    name = sequence(label, many(sequence(r"\.", label)))
    return Window(name, ByteClass(((0x2D, 0x7A),)), 1, MAX_HOSTNAME_LENGTH)


def email_at(
    host: Expression, more: str = "", quoted: str | None = None, unit: Expression = ANY_JSON_CHAR
) -> Expression:
    """A mailbox at such a host, or at an address.

    ``more``: further characters of the local part, as in brackets; ``quoted``: another definition of one in quotes;
    ``unit``: what its length counts.
    """
    atom = rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{more}-]+"
    if quoted is None:
        quoted = rf'"(?:[ !#-\[\]-~{more}]|\\[ -~])*"'
    local = either(sequence(atom, many(sequence(r"\.", atom))), quoted)
    literal = sequence(r"\[", either(ipv4(), sequence("IPv6:", ipv6())), r"\]")
    return sequence(Window(local, unit, 1, MAX_LOCAL_PART_LENGTH), "@", either(host, literal))


@cache
def ipv4() -> Expression:
    """Four octets; the expression that all callers share."""
    octet = tree(r"25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d")
    return sequence(octet, many(sequence(r"\.", octet), 3, 3))


_GROUP = "[0-9A-Fa-f]{1,4}"


@cache
def ipv6() -> Expression:
    """Eight groups, of which some may be left out or written as IPv4; the expression that all callers share."""
    group_colon = sequence(_GROUP, ":")
    return _ipv6_ending(either(sequence(group_colon, _GROUP), ipv4()))


@cache
def groups_of_ipv6() -> Expression:
    """An IPv6 address without an IPv4 address in it."""
    return _ipv6_ending(sequence(_GROUP, ":", _GROUP))


def _ipv6_ending(last: Expression) -> Expression:
    """RFC 4291, section 2.2, as the grammar of RFC 3986 has it: ``::`` stands for at least one group.

    ``last``: how the last 32 bits are written.
    """
    group = tree(_GROUP)
    group_colon = sequence(group, ":")
    forms = [sequence(many(group_colon, 6, 6), last)]
    for before in range(6):  # up to so many groups before the ::
        front = [optional(many(group_colon, 0, before - 1), group)] if before else []
        after = 5 - before
        forms.append(sequence(*front, "::", many(group_colon, after, after), last))
    forms.append(sequence(optional(many(group_colon, 0, 5), group), "::", group))
    forms.append(sequence(optional(many(group_colon, 0, 6), group), "::"))
    return either(*forms)
