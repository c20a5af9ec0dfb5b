"""What a docstring says of a function and of its parameters, in Google's, NumPy's or Sphinx's style."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docstring_parser import Docstring

_MORE_GOOGLE_SECTIONS = ("Keyword Args", "Keyword Arguments", "Other Parameters")
"""Sections of parameters in Google's style (Sphinx's napoleon knows them) that the parser does not know of itself."""


@dataclass(frozen=True, slots=True)
class Documentation:
    """``description``: of the function, without the sections; ``parameters``: descriptions by name, stars left out."""

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
    parsed = max(_in_all_styles(text), key=lambda one: (len(one.params), len(one.meta)), default=None)
    if parsed is None:
        return Documentation(text.strip())
    parameters: dict[str, str] = {}
    for parameter in parsed.params:
        for name in parameter.arg_name.split(","):  # NumPy's "x, y : int"
            if parameter.description:
                parameters.setdefault(name.strip().lstrip("*\\"), parameter.description.strip())
    return Documentation((parsed.description or "").strip(), parameters)


def _in_all_styles(text: str) -> list[Docstring]:
    """The docstring in every style that it can be read in."""
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
            found.append(parse(f"\n{text}"))  # the first line would lose its place among the others' indentation
        except ParseError:  # noqa: PERF203 - it is in another style
            continue
    return found
