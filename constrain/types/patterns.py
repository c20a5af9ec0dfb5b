"""Patterns (ECMA-262) for the texts of standard Python types and Pydantic's own types.

If the language of a type has no regular expression of readable size, the pattern covers its usual part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

NO_TEXT = "[]"
"""A pattern that matches nothing."""

_HEX = "[0-9A-Fa-f]"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_LABEL = "[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20}){0,2}"
_LAST_LABEL = "[A-Za-z][A-Za-z0-9]{0,19}(?:-[A-Za-z0-9]{1,20}){0,2}"
HOST = rf"(?:(?:{_LABEL}\.){{0,3}}{_LAST_LABEL}|{_IPV4})"
"""Host names that every URL parser takes for names, and that need no IDNA."""

PORT = r"(?::(?:6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3}))?"
_URL_CHARACTER = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%{_HEX}{{2}})"
_USER = r"(?:[A-Za-z0-9._~-]{1,60}(?::[A-Za-z0-9._~-]{1,60})?@)?"
URL_TAIL = rf"(?:/{_URL_CHARACTER}*)?(?:\?(?:{_URL_CHARACTER}|\?)*)?(?:#(?:{_URL_CHARACTER}|\?)*)?"
OPAQUE_URL = rf"(?:mailto|tel|urn|data|news|sms|geo|magnet):{_URL_CHARACTER}{{1,200}}"
EMAIL = (
    r"[A-Za-z0-9_+-]{1,30}(?:\.[A-Za-z0-9_+-]{1,30})?@(?:[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20})?\.){1,3}[A-Za-z]{2,10}"
)

_BASE64_CHARACTER = "[A-Za-z0-9+/]"
_FIRST, _SECOND, _THIRD = "[A-Za-f]", "[A-HQ-Xg-nw-z0-3]", "[ABEFIJMNQRUVYZcdghklopstwx014589]"
BASE64_OF_ASCII = (
    f"(?:{_FIRST}{_SECOND}{_THIRD}{_BASE64_CHARACTER})*(?:{_FIRST}[AQgw]==|{_FIRST}{_SECOND}[AEIMQUYcgkosw048]=)?"
)

_UNSIGNED = r"(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?"
COMPLEX = rf"-?{_UNSIGNED}(?:[+-]{_UNSIGNED}j)?"
FRACTION = r"-?(?:0|[1-9]\d{0,14})(?:/[1-9]\d{0,14})?"
BYTE_SIZE = r"(?:0|[1-9]\d{0,8})(?:\.\d{1,3})? ?(?:[KMGTP]i?)?B"
KEYS = {
    "int": r"0|-?[1-9]\d{0,17}",
    "float": rf"-?{_UNSIGNED}",
    "decimal": "",  # by its digits and bounds
    "bool": "true|false",
}
"""Patterns for the keys of a dict, by the type of key."""

_CALENDAR_DAY = (
    r"(?:(?:[1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9])-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29)"
)
_TIME_OF_DAY = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
NAIVE_DATETIME = rf"{_CALENDAR_DAY}T{_TIME_OF_DAY}(?:\.\d{{1,6}})?"


def whole(pattern: str) -> str:
    """Returns the pattern for texts that match as a whole."""
    return f"^(?:{pattern})$"


def base64(minimum: int, maximum: int | None) -> str:
    """Returns the spellings in Base64 of ``minimum`` to ``maximum`` bytes (``None``: any number)."""
    forms = []
    for rest, ending in enumerate(("", f"{_BASE64_CHARACTER}[AQgw]==", f"{_BASE64_CHARACTER}{{2}}[AEIMQUYcgkosw048]=")):
        least, most = max(0, (minimum - rest + 2) // 3), None if maximum is None else (maximum - rest) // 3
        if most is None or least <= most:
            forms.append(f"(?:{_BASE64_CHARACTER}{{4}}){{{least},{'' if most is None else most}}}{ending}")
    return "|".join(forms) or NO_TEXT


def uuid(version: int) -> str:
    """Returns UUIDs of one version (RFC 9562, section 4)."""
    return f"{_HEX}{{8}}-{_HEX}{{4}}-{version}{_HEX}{{3}}-[89ABab]{_HEX}{{3}}-{_HEX}{{12}}"


def ipv4_network() -> str:
    """Returns IPv4 networks: an address whose bits after the prefix are 0, and the prefix."""
    forms = [_IPV4]
    for prefix in range(33):
        full, bits = divmod(prefix, 8)
        octets = [_OCTET] * full
        if bits:
            octets.append("(?:" + "|".join(map(str, range(0, 256, 1 << (8 - bits)))) + ")")
        octets += ["0"] * (4 - len(octets))
        forms.append(r"\.".join(octets) + f"/{prefix}")
    return "|".join(forms)


def ipv6_network() -> str:
    """Returns IPv6 networks of whole groups."""
    group = f"{_HEX}{{1,4}}"
    forms = [f"(?:{group}:){{7}}{group}(?:/128)?", "::/0"]
    forms += [f"(?:{group}:){{{count}}}:/{16 * count}" for count in range(1, 8)]
    return "|".join(forms)


def ipv4_interface() -> str:
    """Returns IPv4 addresses in a network."""
    return rf"{_IPV4}(?:/(?:3[0-2]|[12]?\d))?"


def ipv6_interface() -> str:
    """Returns IPv6 addresses, with all groups written, in a network."""
    return rf"(?:{_HEX}{{1,4}}:){{7}}{_HEX}{{1,4}}(?:/(?:12[0-8]|1[01]\d|[1-9]?\d))?"


def url(schemes: list[str] | None) -> str:
    """Returns URLs with a host, of some schemes or of all."""
    if schemes is None:
        any_scheme = "[A-Za-z][A-Za-z0-9+-]{0,20}"
        return f"{any_scheme}://{_USER}{HOST}{PORT}{URL_TAIL}|{OPAQUE_URL}"
    forms = [f"{_any_of(others)}://{_USER}{HOST}{PORT}{URL_TAIL}"] if (others := set(schemes) - {"file"}) else []
    if "file" in schemes:
        forms.append(f"file://(?:/{_URL_CHARACTER}*)")
    return "|".join(forms)


def multi_host_url(schemes: list[str] | None) -> str:
    """Returns URLs of one or several hosts."""
    scheme = "[A-Za-z][A-Za-z0-9+-]{0,20}" if schemes is None else _any_of(set(schemes))
    return rf"{scheme}://{_USER}{HOST}{PORT}(?:,{HOST}{PORT}){{0,3}}(?:/[A-Za-z0-9_-]{{0,40}})?"


def _any_of(texts: set[str]) -> str:
    """Returns a pattern that matches any one of the texts."""
    escaped = (text.replace("+", r"\+").replace(".", r"\.") for text in sorted(texts))
    return "(?:" + "|".join(escaped) + ")"


# Bounds.


def between(low: str, high: str) -> str:
    r"""Returns texts from ``low`` to ``high``, digit by digit and of equal length; other characters are equal in both.

    >>> between("15", "31")
    '(?:1(?:5|[6-9])|2\\d|3(?:0|1))'
    """
    if low == high:
        return low
    first = next(index for index, (one, other) in enumerate(zip(low, high, strict=True)) if one != other)
    forms = [low[first] + _at_least(low[first + 1 :])]
    if int(high[first]) - int(low[first]) > 1:
        forms.append(_digits(int(low[first]) + 1, int(high[first]) - 1) + _any_digits(low[first + 1 :]))
    forms.append(high[first] + _at_most(high[first + 1 :]))
    return low[:first] + f"(?:{'|'.join(forms)})"


def _at_least(low: str) -> str:
    if not low or not low[0].isdigit():
        return low[:1] + _at_least(low[1:]) if low else ""
    forms = [low[0] + _at_least(low[1:])]
    if low[0] != "9":
        forms.append(_digits(int(low[0]) + 1, 9) + _any_digits(low[1:]))
    return forms[0] if len(forms) == 1 else f"(?:{'|'.join(forms)})"


def _at_most(high: str) -> str:
    if not high or not high[0].isdigit():
        return high[:1] + _at_most(high[1:]) if high else ""
    forms = [high[0] + _at_most(high[1:])]
    if high[0] != "0":
        forms.insert(0, _digits(0, int(high[0]) - 1) + _any_digits(high[1:]))
    return forms[0] if len(forms) == 1 else f"(?:{'|'.join(forms)})"


def _digits(low: int, high: int) -> str:
    return str(low) if low == high else r"\d" if (low, high) == (0, 9) else f"[{low}-{high}]"


def _any_digits(template: str) -> str:
    return "".join(r"\d" if character.isdigit() else character for character in template)


def whole_numbers(low: int, high: int) -> str:
    """Returns the decimal numbers from ``low`` to ``high``, which are not negative."""
    forms = []
    for width in range(len(str(low)), len(str(high)) + 1):
        least, most = max(low, 10 ** (width - 1) if width > 1 else 0), min(high, 10**width - 1)
        forms.append(between(str(least), str(most)))
    return "|".join(forms)


def decimal_bound(name: str, bound: Decimal) -> str:
    r"""Returns decimals within a bound (``gt``, ``ge``, ``lt`` or ``le``): ``-?``, digits, perhaps a point and digits.

    >>> from decimal import Decimal
    >>> decimal_bound("ge", Decimal("-2.5"))
    '\\d+(?:\\.\\d+)?|-(?:(?:0|1)(?:\\.\\d+)?|2(?:\\.(?:[0-4]\\d*|50*))?)'
    """
    is_lower, is_open = name in ("gt", "ge"), name in ("gt", "lt")
    if bound.is_infinite():  # beyond all decimals
        return NO_TEXT
    magnitude = abs(bound)
    if not bound:
        positive = r"(?:[1-9]\d*(?:\.\d+)?|0\.\d*[1-9]\d*)"
        zero = "" if is_open else r"|-?0(?:\.0+)?"
        return f"{positive if is_lower else '-' + positive}{zero}"
    if is_lower and bound > 0:
        return _more_than(magnitude, is_open=is_open)
    if is_lower:
        return rf"\d+(?:\.\d+)?|-(?:{_less_than(magnitude, is_open=is_open)})"
    if bound > 0:
        return rf"-\d+(?:\.\d+)?|{_less_than(magnitude, is_open=is_open)}"
    return f"-(?:{_more_than(magnitude, is_open=is_open)})"


_FRACTION_OR_NONE = r"(?:\.\d+)?"


def _digits_of(magnitude: Decimal) -> tuple[str, str]:
    whole, _, fraction = f"{magnitude:f}".partition(".")
    return whole, fraction.rstrip("0")


def _more_than(magnitude: Decimal, *, is_open: bool) -> str:
    """Returns unsigned decimals that are at least, or more than, a nonzero one."""
    whole, fraction = _digits_of(magnitude)
    forms = [rf"[1-9]\d{{{len(whole)},}}{_FRACTION_OR_NONE}"]
    following = str(int(whole) + 1)
    if len(following) == len(whole):
        forms.append(between(following, "9" * len(whole)) + _FRACTION_OR_NONE)
    more = [rf"{fraction[:at]}[{int(digit) + 1}-9]\d*" for at, digit in enumerate(fraction) if digit != "9"]
    more.append(rf"{fraction}\d*[1-9]\d*" if is_open else rf"{fraction}\d*" if fraction else r"\d+")
    optional = "" if is_open or fraction else "?"
    forms.append(rf"{whole}(?:\.(?:{'|'.join(more)})){optional}")
    return "|".join(forms)


def _less_than(magnitude: Decimal, *, is_open: bool) -> str:
    """Returns unsigned decimals that are at most, or less than, a nonzero one."""
    whole, fraction = _digits_of(magnitude)
    forms = []
    if int(whole):
        widths = range(1, len(whole))
        forms += [("0" if width == 1 else rf"[1-9]\d{{{width - 1}}}") + _FRACTION_OR_NONE for width in widths]
        forms += [rf"[1-9]{_FRACTION_OR_NONE}"] if len(whole) > 1 else []
        low = "0" if len(whole) == 1 else "1" + "0" * (len(whole) - 1)
        if int(low) < int(whole):
            forms.append(between(low, str(int(whole) - 1)) + _FRACTION_OR_NONE)
    less = [rf"{fraction[:at]}[0-{int(digit) - 1}]\d*" for at, digit in enumerate(fraction) if digit != "0"]
    less += [fraction[:at] for at in range(1, len(fraction))]
    if not is_open:
        less.append(f"{fraction}0*" if fraction else "0+")
    if less:
        forms.append(rf"{whole}(?:\.(?:{'|'.join(less)}))?" if fraction or not is_open else rf"{whole}")
    return "|".join(forms) if forms else NO_TEXT


# Patterns of fields.

_SHORTHANDS = {
    "s": r"[\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]",
    "S": r"[^\s\u0085]",
    "D": r"\P{Nd}",
    "W": r"[^\p{L}\p{M}\p{N}\p{Pc}\u200c\u200d]",
}
"""Shorthands as explicit classes with one meaning in ECMA-262 and in Rust, whose shorthands are Unicode's."""


def in_both_dialects(pattern: str) -> str:
    r"""Returns an ECMA-262 pattern for texts that a field's pattern matches both as ECMA-262 and in Rust (Pydantic).

    >>> in_both_dialects(r"^(?P<code>\D)[\s.]$")
    '^(?<code>\\P{Nd})[\\s.]$'
    """
    result, index, in_class = [], 0, False
    while index < len(pattern):
        piece = pattern[index : index + (2 if pattern[index] == "\\" else 1)]
        index += len(piece)
        if in_class:
            in_class = piece != "]"
        elif piece == "[":
            in_class = True
        elif piece[0] == "\\":
            piece = _SHORTHANDS.get(piece[1:], piece)
        elif piece == "(" and pattern.startswith("?P<", index):
            piece, index = "(?<", index + 3
        result.append(piece)
    return "".join(result)
