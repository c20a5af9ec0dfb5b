"""The lexemes of all ways to read a text, and tokens of a budget that are written elsewhere."""

from __future__ import annotations

from random import Random

import pytest

import constrain
from constrain import Lark, kernel
from tests.support import byte_vocabulary
from tests.support.oracles.lark.generator import make_case

Detour = tuple[int, int, bytes]


def compiled(text: str) -> kernel.CompiledGrammar:
    return kernel.CompiledGrammar(Lark(text).grammar(), byte_vocabulary()._core)


def paths(found: tuple[list[int], list[tuple[int, int, list[int]]]]) -> set[tuple[tuple[int, str], ...]]:
    """All ways from the beginning to the end: the end of each lexeme, and its terminals."""
    offsets, lexemes = found
    ways: list[set[tuple[tuple[int, str], ...]]] = [set() for _ in offsets]
    ways[0].add(())
    for begin, end, terminals in sorted(lexemes):
        step = (offsets[end], ",".join(map(str, sorted(terminals))))
        ways[end] |= {(*way, step) for way in ways[begin]}
    return ways[-1]


@pytest.mark.slow
def test_without_detours_there_are_the_lexemes_of_the_longest_match() -> None:
    checked = 0
    for seed in range(60):
        case, rng = make_case(seed), Random(seed)
        try:
            grammar = compiled(case.text)
        except (constrain.GrammarError, constrain.LimitError):
            continue
        for _ in range(10):
            text = bytes(rng.choices(case.alphabet, k=rng.randint(0, 6)))
            expected, found = grammar.lexemes(text), grammar.lexeme_graph(text, [])
            assert (found is None) == (expected is None)
            if found is not None and expected is not None:
                assert found[0] == [0, *(end for end, _ in expected)], (seed, text)
                assert [(end, sorted(terminals)) for _, end, terminals in sorted(found[1])] == [
                    (number, sorted(terminals)) for number, (_, terminals) in enumerate(expected, start=1)
                ]
                checked += 1
    assert checked > 30


def test_each_detour_may_be_taken_or_not() -> None:
    grammar = compiled('start: (A | "X")* ";"\nA: /[ab]/')
    detours: list[Detour] = [(0, 2, b"X"), (1, 2, b"X"), (2, 4, b"X")]
    assert grammar.accepts(b"abab;", detours)
    found = grammar.lexeme_graph(b"abab;", detours)
    assert found is not None
    ways = paths(found)
    assert {tuple(end for end, _ in way) for way in ways} == {(2, 4, 5), (2, 3, 4, 5), (1, 2, 4, 5), (1, 2, 3, 4, 5)}
    assert len(ways) == 6  # the second byte alone is an A, or an X
    assert grammar.lexeme_graph(b"ab!", detours[:1]) is None


def test_the_empty_text_has_one_place() -> None:
    assert compiled('start: "a"?').lexeme_graph(b"", []) == ([0], [])


@pytest.mark.parametrize("detour", [(0, 0, b"X"), (1, 0, b"X"), (0, 9, b"X")])
def test_a_detour_outside_the_text_is_refused(detour: Detour) -> None:
    with pytest.raises(ValueError, match="a detour is a part of the text"):
        compiled('start: "a"').lexeme_graph(b"a", [detour])
