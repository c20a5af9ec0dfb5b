"""Docstrings in Google's, NumPy's or Sphinx's style: descriptions of a function and of its parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docstring_parser import Docstring

_MORE_GOOGLE_SECTIONS = ("Keyword Args", "Keyword Arguments", "Other Parameters")
"""Sections of parameters in Google's style that docstring_parser does not know (Sphinx's napoleon does)."""


@dataclass(frozen=True, slots=True)
class Documentation:
    """Descriptions in a docstring: of the function, without the sections; of ``parameters``, by name without stars."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_docstring(text: str) -> Documentation:
    """Reads a cleaned docstring in the style in which it describes most parameters.

    >>> read_docstring('''Adds.
    ...
    ... Args:
    ...     first: a number
    ...     *others: more of them
    ... ''')
    Documentation(description='Adds.', parameters={'first': 'a number', 'others': 'more of them'})
    """
    parsed = max(_parse_all_styles(text), key=lambda one: (len(one.params), len(one.meta)), default=None)
    if parsed is None:
        return Documentation(text.strip())
    parameters: dict[str, str] = {}
    for parameter in parsed.params:
        for name in parameter.arg_name.split(","):  # NumPy's "x, y : int"
            if parameter.description:
                parameters.setdefault(name.strip().lstrip("*\\"), parameter.description.strip())
    return Documentation((parsed.description or "").strip(), parameters)


def _parse_all_styles(text: str) -> list[Docstring]:
    """Parses a docstring in every style that can read it."""
    from docstring_parser import ParseError, google, numpydoc, rest

    more = [google.Section(title, "param", google.SectionType.MULTIPLE) for title in _MORE_GOOGLE_SECTIONS]
    parsers = (
        google.GoogleParser([*google.DEFAULT_SECTIONS, *more]).parse,
        numpydoc.NumpydocParser().parse,
        rest.parse,
    )
    found = []
    for parse in parsers:
        try:
            found.append(
                parse(f"\n{text}")
            )  # a leading line feed keeps the first line's place among the others' indentation
        except ParseError:  # noqa: PERF203 - it is in another style
            continue
    return found
