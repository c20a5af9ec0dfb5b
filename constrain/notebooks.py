"""What people see of results: tables and texts in HTML for notebooks, and one short line for ``repr``."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHOWN_CHARACTERS = 120
"""Characters that ``repr`` of a result shows of each of its values; longer ones are cut."""

LINE_CHARACTERS = 200
"""Characters of ``repr`` of a result; longer ones are cut."""


def cut(value: object, most: int = SHOWN_CHARACTERS) -> str:
    """Returns the ``repr`` of a value, without its end if it is long.

    >>> cut("a long text", 8)
    "'a long ..."
    """
    return shorten(repr(value), most)


def shorten(text: str, most: int = LINE_CHARACTERS) -> str:
    """Returns a text, without its end if it is long."""
    return text if len(text) <= most else f"{text[:most]}..."


def one_line(shown: Any) -> str:
    """Returns the fields of a dataclass that are not their defaults, without the ends of long ones.

    Classes whose values may be long have it as ``__repr__``.
    """
    values = ((each.name, getattr(shown, each.name), each.default) for each in fields(shown) if each.repr)
    given = ", ".join(f"{name}={cut(value)}" for name, value, default in values if value != default)
    return shorten(f"{type(shown).__name__}({given})")


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Returns an HTML table; texts stand in it as they are, other values by their ``repr``.

    >>> table([("<b>", 1)])
    '<table><tr><td style="text-align:left">&lt;b&gt;</td><td style="text-align:left">1</td></tr></table>'
    """
    lines = [_row("th", head)] if head else []
    return f"<table>{''.join([*lines, *(_row('td', row) for row in rows)])}</table>"


def preformatted(text: str) -> str:
    """Returns a text as HTML that keeps its lines."""
    return f"<pre>{_escaped(text)}</pre>"


def _row(kind: str, cells: Iterable[object]) -> str:
    written = (f'<{kind} style="text-align:left">{_escaped(cell)}</{kind}>' for cell in cells)
    return f"<tr>{''.join(written)}</tr>"


def _escaped(value: object) -> str:
    from html import escape

    return escape(value if isinstance(value, str) else repr(value))
