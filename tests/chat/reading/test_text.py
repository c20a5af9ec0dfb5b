"""Text as it grows: whole characters only, stop texts, no special tokens; and the tokens that it is made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

import pytest

from constrain import TextDelta, tool
from constrain.chat.answers.choices import FunctionCalls, Reasoning
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.families.format import Thinking, ToolFormat
from constrain.chat.reading.events import StreamEvent
from constrain.chat.reading.incoming import Incoming
from constrain.chat.reading.progress import Progress, TextProgress
from constrain.chat.reading.reply import ReplyProgress
from constrain.chat.reading.text import StopTexts, TextStream
from constrain.chat.reading.text_tokens import TextTokens
from constrain.language.result import result_type
from constrain.language.special import mark
from constrain.results import TokenLogprob
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


def test_special_tokens_are_no_part_of_a_text() -> None:
    incoming, found = Incoming(), []
    reading = incoming.text([b"END"], found.append)
    for part in (b"a", mark("<|call|>"), "é".encode()[:1], "é".encode()[1:], mark("<s>") + b"E", b"ND"):
        incoming.buffer += part
        next(reading, None)
    assert "".join(found) == "aé"
    assert incoming.take(3) == b"END"


def test_special_tokens_are_no_part_of_a_json_string() -> None:
    incoming, found = Incoming(), []
    reading = incoming.json_string(found.append)
    for part in (b"a\\", b"n", mark("<|call|>"), b'b"'):
        incoming.buffer += part
        next(reading, None)
    assert "".join(found) == "a\nb"


TOLD = tuple[str, list[bytes]]


def told(progress: Progress, tokens: TextTokens, known: list[TokenLogprob], pieces: Sequence[bytes]) -> list[TOLD]:
    """The pieces of text with the bytes of their tokens; a token is scored only after it was fed."""

    def shown(events: list[StreamEvent]) -> list[TOLD]:
        deltas = [event for event in events if isinstance(event, TextDelta)]
        return [(delta.text, [each.bytes for each in delta.logprobs]) for delta in deltas]

    found = []
    for number, piece in enumerate(pieces):
        stopped = progress.feed(piece)
        known.append(TokenLogprob(number, "", piece, -1.0))
        found += shown(progress.take())
        if stopped:
            break
    found += shown(progress.finish())
    assert [each.bytes for each in tokens.reported] == [each for _, several in found for each in several]
    return found


def of_text(pieces: Sequence[bytes], *stops: str, cuts: bool = True) -> list[TOLD]:
    known: list[TokenLogprob] = []
    tokens = TextTokens(known)
    return told(TextProgress(result_type(None), stops, tokens, cuts=cuts), tokens, known, pieces)


TEXTS: dict[str, tuple[list[bytes], tuple[str, ...], list[TOLD]]] = {
    "each token": ([b"a", b" b", b"c"], (), [("a", [b"a"]), (" b", [b" b"]), ("c", [b"c"])]),
    "parts of a character": (
        [b"a\xf0\x9f", b"\x99", b"\x82b", b"c"],
        (),
        [("a", [b"a\xf0\x9f"]), ("\U0001f642b", [b"\x99", b"\x82b"]), ("c", [b"c"])],
    ),
    "an unfinished character": ([b"a", b"\xf0\x9f", b"\x99"], (), [("a", [b"a"]), ("\ufffd", [b"\xf0\x9f", b"\x99"])]),
    "a special token": ([b"a", mark("<|x|>"), b"b"], (), [("a", [b"a"]), ("b", [b"b"])]),
    "a stop text": ([b"one", b" E", b"N", b"D", b"x"], ("END",), [("one", [b"one"]), (" ", [b" E"])]),
    "a stop text at once": ([b"one", b"EN", b"D"], ("END",), [("one", [b"one"])]),
    "held back": (
        [b"one", b"E", b"N", b"ds", b"x"],
        ("END",),
        [("one", [b"one"]), ("ENds", [b"E", b"N", b"ds"]), ("x", [b"x"])],
    ),
    "the rest of a token": ([b"oneE", b"x"], ("END",), [("one", [b"oneE"]), ("Ex", [b"x"])]),
}


@for_each("case", TEXTS)
def test_each_token_is_told_once_with_the_text_that_shows_it(case: str) -> None:
    pieces, stops, expected = TEXTS[case]
    assert of_text(pieces, *stops) == expected


def test_a_text_that_stays_whole_tells_its_stop_text() -> None:
    assert of_text([b'"', b"END", b'"'], "END", cuts=False) == [('"', [b'"']), ("END", [b"END"])]


FORM = ToolFormat(
    name="tags",
    call='<call>{"name": "$name", "arguments": $arguments}</call>',
    custom_call='<call>{"name": "$name", "arguments": {"input": $json_input}}</call>',
    between="\n",
    thinking=Thinking("<think>", "</think>"),
)


def greet(name: str) -> str:
    return name


def of_reply(pieces: Sequence[bytes], *stops: str, reasoning: Reasoning = Reasoning.NONE) -> list[TOLD]:
    greeting = tool(greet)
    answer = AnswerLanguage(FORM, tools=(FunctionCalls("greet", json.dumps(greeting.schema)),), reasoning=reasoning)
    known: list[TokenLogprob] = []
    tokens = TextTokens(known)
    progress = ReplyProgress(
        answer, {"greet": greeting}, result_type(None), stops, [1], tokens=tokens, wants_reply=True
    )
    return told(progress, tokens, known, pieces)


def test_reasoning_is_not_told() -> None:
    pieces = [b"<think>", b"Hm", b"m.", b"</think>", b"\n\n", b"Yes", b"."]
    assert of_reply(pieces, reasoning=Reasoning.OPTIONAL) == [("Yes", [b"Yes"]), (".", [b"."])]


def test_a_token_that_ends_the_reasoning_and_begins_the_text_is_told() -> None:
    assert of_reply([b"<think>Hm", b"</think>\n\nY", b"es"], reasoning=Reasoning.OPTIONAL) == [
        ("Y", [b"</think>\n\nY"]),
        ("es", [b"es"]),
    ]


def test_text_before_a_call_is_told_and_the_call_is_not() -> None:
    pieces = [b"Well", b":", b"<c", b'all>{"name": "greet", ', b'"arguments": {"name": "A"}}', b"</call>"]
    assert of_reply(pieces) == [("Well", [b"Well"]), (":", [b":"])]


def test_what_might_have_been_a_call_is_told() -> None:
    assert of_reply([b"a", b"<", b"c", b"at", b"\xc3", b"\xa9!"]) == [
        ("a", [b"a"]),
        ("<cat", [b"<", b"c", b"at"]),
        ("\u00e9!", [b"\xc3", b"\xa9!"]),
    ]


def test_a_stop_text_in_what_might_have_been_a_call_cuts_in_the_right_place() -> None:
    assert of_reply([b"a", b"<", b"c", b"a", b"t", b"s"], "ca") == [("a", [b"a"]), ("<", [b"<"])]


@for_each("size", [1, 2, 3, 5, 50])
def test_however_a_text_is_cut_into_tokens_all_are_told_once(size: int) -> None:
    text = "Größe <call or not> 🙂🙂 END of E N D".encode()
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    for found in (of_text(pieces), of_text(pieces, "XYZ", "E N D!"), of_reply(pieces), of_reply(pieces, "E N D!")):
        assert [each for _, several in found for each in several] == pieces
        assert "".join(piece for piece, _ in found).encode() == text
