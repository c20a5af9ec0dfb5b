r"""The format ``regex``: patterns that ECMA-262, with and without the flag ``u``, and Python's ``re`` can read.

The language of all patterns is not regular: groups nest, and a backreference needs its group. This regular part has:

- characters (no control characters), ``.``, classes, ``\d\D\w\W\s\S``, ``\f\n\r\t\v``, ``\xHH``, ``\uHHHH`` and
  escaped syntax characters;
- ``^``, ``$``, ``\b``, ``\B``, alternatives, groups with and without a capture, lookaheads without groups;
- the quantifiers ``*``, ``+``, ``?``, ``{m}``, ``{m,}`` and ``{m,n}``, greedy and lazy, with counts up to 999.

Each comparison multiplies the states of the automaton, which must stay few: a schema with ``maxLength`` counts
characters in each of them. Hence the limits on nesting, on ranges in classes and on ``{m,n}``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from constrain.regex.builders import either, many, optional, sequence

if TYPE_CHECKING:
    from constrain.language.tree import Expression

GROUP_NESTING = 4
"""Groups inside one another."""

GROUPS_AROUND_LOOKAHEAD = 1
"""Groups around a lookahead."""

_CONTROLS = r"\x00-\x1f"
_SYNTAX = r"\^$\\.*+?()\[\]{}|"
_ESCAPE = rf"\\(?:[dDwWsSfnrtv/{_SYNTAX}]|x[0-9A-Fa-f]{{2}}|u(?:[0-9A-CEFa-cef][0-9A-Fa-f]|[Dd][0-7])[0-9A-Fa-f]{{2}})"


@cache
def pattern() -> Expression:
    """Returns the patterns that are written; all callers share the expression."""
    character = either(rf"[^{_SYNTAX}{_CONTROLS}]|\.", _ESCAPE, _class())
    quantifier = sequence(either("[*+?]", sequence(r"\{", _counts(), r"\}")), r"\??")
    plain = either(sequence(character, optional(quantifier)), r"[\^$|]|\\[bB]")
    lookahead = sequence(r"\(\?[=!]", many(plain), r"\)")  # with the flag u, no quantifier follows
    inner = plain
    for groups_around in reversed(range(GROUP_NESTING)):
        group = sequence(r"\((?:\?:)?", many(inner), r"\)", optional(quantifier))
        inner = either(plain, group, *([lookahead] if groups_around <= GROUPS_AROUND_LOOKAHEAD else []))
    return many(inner)


def _class() -> Expression:
    """Returns a class of one member or more. A ``-`` that makes no range is the first or the last member.

    A range of letters begins with the first letter or ends with the last one.
    """
    ranges = ("a-[a-z]", "[a-z]-z", "A-[A-Z]", "[A-Z]-Z", *(f"{first}-[{first}-9]" for first in range(10)), "[ !]-~")
    member = either(rf"[^\[\\\]^\-{_CONTROLS}]|\\[b\-]", _ESCAPE, *ranges)
    return sequence(r"\[\^?-?", member, many(either(member, r"\^")), r"-?\]")


def _counts() -> Expression:
    """Returns ``m``, ``m,`` and ``m,n`` without leading zeros.

    With two counts of two digits, the tens of the first are fewer, or its ones are 0.
    """
    pairs = [rf"{m},(?:[{m}-9]|[1-9]\d{{1,2}})" for m in range(10)]
    for tens in range(1, 10):
        greater = f"[{tens + 1}-9]\\d|" if tens < 9 else ""
        pairs.append(rf"{tens}\d,(?:{greater}[1-9]\d\d)|{tens}0,{tens}\d")
    return either(r"(?:0|[1-9]\d{0,2}),?", *pairs)
