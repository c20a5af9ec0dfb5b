"""Text as it grows: whole characters only, and stop texts."""

from __future__ import annotations

from random import Random

import pytest

from constrain.chat.reading.text import StopTexts, TextStream
from tests.support import for_each


def run(pieces: list[bytes], stops: tuple[str, ...] = (), *, cuts: bool = True) -> tuple[list[str], str]:
    stream = TextStream(stops, cuts=cuts)
    shown = []
    for piece in pieces:
        stopped = stream.feed(piece)
        shown.append(stream.take())
        if stopped:
            break
    shown.append(stream.finish())
    return shown, stream.text


SHOWN: list[tuple[list[bytes], tuple[str, ...], list[str], str]] = [
    ([b"a\xc3", b"\xa9", b"\xf0\x9f", b"\x99\x82b"], (), ["a", "é", "", "🙂b", ""], "aé🙂b"),
    ([b"a\xc3"], (), ["a", "�"], "a�"),
    ([b"one ", b"two ", b"three"], ("two",), ["one ", "", ""], "one "),
    ([b"a", b"<", b"e", b"n", b"x"], ("<end>",), ["a", "", "", "", "<enx", ""], "a<enx"),
    ([b"a<e", b"nd>b"], ("<end>",), ["a", "", ""], "a"),
    ([b"a<e"], ("<end>",), ["a", "<e"], "a<e"),
    ([b"abcd"], ("d", "bc"), ["a", ""], "a"),
    ([b"xaa", b"ab"], ("aab",), ["x", "a", ""], "xa"),
]


@for_each("pieces, stops, shown, text", SHOWN)
def test_whole_characters_are_shown_that_no_stop_text_may_begin_with(
    pieces: list[bytes], stops: tuple[str, ...], shown: list[str], text: str
) -> None:
    assert run(pieces, stops) == (shown, text)


def test_the_stop_text_is_known_if_it_has_cut_the_text() -> None:
    stream = TextStream(("never", "cd", "d"), cuts=True)
    assert stream.stop is None
    stream.feed(b"abc")
    assert stream.stop is None
    stream.feed(b"de")
    assert (stream.text, stream.stop) == ("ab", "cd")
    whole = TextStream(("b",), cuts=False)
    assert whole.feed(b"abc")
    assert (whole.text, whole.stop) == ("abc", None)


def test_a_text_that_stays_whole_says_that_it_should_stop() -> None:
    stream = TextStream(("b",), cuts=False)
    assert not stream.feed(b"a")
    assert stream.feed(b"bc")
    assert stream.feed(b"d") is False
    assert stream.take() == "abcd"
    assert stream.text == "abcd"


@pytest.mark.parametrize("cuts", [True, False])
def test_pieces_are_the_text(cuts: bool) -> None:
    shown, text = run([bytes([byte]) for byte in "naïve – 🙂 <en".encode()], ("<end>",), cuts=cuts)
    assert "".join(shown) == text == "naïve – 🙂 <en"


def test_the_automaton_of_stop_texts_equals_a_search() -> None:
    rng = Random(1)
    for _ in range(300):
        stops = ["".join(rng.choices("ab", k=rng.randint(1, 5))) for _ in range(rng.randint(0, 4))]
        automaton, state, text = StopTexts(stops), 0, ""
        for character in rng.choices("abc", k=20):
            text += character
            state = automaton.step(state, character)
            assert set(automaton.ending_at(state)) == {stop for stop in stops if text.endswith(stop)}
            beginnings = [
                n for n in range(len(text) + 1) if any(s.startswith(text[len(text) - n :]) for s in [*stops, ""])
            ]
            assert automaton.depth(state) == max(beginnings)


def test_many_long_stop_texts_take_no_time_per_token() -> None:
    stops = [*(f"z{number}" for number in range(1000)), "z" * 4000]
    stream = TextStream(stops, cuts=True)
    for _ in range(20_000):  # a search for each stop text would take minutes
        stream.feed(b"zy")
        stream.take()
    assert stream.stop is None
    assert stream.length == 40_000
