r"""The string formats of JSON Schema (2020-12 Validation, section 7.3) as expressions.

Each expression matches the content of a JSON string, without the quotes. Within their definitions formats stay inside
what Python's types hold:

- date, time, date-time (RFC 3339): years 0001 to 9999, real days, no second 60, 1 to 18 digits after the point;
- duration (RFC 3339, appendix A): digit counts whose sum fits into a ``timedelta``;
- hostname (RFC 1123): no label with ``--`` in third and fourth place, since the validity of Punycode is no regular
  property; email (RFC 5321) accordingly;
- uri-template (RFC 6570): the operators that have a meaning;
- relative-json-pointer: without index manipulation.

``regex`` is not a regular language, and ``idn-hostname`` and ``idn-email`` need the tables of IDNA 2008: these three
have no expression (IRREGULAR_FORMATS).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from constrain.regex.anchors import sequence, union
from constrain.regex.parser import parse_pattern
from constrain.regex.tree import ANY_JSON_CHAR, ByteClass, Expression, Repetition, Window

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_HOSTNAME_LENGTH = 253
"""RFC 1035, section 2.3.4, without the bytes that the wire format adds."""

MAX_LOCAL_PART_LENGTH = 64
"""RFC 5321, section 4.5.3.1.1."""

_Part = str | Expression


def format_expression(name: str) -> Expression | None:
    """What a string of this format contains, spelled as inside a JSON string; None if the format is not known.

    >>> format_expression("regex") is None
    True
    """
    build = _BUILDERS.get(name)
    return None if build is None else build()


# Small builders; a string is an ECMA-262 pattern.


def _tree(part: _Part) -> Expression:
    return parse_pattern(part, "ecma", json=True, anchored=True) if isinstance(part, str) else part


def _sequence(*parts: _Part) -> Expression:
    return sequence(*map(_tree, parts))


def _either(*parts: _Part) -> Expression:
    return union(list(map(_tree, parts)))


def _optional(*parts: _Part) -> Expression:
    return Repetition(_sequence(*parts), 0, 1)


def _many(part: _Part, minimum: int = 0, maximum: int | None = None) -> Expression:
    return Repetition(_tree(part), minimum, maximum)


# Dates and times (RFC 3339).


@cache
def _date() -> Expression:
    year = r"[1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9]"
    leap_year = r"\d\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00"
    any_year = r"(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8])"
    return _either(_sequence(year, "-", any_year), _sequence(leap_year, "-02-29"))


@cache
def _time() -> Expression:
    return _tree(r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,18})?(?:[Zz]|[+\-](?:[01]\d|2[0-3]):[0-5]\d)")


@cache
def _date_time() -> Expression:
    return _sequence(_date(), "[Tt]", _time())


@cache
def _duration() -> Expression:
    # The greatest sum, with a year of 365 and a month of 30 days, is below the 999,999,999 days of a timedelta, and
    # that of the hours, minutes and seconds below 2**32 seconds, which is what Pydantic reads.
    day = r"\d{1,8}D"
    month = _sequence(r"\d{1,7}M", _optional(day))
    year = _sequence(r"\d{1,6}Y", _optional(month))
    second = r"\d{1,8}S"
    minute = _sequence(r"\d{1,6}M", _optional(second))
    hour = _sequence(r"\d{1,6}H", _optional(minute))
    time = _sequence("T", _either(hour, minute, second))
    return _sequence("P", _either(_sequence(_either(day, month, year), _optional(time)), time, r"\d{1,8}W"))


# Names of hosts and people.


@cache
def _hostname() -> Expression:
    label = (
        "[A-Za-z0-9](?:[A-Za-z0-9-]?[A-Za-z0-9]|[A-Za-z0-9-]{2}[A-Za-z0-9]"
        "|[A-Za-z0-9-](?:[A-Za-z0-9][A-Za-z0-9-]|-[A-Za-z0-9])[A-Za-z0-9-]{0,58}[A-Za-z0-9])?"
    )
    name = _sequence(label, _many(_sequence(r"\.", label)))
    return Window(name, ByteClass(((0x2D, 0x7A),)), 1, MAX_HOSTNAME_LENGTH)


@cache
def _email() -> Expression:
    atom = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
    quoted = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
    local = _either(_sequence(atom, _many(_sequence(r"\.", atom))), quoted)
    literal = _sequence(r"\[", _either(_ipv4(), _sequence("IPv6:", _ipv6())), r"\]")
    return _sequence(Window(local, ANY_JSON_CHAR, 1, MAX_LOCAL_PART_LENGTH), "@", _either(_hostname(), literal))


# Addresses.


@cache
def _ipv4() -> Expression:
    octet = _tree(r"25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d")
    return _sequence(octet, _many(_sequence(r"\.", octet), 3, 3))


@cache
def _ipv6() -> Expression:
    """RFC 4291, section 2.2, as the grammar of RFC 3986 has it: ``::`` stands for at least one group."""
    group = _tree("[0-9A-Fa-f]{1,4}")
    group_colon = _sequence(group, ":")
    last = _either(_sequence(group_colon, group), _ipv4())  # 32 bits
    forms = [_sequence(_many(group_colon, 6, 6), last)]
    for before in range(6):  # up to so many groups before the ::
        front = [_optional(_many(group_colon, 0, before - 1), group)] if before else []
        after = 5 - before
        forms.append(_sequence(*front, "::", _many(group_colon, after, after), last))
    forms.append(_sequence(_optional(_many(group_colon, 0, 5), group), "::", group))
    forms.append(_sequence(_optional(_many(group_colon, 0, 6), group), "::"))
    return _either(*forms)


@cache
def _uuid() -> Expression:
    return _tree("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


# Resource identifiers (RFC 3986, appendix A; RFC 3987, section 2.2).

_UCSCHAR = r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}" + "".join(
    rf"\u{{{plane:X}{'1000' if plane == 14 else '0000'}}}-\u{{{plane:X}FFFD}}" for plane in range(1, 15)
)
_PRIVATE = r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}"
_PERCENT = "%[0-9A-Fa-f]{2}"
_UNRESERVED = r"A-Za-z0-9._~\-"
_DELIMITERS = r"!$&'()*+,;="


@cache
def _identifier(*, scheme: bool, reference: bool, more: str, private: str) -> Expression:
    """``scheme``: with one; ``reference``: without one; ``more``: further characters, of queries also ``private``."""
    common = _UNRESERVED + more + _DELIMITERS
    character = _tree(f"[{common}:@]|{_PERCENT}")
    segments = _many(_sequence("/", _many(character)))
    host = _either(
        _sequence(r"\[", _either(_ipv6(), rf"[vV][0-9A-Fa-f]+\.[{_UNRESERVED}{_DELIMITERS}:]+"), r"\]"),
        f"(?:[{common}]|{_PERCENT})*",
    )
    user = _optional(f"(?:[{common}:]|{_PERCENT})*@")
    network = _sequence("//", user, host, _optional(r":\d*"), segments)
    absolute = _sequence("/", _optional(_many(character, 1), segments))
    tail = _sequence(
        _optional(r"\?", _many(f"[{common}:@/?{private}]|{_PERCENT}")),
        _optional("#", _many(f"[{common}:@/?]|{_PERCENT}")),
    )
    forms = []
    if scheme:
        rootless = _sequence(_many(character, 1), segments)
        forms.append(_sequence(r"[A-Za-z][A-Za-z0-9+.\-]*:", _either(network, absolute, rootless, "")))
    if reference:
        without_colon = _sequence(f"(?:[{common}@]|{_PERCENT})+", segments)
        forms.append(_either(network, absolute, without_colon, ""))
    return _sequence(_either(*forms), tail)


@cache
def _uri_template() -> Expression:
    """RFC 6570, section 2, with the apostrophe that an erratum adds."""
    literal = rf"[!#$&-;=?-\[\]_a-z~{_UCSCHAR}{_PRIVATE}]|{_PERCENT}"
    variable = _tree(f"[A-Za-z0-9_]|{_PERCENT}")
    name = _sequence(variable, _many(_sequence(_optional(r"\."), variable)))
    specification = _sequence(name, _optional(r":[1-9]\d{0,3}|\*"))
    names = _sequence(specification, _many(_sequence(",", specification)))
    return _many(_either(literal, _sequence(r"\{", _optional("[+#./;?&]"), names, r"\}")))


# JSON Pointers (RFC 6901).


@cache
def _json_pointer() -> Expression:
    return _tree("(?:/(?:[^/~]|~[01])*)*")


@cache
def _relative_json_pointer() -> Expression:
    return _sequence(r"0|[1-9]\d*", _either("#", _json_pointer()))


_BUILDERS: dict[str, Callable[[], Expression]] = {
    "date": _date,
    "date-time": _date_time,
    "duration": _duration,
    "email": _email,
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "iri": lambda: _identifier(scheme=True, reference=False, more=_UCSCHAR, private=_PRIVATE),
    "iri-reference": lambda: _identifier(scheme=True, reference=True, more=_UCSCHAR, private=_PRIVATE),
    "json-pointer": _json_pointer,
    "relative-json-pointer": _relative_json_pointer,
    "time": _time,
    "uri": lambda: _identifier(scheme=True, reference=False, more="", private=""),
    "uri-reference": lambda: _identifier(scheme=True, reference=True, more="", private=""),
    "uri-template": _uri_template,
    "uuid": _uuid,
}

KNOWN_FORMATS = frozenset(_BUILDERS)
"""The formats that are enforced."""

IRREGULAR_FORMATS = frozenset(("idn-email", "idn-hostname", "regex"))
"""Formats that cannot be enforced exactly. Validators assert ``regex`` in all drafts, so no draft is exempt."""
