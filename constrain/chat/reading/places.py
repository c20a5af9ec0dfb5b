"""Where the values of an answer stand in its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from constrain.partial.scanner import Scanner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.partial.scanner import Path


@dataclass(frozen=True, slots=True)
class Located:
    """A text in an answer: the content, or the arguments of a call.

    Attributes:
        path: path of the text in the value of the answer.
        text: the text.
        begin: position of its first byte in the bytes of all tokens.
        is_json: whether the text is JSON, and its parts are wanted.
        is_whole: whether it is all of the answer.
    """

    path: Path
    text: str
    begin: int
    is_json: bool
    is_whole: bool = False


class Span(NamedTuple):
    """Where a part of a text begins and ends, in characters."""

    begin: int
    end: int


def spans(part: Located) -> list[tuple[Path, Span]]:
    """Returns the parts of a text with their spans, in the order in which they begin."""
    if not part.is_json:
        return [((), Span(0, len(part.text)))]
    scanner = Scanner()
    found = [
        (each.path, Span(each.begin, each.end))
        for each in (*scanner.feed(part.text), *scanner.finish())
        if each.kind == "complete"
    ]
    return sorted(found, key=lambda each: (each[1].begin, -each[1].end))


def byte_positions(part: Located) -> Sequence[int]:
    """Returns the position of each character of a text, and of its end, in the bytes of the answer."""
    if part.text.isascii():
        return range(part.begin, part.begin + len(part.text) + 1)
    return list(accumulate((len(character.encode()) for character in part.text), initial=part.begin))


def paths_at(parts: Sequence[Located], positions: Sequence[int]) -> tuple[Path, ...]:
    """Returns the path of the innermost value at each position in the bytes of an answer, each path once."""
    found: dict[Path, None] = {}
    for position in positions:
        for part in parts:
            at = byte_positions(part)
            inside = [path for path, span in spans(part) if at[span.begin] <= position < at[span.end]]
            found |= dict.fromkeys((*part.path, *path) for path in inside[-1:])
    return tuple(found)
