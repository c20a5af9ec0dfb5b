r"""Exact elimination of lookaround (lookahead and lookbehind), by intersections and complements.

A pattern with lookaround is kept as alternatives, each a sequence of plain expressions, assertions and loops. The texts
of a sequence are computed from both ends. Left of some place there is only lookbehind: each asserts a property of all
text read so far. Right of it there is only lookahead: each asserts a property of all text that follows.

    left                                  right
    (all so far) & any text P             P any text & (all that follows)       negative ones with a complement

An assertion that cannot look past the adjacent plain expression becomes an intersection with it, which also takes it
out of a loop. One at the beginning or end of the text asserts a property of the whole text. A loop whose rounds start
at known places means that no round starts where its assertions fail. The remaining mixtures (a lookbehind that reaches
back past a lookahead, other loops) are refused.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from constrain.language.tree import (
    ANY_CHAR,
    ANY_JSON_CHAR,
    EMPTY_TEXT,
    NOTHING,
    Alternation,
    CharClass,
    Complement,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Repetition,
    nullable,
)
from constrain.regex.anchors import Anchored, Fragment, repetition, sequence, union

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MAX_LOOKAROUND_ALTERNATIVES = 256
"""Sequences of one pattern with lookaround, after its alternatives are multiplied out. Beyond: PatternError."""

ROUNDS = 16
"""Most rounds of a loop with lookaround, which are written out one by one."""

_REFUSAL = "this lookaround cannot be expressed exactly: "


class Look(NamedTuple):
    """``(?=...)`` and the three other kinds; ``at``: its place in the pattern."""

    behind: bool
    negative: bool
    inside: Looking
    at: int


class Loop(NamedTuple):
    """A repetition of a part with lookaround."""

    body: Looking
    minimum: int
    maximum: int | None
    at: int


class Edge(NamedTuple):
    """``^`` or ``$`` in a pattern with lookaround."""

    start: bool
    at: int


Item = Expression | Look | Loop | Edge


class Looking(NamedTuple):
    """Any one of several sequences."""

    alternatives: tuple[tuple[Item, ...], ...]


def looking(part: Fragment | Looking, at: int) -> Looking:
    """Returns any result of the parser, as alternatives."""
    if isinstance(part, Looking):
        return part
    if not isinstance(part, Anchored):
        return Looking(((part,),))
    start, end = Edge(True, at), Edge(False, at)  # noqa: FBT003
    found: list[tuple[Item, ...]] = []
    if part.plain is not None:
        found.append((part.plain,))
    if part.start is not None:
        found.append((start, part.start))
    if part.end is not None:
        found.append((part.end, end))
    if part.both is not None:
        found.append((start, part.both, end))
    return Looking(tuple(found))


class Elimination:
    """Builds the parts of one pattern that has lookaround, and removes the lookaround.

    Keeps the pattern's alphabet (``char``) and its function that raises errors (``fail``).
    """

    def __init__(self, fail: Callable[[str, int], NoReturn], *, json: bool) -> None:
        self.fail = fail
        self.json = json
        self.char = ANY_JSON_CHAR if json else ANY_CHAR
        self.anything = Repetition(self.char, 0, None)
        self._lengths: dict[int, tuple[Expression, tuple[int, int | None]]] = {}  # by the expression's id

    # While the pattern is read.

    def look(self, opening: str, part: Fragment | Looking, at: int) -> Looking:
        """Returns the assertion whose opening after ``(?`` is ``=``, ``!``, ``<=`` or ``<!``."""
        return Looking(((Look(opening[0] == "<", opening[-1] == "!", looking(part, at), at),),))

    def boundary(self, word: Expression, at: int, *, inside: bool) -> Looking:
        r"""Returns ``\b``, or (``inside``) ``\B``."""
        words = Looking(((word,),))
        found = []
        for outside_before in (False, True):
            before = Look(behind=True, negative=outside_before, inside=words, at=at)
            after = Look(behind=False, negative=outside_before == inside, inside=words, at=at)
            found.append((before, after))
        return Looking(tuple(found))

    def line_edge(self, other: Expression, at: int, *, start: bool) -> Looking:
        """Returns ``^`` or ``$`` at every line; ``other``: the characters that end no line."""
        return Looking(((Look(behind=start, negative=True, inside=Looking(((other,),)), at=at),),))

    def end_or_last_line_feed(self, line_feed: Expression, at: int) -> Looking:
        """Returns Python's ``$``: at the end, or before a line feed that is the last character."""
        end = Edge(start=False, at=at)
        ahead = Look(behind=False, negative=False, inside=Looking(((line_feed, end),)), at=at)
        return Looking(((end,), (ahead,)))

    def concatenate(self, parts: Sequence[Fragment | Looking], at: int) -> Looking:
        """Returns one part after the other."""
        choices = [looking(part, at).alternatives for part in parts]
        size = 1
        for choice in choices:
            size *= len(choice)
            self._check(size, at)
        return Looking(tuple(tuple(item for items in chosen for item in items) for chosen in product(*choices)))

    def alternate(self, parts: Sequence[Fragment | Looking], at: int) -> Looking:
        """Returns any one of the parts."""
        found = tuple(items for part in parts for items in looking(part, at).alternatives)
        self._check(len(found), at)
        return Looking(found)

    def concerns(self, parts: Iterable[str | Fragment | Looking]) -> bool:
        """Returns whether any of the parts has lookaround."""
        return any(isinstance(part, Looking) for part in parts)

    def repeat(self, part: str | Fragment | Looking, minimum: int, maximum: int | None, at: int) -> Fragment | Looking:
        """Returns the part, ``minimum`` to ``maximum`` times."""
        assert isinstance(part, Looking)
        if maximum == 0:
            return EMPTY_TEXT
        if all(isinstance(item, Look | Edge) for items in part.alternatives for item in items):
            return part if minimum else EMPTY_TEXT  # reads nothing: once has the effect of many times
        plain = self._plain(part)
        if plain is not None:
            return repetition(plain, minimum, maximum)
        return Looking(((Loop(part, minimum, maximum, at),),))

    def _check(self, size: int, at: int) -> None:
        if size > MAX_LOOKAROUND_ALTERNATIVES:
            self.fail(
                "the alternatives with lookaround multiply to more than MAX_LOOKAROUND_ALTERNATIVES = "
                f"{MAX_LOOKAROUND_ALTERNATIVES}",
                at,
            )

    def texts(self, part: Fragment | Looking, *, anchored: bool) -> Expression:
        """Returns the texts that the part matches from beginning to end, or in which it is found."""
        around = () if anchored else (self.anything,)
        whole = Looking(tuple((*around, *items, *around) for items in looking(part, 0).alternatives))
        return self._texts(whole, left_open=False, right_open=False)

    # After parsing. Open: unknown text may lie beyond that end.

    def _texts(self, part: Looking, *, left_open: bool, right_open: bool) -> Expression:
        texts = [self._sequence(items, left_open, right_open) for items in part.alternatives]
        return union([text for text in texts if text is not NOTHING])

    def _sequence(self, items: tuple[Item, ...], left_open: bool, right_open: bool) -> Expression:  # noqa: FBT001
        cut = self._cut_at_edges(list(items), left_open, right_open)
        if cut is None:
            return NOTHING
        row = self._joined(cut)
        whole: list[Expression] = []
        for end, near_open in ((0, left_open), (-1, right_open)):
            while row and isinstance(look := row[end], Look):
                if left_open if look.behind else right_open:
                    self._refuse(look)
                if look.behind == (end == -1):  # of all the text
                    whole.append(self._asserted(look, near_open=near_open))
                elif not nullable(self._asserted(look, near_open=True)):  # of the empty text
                    return NOTHING
                del row[end]
        middle = self._middle(row, left_open, right_open)
        return Intersection((middle, *whole)) if whole else middle

    def _middle(self, row: list[Item], left_open: bool, right_open: bool) -> Expression:  # noqa: FBT001
        place = 1 + max((i for i, item in enumerate(row) if isinstance(item, Look) and item.behind), default=-1)
        left: Expression = EMPTY_TEXT
        for item in row[:place]:
            if isinstance(item, Look):
                if left_open or not item.behind:
                    self._refuse(item)
                left = Intersection((left, self._asserted(item, near_open=True)))
            elif isinstance(item, Loop):
                self.fail(_REFUSAL + "a loop with lookaround comes before a lookbehind", item.at)
            else:
                assert not isinstance(item, Edge)
                left = sequence(left, item)
        right: Expression = EMPTY_TEXT
        for item in reversed(row[place:]):
            if isinstance(item, Look):
                if right_open:
                    self._refuse(item)
                right = Intersection((right, self._asserted(item, near_open=True)))
            elif isinstance(item, Loop):
                if right_open:
                    self.fail(_REFUSAL + "it is in a loop inside a lookbehind", item.at)
                right = self._loop(item, right)
            else:
                assert not isinstance(item, Edge)
                right = sequence(item, right)
        return sequence(left, right)

    def _refuse(self, look: Look) -> NoReturn:
        where = "back past a lookahead, or out of one" if look.behind else "past a lookbehind, or out of one"
        self.fail(f"{_REFUSAL}it looks {where}", look.at)

    def _asserted(self, look: Look, *, near_open: bool) -> Expression:
        """Returns the text required before (lookbehind) or after; ``near_open``: text may be on the other side."""
        alternatives = look.inside.alternatives
        if look.behind:
            inside = Looking(tuple((self.anything, *items) for items in alternatives))
            found = self._texts(inside, left_open=False, right_open=near_open)
        else:
            inside = Looking(tuple((*items, self.anything) for items in alternatives))
            found = self._texts(inside, left_open=near_open, right_open=False)
        return Intersection((self.anything, Complement(found))) if look.negative else found

    def _cut_at_edges(self, row: list[Item], left_open: bool, right_open: bool) -> list[Item] | None:  # noqa: FBT001
        """Returns the sequence without ``^`` and ``$``, whose outer parts match the empty text; None if one cannot."""
        for start in (True, False):
            for place in reversed(range(len(row))) if start else range(len(row)):
                if place >= len(row):
                    break
                item = row[place]
                if not isinstance(item, Edge) or item.start != start:
                    continue
                if left_open if start else right_open:
                    self.fail(_REFUSAL + "an anchor inside it looks beyond it", item.at)
                beyond = row[:place] if start else row[place + 1 :]
                kept: list[Item] = []
                for other in beyond:
                    if isinstance(other, Look | Edge):
                        kept.append(other)
                    elif isinstance(other, Loop):
                        if other.minimum:
                            self.fail(_REFUSAL + "it is in a loop beyond an anchor", other.at)
                    elif not nullable(other):
                        return None
                row[:] = kept + row[place + 1 :] if start else row[:place] + kept
                return self._cut_at_edges(row, left_open, right_open)
        return row

    def _joined(self, items: list[Item]) -> list[Item]:
        """Returns the items with adjacent expressions joined, and with the assertions that see only these."""
        row: list[Item] = []
        for item in items:
            if item is EMPTY_TEXT:
                continue
            if isinstance(item, Look | Loop | Edge) or not row or isinstance(row[-1], Look | Loop | Edge):
                row.append(item)
            else:
                row[-1] = sequence(row[-1], item)
        place = 0
        while place < len(row):
            item = row[place]
            neighbour = place - 1 if isinstance(item, Look) and item.behind else place + 1
            if isinstance(item, Look) and 0 <= neighbour < len(row):
                beside = row[neighbour]
                narrowed = None if isinstance(beside, Look | Loop | Edge) else self._narrowed(item, beside)
                if narrowed is not None:
                    row[neighbour] = narrowed
                    del row[place]
                    return self._joined(row)
            place += 1
        return row

    def _narrowed(self, look: Look, beside: Expression) -> Expression | None:
        """Returns ``beside`` with the assertion, if this sees nothing else."""
        inside = self._plain(look.inside)
        if inside is None:
            return None
        width = self.lengths(inside)[1]
        if width is None or width > self.lengths(beside)[0]:
            return None
        reach = sequence(self.anything, inside) if look.behind else sequence(inside, self.anything)
        return Intersection((beside, Complement(reach) if look.negative else reach))

    def _plain(self, part: Looking) -> Expression | None:
        """Returns the part as an expression, if the adjacent expressions absorb all assertions."""
        found: list[Expression] = []
        for items in part.alternatives:
            row = self._joined(list(items))
            if not row:
                found.append(EMPTY_TEXT)
            elif len(row) == 1 and not isinstance(row[0], Look | Loop | Edge):
                found.append(row[0])
            else:
                return None
        return union(found)

    def _loop(self, loop: Loop, right: Expression) -> Expression:
        """Returns the loop, followed by ``right``."""
        if right is self.anything:  # the least number of rounds is enough
            loop = loop._replace(maximum=loop.minimum)
        else:
            found = self._loop_of_one_length(loop, right)
            if found is not None:
                return found
        if loop.maximum is None or loop.maximum > ROUNDS:
            message = f"it is in a loop of more than {ROUNDS} rounds, with text after it"
            self.fail(_REFUSAL + message, loop.at)
        after = right
        for rounds in reversed(range(loop.maximum)):
            once = union([self._before(items, after) for items in loop.body.alternatives])
            after = union([right, once]) if rounds >= loop.minimum else once
        return after

    def _before(self, items: tuple[Item, ...], right: Expression) -> Expression:
        row = self._joined([*items, right])
        if any(isinstance(item, Edge) or (isinstance(item, Look) and item.behind) for item in row):
            at = next(item.at for item in items if isinstance(item, Look | Edge | Loop))
            self.fail(_REFUSAL + "it looks back, or has an anchor, in a loop", at)
        return self._middle(row, True, False)  # noqa: FBT003

    def _loop_of_one_length(self, loop: Loop, right: Expression) -> Expression | None:
        """Returns a loop with rounds of one length before a text of one length, where rounds start at known places.

        The text is one of the loop and ``right`` without assertions, and no round starts where they fail.
        """
        rounds: list[Expression] = []
        for items in loop.body.alternatives:
            if any(item.behind if isinstance(item, Look) else isinstance(item, Loop | Edge) for item in items):
                return None
            rounds.append(sequence(*(item for item in items if not isinstance(item, Look | Loop | Edge))))
        plain = union(rounds)
        length, after = self.lengths(plain), self.lengths(right)
        if length[0] == 0 or length[0] != length[1] or after[0] != after[1]:
            return None
        fulfilled = union([self._before(items, self.anything) for items in loop.body.alternatives])
        one_more = Repetition(self.char, length[0] + after[0], None)
        failure = sequence(Repetition(plain, 0, None), Intersection((one_more, Complement(fulfilled))))
        allowed = sequence(repetition(plain, loop.minimum, loop.maximum), right)
        return Intersection((allowed, Complement(failure)))

    def lengths(self, expression: Expression) -> tuple[int, int | None]:
        """Returns a lower and an upper bound of the number of characters."""
        known = self._lengths.get(id(expression))
        if known is None:  # parts are shared, so a tree may be much larger than its objects
            known = self._lengths[id(expression)] = (expression, self._lengths_of(expression))
        return known[1]

    def _lengths_of(self, expression: Expression) -> tuple[int, int | None]:
        match expression:
            case Literal(text):
                return (self._length(text),) * 2
            case LiteralSet(texts):
                numbers = [self._length(text) for text in texts]
                return min(numbers), max(numbers)
            case CharClass():
                return 1, 1
            case Concatenation(parts):
                pairs = [self.lengths(part) for part in parts]
                longest = [most for _, most in pairs]
                return sum(least for least, _ in pairs), None if None in longest else sum(n or 0 for n in longest)
            case Alternation(parts) if parts:
                pairs = [self.lengths(part) for part in parts]
                longest = [most for _, most in pairs]
                return min(least for least, _ in pairs), None if None in longest else max(n or 0 for n in longest)
            case Repetition(part, minimum, maximum):
                least, most = self.lengths(part)
                return least * minimum, 0 if most == 0 else None if most is None or maximum is None else most * maximum
            case Intersection(parts):
                return self.lengths(parts[0])
        return 0, None

    def _length(self, text: bytes) -> int:
        if not self.json:
            return len(text.decode())
        from json import loads

        return len(loads(b'"%b"' % text))
