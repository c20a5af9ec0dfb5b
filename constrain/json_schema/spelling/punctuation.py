"""Structural lexemes of JSON, with the white space around them, for each white space policy.

White space belongs to the structural lexemes: ``{`` includes the space after it, ``,`` the space on both sides, ``}``
the space before it. So every lexeme ends by its own expression alone.

"flexible" is the style of ``json.dumps`` and pretty printers: after ``,`` and inside brackets nothing, one space, or a
new line with up to MAX_INDENTATION spaces or tabs; after ``:`` nothing or one space; nothing before ``,`` and ``:``,
before and after the whole text. "any" is RFC 8259: any white space beside any structural character and around.
"""

from __future__ import annotations

from typing import NamedTuple

from constrain.language.grammar import Role, Terminal
from constrain.language.tree import EMPTY_TEXT, Alternation, ByteClass, Concatenation, Expression, Literal, Repetition

MAX_INDENTATION = 64
"""Spaces (or tabs) at the beginning of a line under ``whitespace="flexible"``: 16 levels of 4; more are not written."""


ROLES = {"{": Role.OPEN_LABELLED, "[": Role.OPEN_ORDERED, "}": Role.CLOSE, "]": Role.CLOSE}


class Punctuation(NamedTuple):
    """The structural lexemes of one white space policy.

    ``colon_tail`` follows a declared key within its own lexeme. ``around`` is the white space before and after the
    whole text (never empty), if it is allowed.
    """

    open_object: Terminal
    close_object: Terminal
    close_empty_object: Terminal
    open_array: Terminal
    close_array: Terminal
    close_empty_array: Terminal
    comma: Terminal
    colon: Terminal
    colon_tail: Expression
    around: Terminal | None


def _punctuation(
    *,
    inside: Expression = EMPTY_TEXT,
    before_comma: Expression = EMPTY_TEXT,
    colon_tail: Expression,
    around: Expression | None = None,
) -> Punctuation:
    def lexeme(name: str, *parts: Expression) -> Terminal:
        used = tuple(part for part in parts if part is not EMPTY_TEXT)
        return Terminal(name, used[0] if len(used) == 1 else Concatenation(used), role=ROLES.get(name, Role.NONE))

    return Punctuation(
        lexeme("{", Literal(b"{"), inside),
        lexeme("}", inside, Literal(b"}")),
        lexeme("}", Literal(b"}")),
        lexeme("[", Literal(b"["), inside),
        lexeme("]", inside, Literal(b"]")),
        lexeme("]", Literal(b"]")),
        lexeme(",", before_comma, Literal(b","), inside),
        lexeme(":", colon_tail),
        colon_tail,
        None if around is None else lexeme("white space", around),
    )


_SPACE = Repetition(Literal(b" "), 0, 1)
_INDENTATION = Alternation(
    (Repetition(Literal(b" "), 0, MAX_INDENTATION), Repetition(Literal(b"\t"), 1, MAX_INDENTATION))
)
_WHITE = ByteClass(((0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)))
_ANYTHING = Repetition(_WHITE, 0, None)

PUNCTUATION = {
    "compact": _punctuation(colon_tail=Literal(b":")),
    "flexible": _punctuation(
        inside=Alternation((_SPACE, Concatenation((Literal(b"\n"), _INDENTATION)))),
        colon_tail=Concatenation((Literal(b":"), _SPACE)),
    ),
    "any": _punctuation(
        inside=_ANYTHING,
        before_comma=_ANYTHING,
        colon_tail=Concatenation((_ANYTHING, Literal(b":"), _ANYTHING)),
        around=Repetition(_WHITE, 1, None),
    ),
}
