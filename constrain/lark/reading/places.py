"""Places in grammar texts, and errors that point at them."""

from __future__ import annotations

from typing import TypeVar

from constrain.errors import ConstrainError, GrammarError

_Error = TypeVar("_Error", bound=ConstrainError)


_EXCERPT_WIDTH = 80
"""Characters of a line that an error shows; longer lines are cut around the place."""


def line_and_column(text: str, at: int) -> tuple[int, int]:
    """Returns line and column of a place (an index into the text), both from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def place(text: str, at: int) -> str:
    """Returns the place in words."""
    return "line {}, column {}".format(*line_and_column(text, at))


def excerpt(text: str, at: int) -> str:
    """Returns the line around a place, cut to width, with a mark below the place."""
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[begin : len(text) if end < 0 else end].rstrip("\r")
    line = line.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    column = at - begin
    cut = max(0, column - _EXCERPT_WIDTH // 2)
    before = "".join("\t" if char == "\t" else " " for char in line[cut:column])
    return f"    {line[cut : cut + _EXCERPT_WIDTH]}\n    {before}^"


def placed(kind: type[_Error], text: str, at: int, message: str) -> _Error:
    """Returns an error of this class: a message about a place in the text."""
    line, column = line_and_column(text, at)
    return kind(f"{message}\n{excerpt(text, at)}", line=line, column=column)


def error_at(text: str, at: int, message: str) -> GrammarError:
    """Returns a ``GrammarError`` about a place in the text."""
    return placed(GrammarError, text, at, message)
