"""Grammar texts, and places in them that errors point at."""

from __future__ import annotations

from dataclasses import dataclass, field

from constrain._errors import GrammarError

_EXCERPT_WIDTH = 80
"""Characters of a line that an error shows."""


@dataclass(frozen=True, slots=True)
class Lark:
    """A language given as a Lark grammar.

    ``text``: the grammar; ``start``: the rule that a whole text must match.

    >>> Lark('start: "yes" | "no"').start
    'start'
    """

    text: str
    start: str = field(default="start", kw_only=True)


def line_and_column(text: str, at: int) -> tuple[int, int]:
    """The line and column of a place (an index into the text), both from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def place(text: str, at: int) -> str:
    """The place in words."""
    return "line {}, column {}".format(*line_and_column(text, at))


def excerpt(text: str, at: int) -> str:
    """The line around a place, as far as it fits, and below it a mark at the place."""
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[begin : len(text) if end < 0 else end].rstrip("\r")
    column = at - begin
    cut = max(0, column - _EXCERPT_WIDTH // 2)
    before = "".join("\t" if char == "\t" else " " for char in line[cut:column])
    return f"    {line[cut : cut + _EXCERPT_WIDTH]}\n    {before}^"


def error_at(text: str, at: int, message: str) -> GrammarError:
    """What is wrong at a place in the text."""
    line, column = line_and_column(text, at)
    return GrammarError(f"{message}\n{excerpt(text, at)}", line=line, column=column)
