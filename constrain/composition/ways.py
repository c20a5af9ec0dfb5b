"""Ways through a composition, from one non-regular part to the next (Glushkov 1961).

A non-regular part, at one place of a way, is a *position*. The regular text between two positions, before the first one
and after the last one is always one expression, in all nestings of the parts:

    sequence(choice(A, "x"), Regex("y*"), repeat(B))        A, B: positions

        begin --""-->  A          A --"y*"--> B          B --""--> B          B --""-->   end
        begin --"xy*"--> B        A --"y*"--> end        begin --"xy*"--> end

So regular parts are concatenated as languages, and the longest match decides only at positions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from constrain.composition.texts import NO_TEXT, Text, Texts
from constrain.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.composition.texts import Text

MAX_WAYS = 1_000
"""Possible transitions between the schemas and grammars of a composition; a counted repetition of one is written out.
Beyond: LimitError."""


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways through a part of a composition, by the positions that they meet.

    Attributes:
        regular: the texts of the ways that meet no position; ``None`` if there are no such ways.
        first: the text before each position that may come first.
        last: the text behind each position that may come last.
        follow: the text between each two positions that may follow one another.
    """

    regular: Text | None
    first: dict[int, Text] = field(default_factory=dict)
    last: dict[int, Text] = field(default_factory=dict)
    follow: dict[tuple[int, int], Text] = field(default_factory=dict)


def at_position(position: int) -> Ways:
    """Returns the ways through one position, without text around it."""
    return Ways(None, {position: NO_TEXT}, {position: NO_TEXT})


class Combined:
    """Combines the ways of parts, of which no two share a position. Raises LimitError."""

    def __init__(self) -> None:
        self.texts = Texts()

    def sequence(self, before: Ways, after: Ways) -> Ways:
        """Returns the ways through ``before`` followed by ``after``."""
        join = self.texts.joined
        first, last = dict(before.first), dict(after.last)
        if before.regular is not None:
            first |= {position: join(before.regular, text) for position, text in after.first.items()}
        if after.regular is not None:
            last |= {position: join(text, after.regular) for position, text in before.last.items()}
        follow = before.follow | after.follow
        _check(len(follow) + len(before.last) * len(after.first))
        for one, behind in before.last.items():
            for two, in_front in after.first.items():
                follow[one, two] = join(behind, in_front)
        if before.regular is None or after.regular is None:
            return Ways(None, first, last, follow)
        return Ways(join(before.regular, after.regular), first, last, follow)

    def choice(self, parts: list[Ways]) -> Ways:
        """Returns the ways through any one of the parts."""
        regular = [part.regular for part in parts if part.regular is not None]
        ways = Ways(self.texts.either(*regular) if regular else None)
        for part in parts:
            ways.first.update(part.first)
            ways.last.update(part.last)
            ways.follow.update(part.follow)
        _check(len(ways.follow))
        return ways

    def repeat(self, part: Callable[[], Ways], minimum: int, maximum: int | None) -> Ways:
        """Returns the ways through a repeated part; each call of ``part`` makes its ways with new positions."""
        if maximum == 0:
            return Ways(NO_TEXT)
        last = part()
        if not last.first:
            assert last.regular is not None
            return Ways(self.texts.repeated(last.regular, minimum, maximum))
        if maximum is None:
            before = max(minimum - 1, 0)
            ways = self._loop(last, min(minimum, 1))
        else:
            before = maximum - 1
            ways = last if minimum == maximum else self.choice([Ways(NO_TEXT), last])
        for index in reversed(range(before)):
            ways = self.sequence(part(), ways)
            if index >= minimum:
                ways = self.choice([Ways(NO_TEXT), ways])
        return ways

    def _loop(self, part: Ways, minimum: int) -> Ways:
        """Returns the ways through a part that is repeated at least ``minimum`` (0 or 1) times."""
        join = self.texts.joined
        between = NO_TEXT if part.regular is None else self.texts.repeated(part.regular, 0, None)
        first = {position: join(between, text) for position, text in part.first.items()}
        last = {position: join(text, between) for position, text in part.last.items()}
        follow = dict(part.follow)
        _check(len(follow) + len(part.last) * len(first))
        for one, behind in part.last.items():
            for two, in_front in first.items():
                again = join(behind, in_front)
                follow[one, two] = self.texts.either(follow[one, two], again) if (one, two) in follow else again
        regular: Text | None = between
        if minimum:
            regular = None if part.regular is None else self.texts.repeated(part.regular, 1, None)
        return Ways(regular, first, last, follow)


def _check(ways: int) -> None:
    if ways > MAX_WAYS:
        raise LimitError(
            f"this composition gives more than {MAX_WAYS} possible transitions between its schemas and grammars "
            "(MAX_WAYS); repeat without max, or move a repetition or choice into one schema or grammar"
        )
