"""``%regex``: any run of a text's words, characters or chunks, against a list of all of them."""

from __future__ import annotations

import json
from random import Random

import pytest

import constrain
from constrain.lark import Lark, substrings
from constrain.lark.substrings import _LEVELS, MAX_CHUNKS, words
from tests.support import byte_vocabulary, for_each


def compiled(kind: str, value: object) -> constrain.Constraint:
    given = json.dumps({f"substring_{kind}": value})
    return constrain.compile(Lark(f'start: "<" %regex {given} ">"'), byte_vocabulary(), cache=False)


def runs(chunks: list[str]) -> set[str]:
    count = len(chunks)
    return {"".join(chunks[first:last]) for first in range(count + 1) for last in range(first, count + 1)}


def candidates(text: str, rng: Random) -> set[str]:
    """All parts of a text, and parts with a character exchanged."""
    parts = runs(list(text))
    return parts | {part.replace(part[0], rng.choice(text), 1) for part in parts if part}


@for_each(
    "text, pieces",
    [
        ("foo bar. baz", ["foo", " ", "bar", ".", " ", "baz"]),
        ("a_b  1²\n…!", ["a_b", "  ", "1²", "\n", "…!"]),
        ("don't", ["don", "'", "t"]),
        ("क\u0940x a\u0301b", ["क\u0940x", " ", "a", "\u0301", "b"]),  # one mark is alphabetic, the other is not
        ("", []),
    ],
)
def test_words_are_runs_of_letters_and_digits_of_white_space_and_of_others(text: str, pieces: list[str]) -> None:
    assert words(text) == pieces


@for_each("seed", range(15))
def test_runs_of_chunks_are_accepted_and_nothing_else(seed: int) -> None:
    rng = Random(seed)
    letters = rng.choice(["a", "ab", "abc", "aé "])
    chunks = ["".join(rng.choices(letters, k=rng.randrange(4))) for _ in range(rng.randrange(9))]
    constraint = compiled("chunks", chunks)
    expected = runs(chunks)
    for text in candidates("".join(chunks), rng) | expected:
        assert constraint.accepts(f"<{text}>") == (text in expected), (chunks, text)


@for_each("kind", ["words", "chars"])
@for_each("text", ["to be, or not to be: that", "aaaa aa", "ab ab_ab é", "x", ""])
def test_runs_of_words_and_characters_are_accepted_and_nothing_else(kind: str, text: str) -> None:
    constraint = compiled(kind, text)
    expected = runs(words(text) if kind == "words" else list(text))
    for part in candidates(text, Random(0)):
        assert constraint.accepts(f"<{part}>") == (part in expected), part


@pytest.mark.slow
@pytest.mark.parametrize("length", [_LEVELS - 1, _LEVELS, _LEVELS + 200])
@pytest.mark.parametrize("period", ["a", "ab", "abcde fghij"])
def test_long_texts_are_cut_into_blocks_and_mean_the_same(period: str, length: int) -> None:
    text = (period * 2 * _LEVELS)[:length]
    constraint = compiled("chars", text)
    rng = Random(1)
    for _ in range(40):
        first, last = sorted(rng.choices(range(len(text) + 1), k=2))
        assert constraint.accepts(f"<{text[first:last]}>")
        assert not constraint.accepts(f"<{text[first:last]}!>")
    assert constraint.accepts(f"<{text}>")
    assert not constraint.accepts(f"<{text + text[len(text) % len(period)]}>")


def test_a_substring_may_be_part_of_a_terminal() -> None:
    grammar = 'start: QUOTE "." QUOTE\nQUOTE: "\\"" %regex {"substring_words": "I am here"} "\\""'
    constraint = constrain.compile(Lark(grammar), byte_vocabulary())
    assert constraint.accepts('"am here".""')
    assert not constraint.accepts('"am her".""')


@pytest.mark.slow
def test_the_text_of_a_chapter_compiles() -> None:
    rng = Random(0)
    known = ["".join(rng.choices("abcdefghij", k=rng.randint(1, 9))) for _ in range(1_000)]
    text = " ".join(rng.choice(known) for _ in range(2_500))
    grammar = f'start: "<" %regex {json.dumps({"substring_words": text})}'
    constraint = constrain.compile(Lark(grammar), byte_vocabulary(), cache=False)
    begin = text.index(" ", 5_000) + 1
    assert constraint.accepts("<" + text[begin : text.index(" ", begin + 2_000)])
    assert not constraint.accepts("<" + text[begin : text.index(" ", begin + 2_000)] + "!")


def test_too_many_chunks_are_refused() -> None:
    with pytest.raises(constrain.LimitError, match=r"^line 1, column \d+: this %regex .*MAX_CHUNKS") as caught:
        compiled("chars", "a" * (MAX_CHUNKS + 1))
    assert (caught.value.line, caught.value.pointer) == (1, None)


def test_a_text_that_branches_everywhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(substrings, "_LEVELS", 500)
    before, text = "a", "ab"
    while (
        len(text) + len(before) <= MAX_CHUNKS
    ):  # a Fibonacci word: every part of it goes on in two ways, again and again
        before, text = text, text + before
    with pytest.raises(constrain.LimitError, match=r"^line 1, column \d+: this %regex .*MAX_CHUNKS"):
        compiled("chars", text)


@pytest.mark.slow
def test_the_kernels_limit_names_the_place() -> None:
    text = "".join(Random(0).choices("ab cdefg", k=4_000))
    grammar = f'start: "<" %regex {json.dumps({"substring_chars": text})} "g>"'
    with pytest.raises(constrain.LimitError, match=r"%regex \(line 1, column 12\).*MAX_PAIR_STATES"):
        constrain.compile(Lark(grammar), byte_vocabulary(), cache=False)
