"""Expressions of hosts and addresses: names, mail addresses, IPv4 and IPv6."""

from __future__ import annotations

from functools import cache

from constrain.language.tree import ANY_JSON_CHAR, ByteClass, Expression, Window
from constrain.regex.builders import either, many, optional, sequence, tree

MAX_HOSTNAME_LENGTH = 253
"""Characters of a host name (RFC 1035, section 2.3.4), without the bytes that the wire format adds."""


MAX_LOCAL_PART_LENGTH = 64
"""Octets of the local part of a mail address (RFC 5321, section 4.5.3.1.1)."""


MAX_LABEL_LENGTH = 63
"""Characters of a label of a host name (RFC 1035, section 2.3.4)."""


@cache
def hostname() -> Expression:
    """Returns a host name; all callers share the expression."""
    return host_of(label_of(MAX_LABEL_LENGTH))


def label_of(length: int | None) -> Expression:
    """Returns an ASCII label of at most ``length`` characters, without ``--`` in third and fourth place."""
    more = "*" if length is None else f"{{0,{length - 5}}}"
    return tree(
        "[A-Za-z0-9](?:[A-Za-z0-9-]?[A-Za-z0-9]|[A-Za-z0-9-]{2}[A-Za-z0-9]"
        f"|[A-Za-z0-9-](?:[A-Za-z0-9][A-Za-z0-9-]|-[A-Za-z0-9])[A-Za-z0-9-]{more}[A-Za-z0-9])?"
    )


def host_of(label: str | Expression) -> Expression:
    """Returns labels with dots between them."""
    name = sequence(label, many(sequence(r"\.", label)))
    return Window(name, ByteClass(((0x2D, 0x7A),)), 1, MAX_HOSTNAME_LENGTH)


def email_at(
    host: Expression, more: str = "", quoted: str | None = None, unit: Expression = ANY_JSON_CHAR
) -> Expression:
    """Returns a mailbox at such a host, or at an address.

    ``more``: further characters of the local part, as in brackets; ``quoted``: another definition of a quoted one;
    ``unit``: the unit of its length.
    """
    atom = rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{more}-]+"
    if quoted is None:
        quoted = rf'"(?:[ !#-\[\]-~{more}]|\\[ -~])*"'
    local = either(sequence(atom, many(sequence(r"\.", atom))), quoted)
    literal = sequence(r"\[", either(ipv4(), sequence("IPv6:", ipv6())), r"\]")
    return sequence(Window(local, unit, 1, MAX_LOCAL_PART_LENGTH), "@", either(host, literal))


@cache
def ipv4() -> Expression:
    """Returns four octets; all callers share the expression."""
    octet = tree(r"25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d")
    return sequence(octet, many(sequence(r"\.", octet), 3, 3))


_GROUP = "[0-9A-Fa-f]{1,4}"


@cache
def ipv6() -> Expression:
    """Returns eight groups, of which some may be left out or written as IPv4; all callers share the expression."""
    group_colon = sequence(_GROUP, ":")
    return _ipv6_ending(either(sequence(group_colon, _GROUP), ipv4()))


@cache
def groups_of_ipv6() -> Expression:
    """Returns an IPv6 address without an IPv4 address in it."""
    return _ipv6_ending(sequence(_GROUP, ":", _GROUP))


def _ipv6_ending(last: Expression) -> Expression:
    """Returns the forms of RFC 4291, section 2.2, by the grammar of RFC 3986: ``::`` is at least one group.

    ``last``: the forms of the last 32 bits.
    """
    group = tree(_GROUP)
    group_colon = sequence(group, ":")
    forms = [sequence(many(group_colon, 6, 6), last)]
    for before in range(6):  # at most ``before`` groups before the ::
        front = [optional(many(group_colon, 0, before - 1), group)] if before else []
        after = 5 - before
        forms.append(sequence(*front, "::", many(group_colon, after, after), last))
    forms.append(sequence(optional(many(group_colon, 0, 5), group), "::", group))
    forms.append(sequence(optional(many(group_colon, 0, 6), group), "::"))
    return either(*forms)
