"""The parts of a grammar text that a parser for Lark does not know, and where each of them ends.

These are JSON after ``%json``, ``%regex`` and ``%llguidance``, grammars after ``%lark``, and special tokens. They are
looked for outside strings, patterns and comments.
"""

from __future__ import annotations

import json
import re

from constrain.lark.reading.places import error_at
from constrain.work import MAX_NESTING

MAX_NESTED_GRAMMARS = 1_000
"""Grammars after ``%lark`` in one Lark grammar; each takes about a millisecond. Beyond: GrammarError."""

BEYOND_LARK = re.compile(
    r"""
    "(?:\\[^\n]|[^"\\\n])*(?:"|\\?(?=\n)|\\?\Z)  # a string; one without its end is read up to the end of the line
    | /(?!/)(?:\\.|[^/\\])*(?:/|\\?\Z)  # a pattern; one without its end is all that is left
    | //[^\n]* | \#[^\n]*
    | (?P<directive>%(?!(?:ignore|import|declare|override|extend|if)\b)[a-z]*) | (?P<special><[^\s<>"]+>)[ \t]*
    | (?P<brace>[{}])
    """,
    re.VERBOSE | re.DOTALL,
)
"""What Lark's parser does not know, and what may hide it. There is one way to read each text, so the time is linear."""

_BEFORE_BRACE = {
    "%json": "a JSON Schema",
    "%regex": "a JSON object",
    "%lark": "a grammar",
    "%llguidance": "a JSON object with options",
}
_BLANKS = re.compile(r"\s*")


def inside_braces(text: str, directive: str, at: int, after: int) -> tuple[int, int]:
    """Returns where the braces after a directive open, and where the text behind them begins.

    ``after``: where the text behind the directive begins. Raises GrammarError.
    """
    if directive not in _BEFORE_BRACE:
        known = ", ".join(sorted(("%ignore", "%import", "%if", *_BEFORE_BRACE)))
        raise error_at(text, at, f"{directive} is unknown: there are {known}")
    brace = _skip_blanks(text, after)
    if text[brace : brace + 1] != "{":
        raise error_at(text, at, f"{directive} is followed by {_BEFORE_BRACE[directive]} in braces")
    return brace, _grammar_end(text, brace) if directive == "%lark" else _json_end(text, at, brace)


def _json_end(text: str, at: int, brace: int) -> int:
    try:
        return json.JSONDecoder().raw_decode(text, brace)[1]
    except json.JSONDecodeError as error:
        raise error_at(text, error.pos, f"not JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise error_at(text, at, f"this JSON cannot be read: {error}") from error


def _grammar_end(text: str, brace: int) -> int:
    """Returns the place behind the brace that closes another one, of which the grammar itself may have pairs."""
    opened, done = [brace], brace + 1
    grammars = [brace]  # those of the open braces that stand behind %lark
    after_directive = -1
    while opened:
        found = BEYOND_LARK.search(text, done)
        if found is None:
            raise error_at(text, opened[-1], "there is no } that closes this {")
        done = found.end()
        if found["brace"] == "}":
            if opened.pop() == grammars[-1]:
                grammars.pop()
        elif found["brace"] == "{":
            opened.append(found.start())
            if found.start() == after_directive:
                grammars.append(found.start())
        elif found["directive"] == "%lark":
            check_nesting(text, found.start(), len(grammars))
            after_directive = _skip_blanks(text, done)
        elif found["directive"]:
            done = inside_braces(text, found["directive"], found.start(), done)[1]
    return done


def check_nesting(text: str, at: int, levels: int) -> None:
    """Raises GrammarError if a grammar has too many grammars around it."""
    if levels >= MAX_NESTING:
        message = f"grammars are nested more than {MAX_NESTING} deep (MAX_NESTING)"
        raise error_at(text, at, message)


def _skip_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    assert blanks
    return blanks.end()
