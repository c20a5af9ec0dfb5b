r"""The string formats of JSON Schema (2020-12 Validation, section 7.3), and a few more, as expressions.

Each expression matches the content of a JSON string, without the quotes. LEFT_OUT says which texts of a format's
definition it leaves out, mostly those that Python's types do not hold; ``definitions`` has the full definitions.

Some names come from Pydantic's schemas: ``uuid1`` to ``uuid8`` for UUIDs of one version (RFC
9562), and ``ipvanyaddress``.

``idn.expressions`` has the internationalized formats, ``patterns`` the format ``regex``.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from constrain.json_schema.formats.hosts import email_at, hostname, ipv4, ipv6
from constrain.json_schema.formats.patterns import GROUP_NESTING, pattern
from constrain.regex.builders import either, many, optional, sequence, tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.language.tree import Expression


def format_expression(name: str) -> Expression | None:
    """Returns the content of a string of this format, spelled as in JSON; None if the format is not known.

    >>> format_expression("colour") is None
    True
    """
    build = _EXPRESSIONS.get(name)
    return None if build is None else build()


# Dates and times (RFC 3339).


@cache
def day() -> Expression:
    """Returns a real day of the years 0001 to 9999; all callers share the expression."""
    return date_of(r"[1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9]", "0[48]|[2468][048]|[13579][26]")


def date_of(year: str, leap_century: str) -> Expression:
    """Returns a day of one of these years; ``leap_century``: centuries whose first year has a 29th of February."""
    leap_year = rf"\d\d(?:0[48]|[2468][048]|[13579][26])|(?:{leap_century})00"
    any_year = r"(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8])"
    return either(sequence(year, "-", any_year), sequence(leap_year, "-02-29"))


@cache
def _time() -> Expression:
    return tree(r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,18})?(?:[Zz]|[+\-](?:[01]\d|2[0-3]):[0-5]\d)")


@cache
def _date_time() -> Expression:
    return sequence(day(), "[Tt]", _time())


@cache
def _duration() -> Expression:
    # The greatest sum, with a year of 365 and a month of 30 days, is below the 999,999,999 days of a timedelta. The
    # greatest sum of hours, minutes and seconds is below 2**32 seconds, Pydantic's limit.
    day = r"\d{1,8}D"
    month = sequence(r"\d{1,7}M", optional(day))
    year = sequence(r"\d{1,6}Y", optional(month))
    second = r"\d{1,8}S"
    minute = sequence(r"\d{1,6}M", optional(second))
    hour = sequence(r"\d{1,6}H", optional(minute))
    time = sequence("T", either(hour, minute, second))
    return sequence("P", either(sequence(either(day, month, year), optional(time)), time, r"\d{1,8}W"))


# Names of hosts and people.


@cache
def _email() -> Expression:
    return email_at(hostname())


@cache
def _idn_hostname() -> Expression:
    from constrain.json_schema.formats.idn import expressions as idn_formats  # loads the tables of IDNA

    return idn_formats.idn_hostname()


@cache
def _idn_email() -> Expression:
    from constrain.json_schema.formats.idn import expressions as idn_formats

    return idn_formats.idn_email()


# Addresses.


@cache
def _ip_of_any_version() -> Expression:
    return either(ipv4(), ipv6())


@cache
def _uuid() -> Expression:
    return tree("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


@cache
def _uuid_of(version: int) -> Expression:
    hexadecimal = "[0-9A-Fa-f]"
    parts = (
        f"{hexadecimal}{{8}}",
        f"{hexadecimal}{{4}}",
        f"{version}{hexadecimal}{{3}}",
        f"[89ABab]{hexadecimal}{{3}}",
    )
    return tree(f"{'-'.join(parts)}-{hexadecimal}{{12}}")


# Resource identifiers (RFC 3986, appendix A; RFC 3987, section 2.2).

_UCSCHAR = r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}" + "".join(
    rf"\u{{{plane:X}{'1000' if plane == 14 else '0000'}}}-\u{{{plane:X}FFFD}}" for plane in range(1, 15)
)
_PRIVATE = r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}"
PERCENT = "%[0-9A-Fa-f]{2}"
UNRESERVED = r"A-Za-z0-9._~\-"
DELIMITERS = r"!$&'()*+,;="


@cache
def _identifier(*, scheme: bool, reference: bool, more: str, private: str) -> Expression:
    """Returns URIs (``scheme``), references, or both; ``more``: further characters, in queries also ``private``."""
    common = UNRESERVED + more + DELIMITERS
    character = tree(f"[{common}:@]|{PERCENT}")
    segments = many(sequence("/", many(character)))
    host = either(
        sequence(r"\[", either(ipv6(), rf"[vV][0-9A-Fa-f]+\.[{UNRESERVED}{DELIMITERS}:]+"), r"\]"),
        f"(?:[{common}]|{PERCENT})*",
    )
    user = optional(f"(?:[{common}:]|{PERCENT})*@")
    network = sequence("//", user, host, optional(r":\d*"), segments)
    absolute = sequence("/", optional(many(character, 1), segments))
    tail = sequence(
        optional(r"\?", many(f"[{common}:@/?{private}]|{PERCENT}")),
        optional("#", many(f"[{common}:@/?]|{PERCENT}")),
    )
    forms = []
    if scheme:
        rootless = sequence(many(character, 1), segments)
        forms.append(sequence(r"[A-Za-z][A-Za-z0-9+.\-]*:", either(network, absolute, rootless, "")))
    if reference:
        without_colon = sequence(f"(?:[{common}@]|{PERCENT})+", segments)
        forms.append(either(network, absolute, without_colon, ""))
    return sequence(either(*forms), tail)


@cache
def _uri_template() -> Expression:
    return template_of("[+#./;?&]")


def template_of(operator: str) -> Expression:
    """Returns an expression of RFC 6570, section 2, with the apostrophe that an erratum adds."""
    literal = rf"[!#$&-;=?-\[\]_a-z~{_UCSCHAR}{_PRIVATE}]|{PERCENT}"
    variable = tree(f"[A-Za-z0-9_]|{PERCENT}")
    name = sequence(variable, many(sequence(optional(r"\."), variable)))
    specification = sequence(name, optional(r":[1-9]\d{0,3}|\*"))
    names = sequence(specification, many(sequence(",", specification)))
    return many(either(literal, sequence(r"\{", optional(operator), names, r"\}")))


# JSON Pointers (RFC 6901).


@cache
def json_pointer() -> Expression:
    """Returns a JSON Pointer; all callers share the expression."""
    return tree("(?:/(?:[^/~]|~[01])*)*")


@cache
def _relative_json_pointer() -> Expression:
    return sequence(r"0|[1-9]\d*", either("#", json_pointer()))


_EXPRESSIONS: dict[str, Callable[[], Expression]] = {
    "date": day,
    "date-time": _date_time,
    "duration": _duration,
    "email": _email,
    "hostname": hostname,
    "idn-email": _idn_email,
    "idn-hostname": _idn_hostname,
    "ipv4": ipv4,
    "ipv6": ipv6,
    "ipvanyaddress": _ip_of_any_version,
    "iri": lambda: _identifier(scheme=True, reference=False, more=_UCSCHAR, private=_PRIVATE),
    "iri-reference": lambda: _identifier(scheme=True, reference=True, more=_UCSCHAR, private=_PRIVATE),
    "json-pointer": json_pointer,
    "regex": pattern,
    "relative-json-pointer": _relative_json_pointer,
    "time": _time,
    "uri": lambda: _identifier(scheme=True, reference=False, more="", private=""),
    "uri-reference": lambda: _identifier(scheme=True, reference=True, more="", private=""),
    "uri-template": _uri_template,
    "uuid": _uuid,
    **{f"uuid{version}": partial(_uuid_of, version) for version in range(1, 9)},
}

KNOWN_FORMATS = frozenset(_EXPRESSIONS)
"""The formats that are enforced."""

_LEAP_SECONDS = "leap seconds, and more than 18 digits after the point"
_YEAR = f"the year 0000, {_LEAP_SECONDS}"
_PUNYCODE = "labels with `--` in third and fourth place, such as `xn--`, since no expression tells valid Punycode"
_IDN = f"{_PUNYCODE}; code points beyond U+FFFF; long labels beyond ASCII; names that readers may map to others"

LEFT_OUT = {
    "date": "the year 0000",
    "date-time": _YEAR,
    "duration": "numbers of so many digits that the sum may exceed Python's `timedelta`",
    "email": _PUNYCODE,
    "hostname": _PUNYCODE,
    "idn-email": _IDN,
    "idn-hostname": _IDN,
    "regex": (
        "backreferences, named groups, lookbehind, `\\p`, `\\c`, control characters, groups nested more than "
        f"{GROUP_NESTING} deep, lookaheads with or within several groups, most ranges but those of digits and letters, "
        "some `{m,n}`, counts beyond 999"
    ),
    "relative-json-pointer": "index manipulation, as in `0+1/a`",
    "time": _LEAP_SECONDS,
    "uri-template": "operators that RFC 6570 reserves, as in `{=a}`",
}
"""The texts that the expression of a format leaves out of its definition."""

INEXACT_FORMATS = frozenset(("regex",))
"""The formats of LEFT_OUT whose missing texts are in common use: ``inexact="refuse"`` refuses them."""
