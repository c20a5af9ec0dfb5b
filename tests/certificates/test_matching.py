"""``constrain.verify.Match`` against the definitions of the format's page, by the pieces of a text that match."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from random import Random
from typing import Any

import pytest

from constrain.verify import Match, data
from tests.support import LONG

EXPRESSIONS = 20_000 if LONG else 1_500
_DECIMAL = re.compile(rb"-?([0-9]+)(?:\.([0-9]+))?")


def naive(nodes: list[Any], text: bytes) -> Any:
    """Returns whether an expression matches the piece of a text between two offsets, as the page defines it."""

    def characters(piece: bytes, how: str) -> list[int] | None:
        """The code points that a piece spells; None if it spells none."""
        if how == "byte":
            return list(piece)
        spelled = piece
        if how == "json":
            found = re.fullmatch(rb'(?:\\["\\bn]|\\u0001|[^\x00-\x1f"\\])*', piece, re.DOTALL)
            if found is None:
                return None
            spelled = re.sub(rb"\\(u0001|.)", lambda m: {b"b": b"\b", b"n": b"\n", b"u0001": b"\x01"}.get(m[1], m[1]), piece)
        try:
            return list(map(ord, spelled.decode()))
        except UnicodeDecodeError:
            return None

    def of_units(unit: int, begin: int, end: int) -> tuple[int, int]:
        """How many units stand in a row, and where they end."""
        count = 0
        while (after := next((at for at in range(begin + 1, end + 1) if matches(unit, begin, at)), 0)) > 0:
            begin, count = after, count + 1
        return count, begin

    def repeated(part: int, least: int, most: int | None, begin: int, end: int) -> bool:
        if most is not None and most < least:
            return False
        if begin == end and (least == 0 or matches(part, begin, begin)):
            return True
        left = max(0, least - 1), None if most is None else most - 1
        return most != 0 and any(
            matches(part, begin, at) and repeated(part, *left, at, end) for at in range(begin + 1, end + 1)
        )

    @lru_cache(maxsize=None)
    def matches(number: int, begin: int, end: int) -> bool:
        kind, *of = nodes[number]
        piece = text[begin:end]
        if kind == "literal":
            return piece in map(data, of[0])
        if kind == "class":
            found = characters(piece, of[1])
            return found is not None and len(found) == 1 and any(low <= found[0] <= high for low, high in of[0])
        if kind == "any":
            return any(matches(each, begin, end) for each in of[0])
        if kind == "both":
            return all(matches(each, begin, end) for each in of[0])
        if kind == "not":
            return not matches(of[0], begin, end)
        if kind == "all":
            places = {begin}
            for each in of[0]:
                places = {after for at in places for after in range(at, end + 1) if matches(each, at, after)}
            return end in places
        if kind == "repeat":
            return repeated(of[0], of[1], of[2], begin, end)
        if kind == "multiple":
            read = _DECIMAL.fullmatch(piece)
            if read is None:
                return False
            decimals = read[2] or b""
            return int(read[1] + decimals) * 10 ** of[1] % (of[0] * 10 ** len(decimals)) == 0
        if kind == "window":
            count, _ = of_units(of[1], begin, end)
            return matches(of[0], begin, end) and of[2] <= count <= (count if of[3] is None else of[3])
        texts, least, most, how, cuts = of
        run = characters(piece, how)
        if run is None or not least <= len(run) <= (len(run) if most is None else most):
            return False
        for which, whole in enumerate(texts):
            marks = cuts[which] + "1" if cuts else "1" * (len(whole) + 1)
            for at in range(len(whole) - len(run) + 1):
                if list(map(ord, whole[at : at + len(run)])) == run and marks[at] == marks[at + len(run)] == "1":
                    return True
        return not run

    return matches


def drawn(rng: Random, size: int) -> list[Any]:
    """A random row of expressions, each made of those before it."""
    nodes: list[Any] = []
    alphabet, texts = ("a", "b", "é", '"', "\n", "1", "-", "."), ("", "a", "ab", "bab", "é", "1", "1.5", '\\"')
    for number in range(size):
        kinds = ["literal", "class", "class", "multiple", "substring"]
        kinds = kinds if number < 2 else ["all", "any", "both", "not", "repeat", "window", rng.choice(kinds)]
        kind, most = rng.choice(kinds), rng.choice((None, 0, 1, 2, 3))

        def inner(count: int, number: int = number) -> list[int]:
            return [rng.randrange(number) for _ in range(count)]

        how = rng.choice(("byte", "char", "json"))
        if kind == "literal":
            nodes.append([kind, rng.sample(texts, rng.randrange(3))])
        elif kind == "class":
            ranges = [sorted(ord(each) for each in rng.choices(alphabet, k=2)) for _ in range(rng.randrange(1, 3))]
            nodes.append([kind, ranges, how])
        elif kind == "multiple":
            nodes.append([kind, rng.choice((1, 2, 3, 15, 125)), rng.randrange(4)])
        elif kind == "substring":
            wholes = rng.sample(("abab", 'a"b', "é1", "aa", ""), 2)
            cuts = ["".join(rng.choice("01") for _ in whole) for whole in wholes] if rng.random() < 0.5 else []
            nodes.append([kind, wholes, rng.randrange(3), most, rng.choice(("char", "json")), cuts])
        elif kind == "repeat":
            nodes.append([kind, *inner(1), rng.randrange(4), most])
        elif kind == "window":
            nodes.append(["class", [[0, 255]], how] if not number else ["class", [[97, 0x10FFFF]], how])
            nodes.append([kind, *inner(1), len(nodes) - 1, rng.randrange(3), most])
            break
        else:
            nodes.append([kind, *inner(1)] if kind == "not" else [kind, inner(rng.randrange(kind == "both", 4))])
    return nodes


PIECES = (b"a", b"b", b"\xc3", b"\xa9", "é".encode(), b'"', b'\\"', b"\\", b"n", b"1", b"15", b"-", b".", b"0", b"\xff")


@pytest.mark.slow(but=range(1))
@pytest.mark.parametrize("seed", range(4))
def test_matches_are_those_of_the_definitions(seed: int) -> None:
    rng = Random(seed)
    for _ in range(EXPRESSIONS // 4 if seed else 60):
        nodes = drawn(rng, rng.randrange(2, 8))
        match, last = Match(nodes), len(nodes) - 1
        for _ in range(4):
            text = b"".join(rng.choices(PIECES, k=rng.randrange(1, 6)))
            wanted = [end for end in range(1, len(text) + 1) if naive(nodes, text)(last, 0, end)]
            assert list(match.ends(last, text)) == wanted, (nodes, text)


@pytest.mark.parametrize(("divisor", "scale"), product((1, 2, 7, 25), (0, 1, 2)))
def test_multiples_are_those_of_integers(divisor: int, scale: int) -> None:
    nodes = [["multiple", divisor, scale]]
    match = Match(nodes)
    for text in ("0", "-0", "07", "14", "-14.0", "2.5", "0.25", "0.070", "1.", ".5", "-", "1.250", "0.001", "7.00"):
        wanted = [end for end in range(1, len(text) + 1) if naive(nodes, text.encode())(0, 0, end)]
        assert list(match.ends(0, text.encode())) == wanted, text
