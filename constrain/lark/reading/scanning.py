"""The parts of a grammar text that a parser for Lark does not know, and where each of them ends.

These are JSON after ``%json``, ``%regex`` and ``%llguidance``, grammars after ``%lark``, and special tokens. They are
looked for outside strings, patterns and comments.
"""

from __future__ import annotations

import json
import re

from constrain.lark.reading.places import error_at

MAX_GRAMMAR_NESTING = 20
"""Levels of ``%lark { ... }`` inside one another in a Lark grammar; each is read once for every level around it.
Beyond: GrammarError."""

MAX_NESTED_GRAMMARS = 1_000
"""Grammars after ``%lark`` in one Lark grammar; each takes about a millisecond. Beyond: GrammarError."""

BEYOND_LARK = re.compile(
    r"""
    "(?:\\"|\\\\|[^"\n])*?" | /(?!/)(?:\\/|\\\\|[^/])*?/ | //[^\n]* | \#[^\n]*  # strings, patterns, comments
    | (?P<directive>%(?!(?:ignore|import|declare|override|extend|if)\b)[a-z]*) | [ \t]*(?P<special><[^\s<>"]+>)[ \t]*
    | (?P<brace>[{}])
    """,
    re.VERBOSE,
)
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
    blanks = _BLANKS.match(text, after)
    assert blanks
    brace = blanks.end()
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
    while opened:
        found = BEYOND_LARK.search(text, done)
        if found is None:
            raise error_at(text, opened[-1], "there is no } that closes this {")
        done = found.end()
        if found["brace"] == "}":
            opened.pop()
        elif found["brace"] == "{":
            opened.append(found.start())
        elif (directive := found["directive"]) and directive != "%lark":
            done = inside_braces(text, directive, found.start(), done)[1]
    return done
