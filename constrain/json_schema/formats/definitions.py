r"""Full definitions of the formats whose expressions are narrower.

Negation needs them: "no date-time" must exclude every string that a validator may accept as one. So these languages are
as wide as the definitions, or wider if the definition is no regular language:

- date, time, date-time (RFC 3339): the year 0000, the leap second 23:59:60 UTC, any number of digits;
- duration (RFC 3339, appendix A): any number of digits;
- hostname, email: labels with ``--`` in third and fourth place, whether or not their Punycode is valid;
- idn-hostname, idn-email: see ``idn.definitions``;
- uri-template (RFC 6570): the reserved operators, too;
- regex (ECMA-262): every text without a fault that ends a pattern in every dialect;
- relative-json-pointer: index manipulation, too.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from constrain.json_schema.formats.expressions import date_of, json_pointer, template_of
from constrain.json_schema.formats.hosts import email_at, host_of
from constrain.language.tree import Intersection
from constrain.regex.builders import either, optional, sequence, tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.language.tree import Expression

_FRACTION = r"(?:\.\d+)?"


def format_definition(name: str) -> Expression:
    """Returns every text that may count as a string of one of the formats in LEFT_OUT."""
    return _DEFINITIONS[name]()


@cache
def _date() -> Expression:
    return date_of(r"\d{4}", "00|0[48]|[2468][048]|[13579][26]")


@cache
def _time() -> Expression:
    offset = r"[+\-](?:[01]\d|2[0-3]):[0-5]\d"
    return either(rf"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d{_FRACTION}(?:[Zz]|{offset})", _leap_second())


def _leap_second() -> Expression:
    """Returns second 60 of the minute that is 23:59 in UTC, for each offset.

    The local time is UTC plus an offset of +hh:mm, or minus an offset of -hh:mm.
    """
    hours = range(24)
    minutes = range(60)
    second = f":60{_FRACTION}"
    later = Intersection(
        (
            either(*(rf"\d\d:{m:02}{second}\+\d\d:{(m + 1) % 60:02}" for m in minutes)),
            either(
                *(rf"{h:02}:(?:[0-4]\d|5[0-8]){second}\+{h:02}:\d\d" for h in hours),
                *(rf"{h:02}:59{second}\+{(h + 1) % 24:02}:\d\d" for h in hours),
            ),
        )
    )
    earlier = Intersection(
        (
            either(*(rf"\d\d:{m:02}{second}-\d\d:{59 - m:02}" for m in minutes)),
            either(*(rf"{h:02}:\d\d{second}-{23 - h:02}:\d\d" for h in hours)),
        )
    )
    return either(f"23:59{second}[Zz]", later, earlier)


@cache
def _date_time() -> Expression:
    return sequence(_date(), "[Tt]", _time())


@cache
def _duration() -> Expression:
    month = sequence(r"\d+M", optional(r"\d+D"))
    year = sequence(r"\d+Y", optional(month))
    minute = sequence(r"\d+M", optional(r"\d+S"))
    hour = sequence(r"\d+H", optional(minute))
    time = sequence("T", either(hour, minute, r"\d+S"))
    return sequence("P", either(sequence(either(r"\d+D", month, year), optional(time)), time, r"\d+W"))


@cache
def _hostname() -> Expression:
    return host_of("[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


def _idn_hostname() -> Expression:
    from constrain.json_schema.formats.idn import definitions as idn_definitions  # loads the tables of IDNA

    return idn_definitions.idn_hostname_definition()


def _idn_email() -> Expression:
    from constrain.json_schema.formats.idn import definitions as idn_definitions

    return idn_definitions.idn_email_definition()


@cache
def _regex() -> Expression:
    """Returns the texts that do not begin with a quantifier or a ``)`` and do not end within an escape."""
    return tree(r"(?:(?:[^*+?)\\]|\\[\s\S])(?:[^\\]|\\[\s\S])*)?")


@cache
def _relative_json_pointer() -> Expression:
    number = tree(r"0|[1-9]\d*")
    return sequence(number, optional(r"[+\-]", number), either("#", json_pointer()))


_DEFINITIONS: dict[str, Callable[[], Expression]] = {
    "date": _date,
    "date-time": _date_time,
    "duration": _duration,
    "email": cache(lambda: email_at(_hostname())),
    "hostname": _hostname,
    "idn-email": _idn_email,
    "idn-hostname": _idn_hostname,
    "regex": _regex,
    "relative-json-pointer": _relative_json_pointer,
    "time": _time,
    "uri-template": cache(lambda: template_of("[+#./;?&=,!@|]")),
}
