"""``constrain.verify.Match`` against a second reader of expressions, which follows the definitions of the format page.

The second reader asks of each piece of a text whether an expression matches it, by trying all ways to divide the piece.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from constrain.verify import Match, data
from tests.support import LONG, for_each

EXPRESSIONS = 100_000 if LONG else 100
PIECES = (b"a", b"b", b"\xc3", b"\xa9", "é".encode(), b'"', b'\\"', b"\\", b"n", b"1", b"15", b"-", b".", b"0", b"\xff")
_DECIMAL = re.compile(rb"-?([0-9]+)(?:\.([0-9]+))?")
_SPELLED = re.compile(rb'(?:\\["\\bn]|\\u0001|[^\x00-\x1f"\\])*')
_ESCAPES = {b"b": b"\b", b"n": b"\n", b"u0001": b"\x01"}


def characters(piece: bytes, how: str) -> list[int] | None:
    """Returns the code points that a piece spells; None if it is not made of whole characters."""
    if how == "byte":
        return list(piece)
    if how == "json":
        if _SPELLED.fullmatch(piece) is None:
            return None
        piece = re.sub(rb"\\(u0001|.)", lambda found: _ESCAPES.get(found[1], found[1]), piece)
    try:
        return list(map(ord, piece.decode()))
    except UnicodeDecodeError:
        return None


class Reader:
    """The second reader: expressions, and one text."""

    def __init__(self, nodes: list[Any], text: bytes) -> None:
        self.nodes, self.text = nodes, text
        self.known: dict[tuple[int, int, int], bool] = {}

    def matches(self, number: int, begin: int, end: int) -> bool:
        """Returns whether an expression matches the piece between two offsets."""
        if (found := self.known.get((number, begin, end))) is None:
            kind, *of = self.nodes[number]
            found = self.known[number, begin, end] = bool(getattr(self, f"_{kind}")(begin, end, *of))
        return found

    def _literal(self, begin: int, end: int, texts: list[str]) -> bool:
        return self.text[begin:end] in map(data, texts)

    def _class(self, begin: int, end: int, ranges: list[list[int]], how: str) -> bool:
        found = characters(self.text[begin:end], how) or []
        return len(found) == 1 and any(low <= found[0] <= high for low, high in ranges)

    def _all(self, begin: int, end: int, parts: list[int]) -> bool:
        places = {begin}
        for part in parts:
            places = {after for at in places for after in range(at, end + 1) if self.matches(part, at, after)}
        return end in places

    def _any(self, begin: int, end: int, parts: list[int]) -> bool:
        return any(self.matches(part, begin, end) for part in parts)

    def _both(self, begin: int, end: int, parts: list[int]) -> bool:
        return all(self.matches(part, begin, end) for part in parts)

    def _not(self, begin: int, end: int, part: int) -> bool:
        return not self.matches(part, begin, end)

    def _repeat(self, begin: int, end: int, part: int, least: int, most: int | None) -> bool:
        if most is not None and most < least:
            return False
        if begin == end and (least == 0 or self.matches(part, begin, begin)):
            return True
        left = max(0, least - 1), None if most is None else most - 1
        return most != 0 and any(
            self.matches(part, begin, at) and self._repeat(at, end, part, *left) for at in range(begin + 1, end + 1)
        )

    def _multiple(self, begin: int, end: int, divisor: int, scale: int) -> bool:
        if (read := _DECIMAL.fullmatch(self.text, begin, end)) is None:
            return False
        decimals = read[2] or b""
        return bool(int(read[1] + decimals) * 10**scale % (divisor * 10 ** len(decimals)) == 0)

    def _window(self, begin: int, end: int, part: int, unit: int, least: int, most: int | None) -> bool:
        count, at = 0, begin
        while after := next((place for place in range(at + 1, end + 1) if self.matches(unit, at, place)), 0):
            at, count = after, count + 1
        return self.matches(part, begin, end) and least <= count and (most is None or count <= most)

    def _substring(
        self, begin: int, end: int, texts: list[str], least: int, most: int | None, how: str, cuts: list[str]
    ) -> bool:
        run = characters(self.text[begin:end], how)
        if run is None or len(run) < least or (most is not None and len(run) > most):
            return False
        for which, text in enumerate(texts):
            marks = cuts[which] + "1" if cuts else "1" * (len(text) + 1)
            for at in range(len(text) - len(run) + 1):
                is_run = list(map(ord, text[at : at + len(run)])) == run
                if is_run and marks[at] == marks[at + len(run)] == "1":
                    return True
        return not run


def leaf(rng: Random) -> list[Any]:
    """Returns a random expression without others."""
    how, most = rng.choice(("char", "json")), rng.choice((None, 0, 1, 2, 3))
    kind = rng.choice(("literal", "class", "class", "multiple", "substring"))
    if kind == "literal":
        return [kind, rng.sample(("", "a", "ab", "bab", "é", "1", "1.5", '\\"'), rng.randrange(3))]
    if kind == "class":
        ranges = [sorted(ord(each) for each in rng.choices('abé"\n1-.', k=2)) for _ in range(rng.randrange(1, 3))]
        return [kind, ranges, rng.choice((how, "byte"))]
    if kind == "multiple":
        return [kind, rng.choice((1, 2, 3, 15, 125)), rng.randrange(4)]
    texts = rng.sample(("abab", 'a"b', "é1", "aa", ""), 2)
    cuts = ["".join(rng.choice("01") for _ in text) for text in texts] if rng.random() < 0.5 else []
    return [kind, texts, rng.randrange(3), most, how, cuts]


def drawn(rng: Random) -> list[Any]:
    """Returns random expressions, each made of those before it."""
    nodes = [leaf(rng), leaf(rng)]
    for number in range(2, rng.randrange(3, 9)):
        kind, most = rng.choice(("leaf", "all", "any", "both", "not", "repeat")), rng.choice((None, 0, 1, 2, 3))
        parts = [rng.randrange(number) for _ in range(rng.randrange(1, 4))]
        outer = {"not": [kind, parts[0]], "repeat": [kind, parts[0], rng.randrange(4), most], "leaf": leaf(rng)}
        nodes.append(outer.get(kind, [kind, parts]))
    if rng.random() < 0.3:
        unit = ["class", [[rng.choice((0, 97)), 0x10FFFF]], rng.choice(("byte", "char", "json"))]
        nodes += [unit, ["window", len(nodes) - 1, len(nodes), rng.randrange(3), rng.choice((None, 0, 1, 2, 3))]]
    return nodes


def test_matches_are_those_of_the_second_reader() -> None:
    rng, count = Random(7), 0
    for _ in range(EXPRESSIONS):
        nodes = drawn(rng)
        match, last = Match(nodes), len(nodes) - 1
        for _ in range(3):
            text = b"".join(rng.choices(PIECES, k=rng.randrange(1, 6)))
            second = Reader(nodes, text)
            wanted = [end for end in range(1, len(text) + 1) if second.matches(last, 0, end)]
            assert list(match.ends(last, text)) == wanted, (nodes, text)
            count += len(wanted)
    assert count > EXPRESSIONS / 4


@for_each("scale", [0, 1, 2])
@for_each("divisor", [1, 2, 7, 25])
def test_multiples_are_those_of_integers(divisor: int, scale: int) -> None:
    nodes = [["multiple", divisor, scale]]
    match = Match(nodes)
    for text in (b"0", b"-0", b"07", b"14", b"-14.0", b"2.5", b"0.25", b"0.070", b"1.", b".5", b"-", b"1.250", b"7.00"):
        second = Reader(nodes, text)
        assert list(match.ends(0, text)) == [e for e in range(1, len(text) + 1) if second.matches(0, 0, e)], text
