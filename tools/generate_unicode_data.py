"""Writes constrain/regex/unicode/data.json; needs CPython 3.11+ and the ``regex`` package, whose tables are the source.

Run from the root of the repository: ``python -m tools.generate_unicode_data``.
"""

from __future__ import annotations

import _sre  # type: ignore[import-not-found]
import json
from collections import defaultdict
from pathlib import Path
from re import _casefix  # type: ignore[attr-defined]
from typing import TYPE_CHECKING

import regex
from regex import _regex, _regex_core

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ALL = "".join(map(chr, range(0x110000)))
_TARGET = Path(__file__).parents[1] / "constrain" / "regex" / "unicode" / "data.json"

# ECMA-262, table "Binary Unicode property aliases"; the Rust regex crate knows these too.
_BINARY_PROPERTY_NAMES = (
    "AHex Alpha Bidi_C Bidi_M CI Cased CWCF CWCM CWL CWT CWU Dash DI Dep Dia Emoji EComp EMod EBase EPres ExtPict "
    "Ext Gr_Base Gr_Ext Hex IDSB IDST IDC IDS Ideo Join_C LOE Lower Math NChar Pat_Syn Pat_WS QMark Radical RI "
    "STerm SD Term UIdeo Upper VS White_Space XIDC XIDS"
)


def _ranges(points: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = -2
    for point in points:
        if point != last + 1:
            if first >= 0:
                yield first, last
            first = point
        last = point
    if first >= 0:
        yield first, last


def _base36(number: int) -> str:
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def _encode(ranges: Iterable[tuple[int, int]]) -> str:
    numbers, end = [], 0
    for first, last in ranges:
        numbers += [_base36(first - end), _base36(last - first)]
        end = last + 1
    return " ".join(numbers)


def _property(expression: str) -> str:
    return _encode((match.start(), match.end() - 1) for match in regex.finditer(rf"{expression}+", _ALL))


def _loose(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(" ", "").upper()


def _values(name: str) -> dict[int, list[str]]:
    """The values of an enumerated property, each with its names."""
    names: dict[int, list[str]] = defaultdict(list)
    for alias, value in _regex_core.PROPERTIES[name][1].items():
        names[value].append(alias)
    return names


def _aliases(prefix: str) -> list[str]:
    """All names of a binary property."""
    wanted = _regex_core.PROPERTIES[_loose(prefix)][0]
    return [alias for alias, (number, _) in _regex_core.PROPERTIES.items() if number == wanted]


def _simple_orbits() -> list[str]:
    """Code points that simple case folding makes equal (CaseFolding.txt, status C and S: no Turkic pairs)."""
    turkic = {0x130, 0x131}
    orbits = set()
    for point in range(0x110000):
        cases = {case for case in _regex.get_all_cases(regex.IGNORECASE | regex.UNICODE, point) if case < 0x110000}
        cases -= turkic
        if point not in turkic and len(cases) > 1:
            orbits.add("".join(map(chr, sorted(cases))))
    return sorted(orbits)


def _python_orbits() -> list[str]:
    """Code points that ``re.IGNORECASE`` makes equal."""
    orbits: dict[int, set[int]] = defaultdict(set)
    for point in range(0x110000):
        lower = _sre.unicode_tolower(point)
        orbits[lower].update((lower, point))
    for lower, others in _casefix._EXTRA_CASES.items():
        merged = orbits[lower].union(*(orbits[other] for other in others))
        for member in (lower, *others):
            orbits[member] = merged
    return sorted({"".join(map(chr, sorted(members))) for members in orbits.values() if len(members) > 1})


def _aliases_text(aliases: dict[str, str]) -> str:
    return " ".join(f"{alias}={target}" for alias, target in aliases.items())


def main() -> None:
    categories: dict[str, str] = {}
    category_aliases: dict[str, str] = {}
    for names in _values("GC").values():
        short = min((name for name in names if "&" not in name), key=len)
        if short == "ASSIGNED":
            continue
        if len(short) == 2 and short != "LC":
            categories[short] = _property(rf"\p{{gc={short}}}")
        category_aliases |= {name: short for name in names if "&" not in name and name != short}
    scripts: dict[str, str] = {}
    extensions: dict[str, str] = {}
    script_aliases: dict[str, str] = {}
    for names in _values("SCRIPT").values():
        long = max(names, key=len)
        scripts[long] = _property(rf"\p{{script={long}}}")
        extended = _property(rf"\p{{scx={long}}}")
        if extended != scripts[long]:
            extensions[long] = extended
        script_aliases |= {name: long for name in names if name != long}
    binary: dict[str, str] = {}
    binary_aliases: dict[str, str] = {}
    for name in _BINARY_PROPERTY_NAMES.split():
        names = _aliases(name)
        long = max(names, key=len)
        binary[long] = _property(rf"\p{{{name}}}")
        binary_aliases |= {alias: long for alias in names if alias != long}
    python_word = _encode(_ranges(point for point in range(0x110000) if chr(point).isalnum() or chr(point) == "_"))
    python_space = _encode(_ranges(point for point in range(0x110000) if chr(point).isspace()))
    data = {
        "CATEGORIES": categories,
        "CATEGORY_ALIASES": _aliases_text(category_aliases),
        "SCRIPTS": scripts,
        "SCRIPT_EXTENSIONS": extensions,
        "SCRIPT_ALIASES": _aliases_text(script_aliases),
        "BINARY": binary,
        "BINARY_ALIASES": _aliases_text(binary_aliases),
        "PYTHON_WORD": python_word,
        "PYTHON_SPACE": python_space,
        "CASE_ORBITS": " ".join(_simple_orbits()),
        "PYTHON_CASE_ORBITS": " ".join(_python_orbits()),
    }
    _TARGET.write_text(json.dumps(data, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
