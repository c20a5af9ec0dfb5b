"""Texts that a parser of the ``lark`` package cannot read, as errors in plain words with line and column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrain.lark.reading.places import error_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lark import Lark


@dataclass(frozen=True)
class Words:
    """The plain words of messages about one kind of text.

    Attributes:
        expected: names of tokens that a message may list as expected.
        unclosed: messages for characters that no token begins with, by character.
        ends: tokens that stand for the end of a unit.
        end: the name of that end.
        remedies: advice for tokens that are often written in the wrong place, by token.
    """

    expected: Mapping[str, str]
    unclosed: Mapping[str, str]
    ends: tuple[str, ...] = ("$END",)
    end: str = "the end of the text"
    remedies: Mapping[str, str] = field(default_factory=dict)


def parse(
    parser: Lark,
    parsed: str,
    *,
    text: str,
    words: Words,
    shown: Callable[[str], str] = repr,
    begin: int = 0,
    end: int | None = None,
) -> Any:
    """Returns the tree of a text. Raises GrammarError with the place and what was expected there.

    ``text``: the text that errors show; ``parsed`` is its part from ``begin`` to ``end``, up to replacements of equal
    length. ``shown``: how a message shows an unexpected token.
    """
    from lark import UnexpectedCharacters, UnexpectedToken

    try:
        return parser.parse(parsed)
    except UnexpectedCharacters as error:
        at = begin + (error.pos_in_stream or 0)
        raise error_at(text, at, words.unclosed.get(text[at], f"unexpected {text[at]!r}")) from error
    except UnexpectedToken as error:
        token = error.token
        is_behind = token.type == "$END" or token.start_pos is None
        last = len(text) if end is None else end
        at = last if is_behind else min(begin + (token.start_pos or 0), last)
        names = dict.fromkeys(words.expected[name] for name in sorted(error.accepts) if name in words.expected)
        found = words.end if token.type in words.ends else shown(str(token))
        expected = f"; expected {', '.join(names)}" if names else ""
        advice = f"; {words.remedies[token]}" if token in words.remedies else ""
        raise error_at(text, at, f"unexpected {found}{expected}{advice}") from error


def first_place(tree: Any) -> int:
    """Returns the place of the first word of a tree; the beginning of the text for an empty tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            return int(node.start_pos)  # type: ignore[attr-defined]
        waiting.extend(child for child in reversed(node.children) if child is not None)
    return 0
