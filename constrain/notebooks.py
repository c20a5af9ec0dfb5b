"""What notebooks show of results: tables and texts in HTML; and values cut to one line for ``repr``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHOWN_CHARACTERS = 300
"""Characters of a value that ``repr`` of a result shows; longer ones are cut."""


def cut(value: object, most: int = SHOWN_CHARACTERS) -> str:
    """Returns the ``repr`` of a value, without its end if it is long.

    >>> cut("a long text", 8)
    "'a long ..."
    """
    shown = repr(value)
    return shown if len(shown) <= most else f"{shown[:most]}..."


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
