"""Days and times as numbers, and the texts between two of them: for bounds of the formats date, time and date-time.

A date counts days, the others whole seconds in UTC. Texts of a bounded time or date-time are written in UTC, with ``Z``
and without a fraction, since the moments of one side, with all their offsets, have no expression of readable size.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

from constrain.regex.builders import tree
from constrain.types.patterns import between

if TYPE_CHECKING:
    from constrain.language.tree import Expression

_DAY_SECONDS = 86_400
_START = datetime(1, 1, 1)  # noqa: DTZ001 - in UTC
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))")

BOUNDED_FORMATS = {
    "date": (1, date.max.toordinal()),
    "time": (0, _DAY_SECONDS - 1),
    "date-time": (0, date.max.toordinal() * _DAY_SECONDS - 1),
}
"""The formats that may be bounded, with their first and last day or second."""

FORMAT_BOUNDS = ("formatMinimum", "formatExclusiveMinimum", "formatMaximum", "formatExclusiveMaximum")
"""The keywords of bounds."""


def read_moment(name: str, text: object) -> Fraction | None:
    """Returns the day or second of a text of a format, with a fraction of a second; ``None`` if it is none.

    >>> read_moment("time", "01:00:00.5+01:00"), read_moment("date", "2024-02-30")
    (Fraction(1, 2), None)
    """
    if not isinstance(text, str) or not text.isascii():
        return None
    day, clock = (text, "") if name == "date" else ("", text) if name == "time" else (text[:10], text[11:])
    if name == "date-time" and text[10:11] not in ("T", "t"):
        return None
    number = Fraction(0)
    if name != "time":
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
            return None
        try:
            number = Fraction(date.fromisoformat(day).toordinal())
        except ValueError:
            return None
        if name == "date":
            return number
        number = (number - 1) * _DAY_SECONDS
    found = _TIME.fullmatch(clock)
    if found is None:
        return None
    hour, minute, second = (int(found[part]) for part in (1, 2, 3))
    offset = 60 * (60 * int(found[6]) + int(found[7])) if found[5] else 0
    if hour > 23 or minute > 59 or second > 59 or offset >= _DAY_SECONDS:
        return None
    seconds = 60 * (60 * hour + minute) + second - (offset if found[5] == "+" else -offset)
    return number + seconds + (Fraction(found[4]) if found[4] else 0)


def within(keyword: str, moment: Fraction, low: int, high: int) -> tuple[int, int]:
    """Returns the days or seconds of a range that are within one more bound, one of FORMAT_BOUNDS."""
    is_open = "Exclusive" in keyword
    if keyword.endswith("Minimum"):
        return max(low, math.floor(moment) + 1 if is_open else math.ceil(moment)), high
    return low, min(high, math.ceil(moment) - 1 if is_open else math.floor(moment))


def spell_moment(name: str, number: int) -> str:
    """Returns the text of a day or second, as it is written.

    >>> spell_moment("date-time", 86_400)
    '0001-01-02T00:00:00Z'
    """
    if name == "date":
        return date.fromordinal(number).isoformat()
    moment = _START + timedelta(seconds=number)
    return (moment.time() if name == "time" else moment).isoformat() + "Z"


def moments_between(name: str, low: int, high: int) -> Expression | None:
    """Returns the texts from one day or second to another; ``None`` if there are none."""
    first, last = BOUNDED_FORMATS[name]
    low, high = max(low, first), min(high, last)
    return tree(between(spell_moment(name, low), spell_moment(name, high))) if low <= high else None
