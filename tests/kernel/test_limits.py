"""Where a limit is met while an answer is made, there is still a way on and a way to finish; nothing is raised."""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

import pytest

import constrain
from constrain import kernel
from tests.support import LONG, allowed, byte_vocabulary, for_each
from tests.support.engine.hostile import HOSTILE, LETTERS


def test_a_text_that_is_too_long_to_finish_is_refused_when_it_is_compiled() -> None:
    with pytest.raises(constrain.LimitError, match="shortest match is too long"):
        constrain.compile(constrain.Regex("(a{10000}){20000}"), byte_vocabulary())


@pytest.mark.slow(but=("exactly one of many patterns",))
@pytest.mark.parametrize("name", HOSTILE)
def test_a_limit_met_while_generating_never_raises(name: str) -> None:
    vocabulary = byte_vocabulary()
    constraint = constrain.compile(HOSTILE[name], vocabulary)
    assert constraint.report.min_tokens > 0
    for seed in range(2 if LONG else 1):
        source = random.Random(seed)
        matcher, row = constraint.matcher(), constraint.allocate_bitmask()[0]
        written = b""
        while not matcher.is_finished and len(written) < (24 if LONG else 8):
            tokens = allowed(matcher, row)
            assert len(tokens) > 0, written
            forced = bytes(matcher.forced_bytes())
            token = int(source.choice(tokens))
            assert not forced or vocabulary.token_bytes(token) == forced[:1], written
            assert matcher.accept(token), written
            written += vocabulary.token_bytes(token)
            if token not in vocabulary.eos:
                assert constraint.accepts(written + bytes(matcher.shortest_completion())), written


@pytest.mark.parametrize("doublings", [26, 50, 500])
def test_a_language_of_endless_texts_is_refused(doublings: int) -> None:
    definitions: dict[str, Any] = {"d0": {"type": "integer"}}
    for number in range(1, doublings + 1):
        pair = [{"$ref": f"#/$defs/d{number - 1}"}] * 2
        definitions[f"d{number}"] = {"type": "array", "prefixItems": pair, "minItems": 2, "items": False}
    with pytest.raises(constrain.LimitError, match="MAX_SHORTEST_MATCH"):
        constrain.compile({"$ref": f"#/$defs/d{doublings}", "$defs": definitions}, byte_vocabulary())


def test_some_short_match_stands_in_for_the_shortest() -> None:
    """Twelve letters in any order: a breadth-first search does not get there; the text is short all the same."""
    schema = {"type": "string", "allOf": [{"pattern": letter} for letter in LETTERS[:12]]}
    constraint = constrain.compile(schema, byte_vocabulary())
    text = bytes(constraint.matcher().shortest_completion())
    assert constraint.accepts(text)
    assert len(text) <= 2 + 2 * 12


def test_conditions_on_keys_in_front_of_a_recursion_leave_a_shortest_text() -> None:
    """The rules of the recursion have no known length yet when the conditions are first searched."""
    text = {"minLength": 1}
    some = {"patternProperties": {"^x": text, "b$": {"type": "null"}}, "maxProperties": 3}
    inner = {
        "not": {"additionalProperties": {"properties": {"b": text}}},
        "oneOf": [{"properties": {"b": {"$ref": "#"}}}, {"anyOf": [{"required": ["a", "b"]}, some]}],
    }
    constraint = constrain.compile({"properties": {"b": inner}}, byte_vocabulary(), property_order="any")
    assert constraint.report.min_tokens == 1
    begun = b'{"b":{"'
    matcher = constraint.matcher()
    assert matcher.accept_many(list(begun)) == len(begun)
    assert constraint.accepts(begun + bytes(matcher.shortest_completion()))


@for_each("pattern", ["^(a|bc)*$", "^(a|ab|bc)*c$", "^(aa|ab|b)*(a|bb)*$", "^((a|bc)*d)*$"])
def test_repeated_words_of_several_lengths_stay_within_the_limits(pattern: str) -> None:
    """A derivative has X* beside what is left of a longer word and X*, which asks for the same derivative."""
    constraint = constrain.compile({"type": "string", "pattern": pattern}, byte_vocabulary())
    for length in range(6):
        for letters in itertools.product("abcd", repeat=length):
            text = "".join(letters)
            assert constraint.accepts(f'"{text}"') == bool(re.fullmatch(pattern[1:-1], text)), text


NULLABLE = {
    "optional": "a?",
    "optional alternatives": "(a|b)?",
    "two optionals": "(a?b?)?",
    "repeated": "a*b*",
    "counted": "(a{0,3}b{0,2})",
    "alternation": "(a?|b*)",
    "nested": "(" * 20 + "a?" + "b?)?" * 20,
}


@for_each("unit", NULLABLE)
def test_long_chains_of_nullable_parts_cost_about_what_they_are_long(unit: str) -> None:
    """Work for each pair of parts would meet a limit: there are a million pairs."""
    pattern = NULLABLE[unit] * (1_000 // (1 + NULLABLE[unit].count("b?)?")))
    constraint = constrain.compile(constrain.Regex(pattern), byte_vocabulary(), cache=False)
    matcher, row = constraint.matcher(), constraint.allocate_bitmask()[0]
    for _ in range(5):
        assert ord("a") in allowed(matcher, row)
        assert matcher.accept(ord("a"))
    assert matcher.limits_met == ()
    assert matcher.is_accepting


@pytest.mark.slow
@pytest.mark.parametrize("max_tokens", [None, 4_000])
def test_a_mask_that_takes_long_meets_its_limit(max_tokens: int | None) -> None:
    """A search for a way to finish takes tenths of a second, and a budget asks for many."""
    pattern = "^(?=.*a.{16}b)(?=.*b.{17}a)(?=.*c.{18}a)(?=.*d.{19}a).*$"
    tokens = [bytes([byte]) for byte in range(256)]
    words = [bytes(letters) for letters in itertools.product(b"abcd", repeat=5)]
    vocabulary = constrain.Vocabulary.from_tokens([*tokens, *words, b""], eos=[len(tokens) + len(words)])
    constraint = constrain.compile({"type": "string", "pattern": pattern}, vocabulary, cache=False)
    matcher, row = constraint.matcher(max_tokens=max_tokens), constraint.allocate_bitmask()[0]
    assert matcher.accept(ord('"'))
    matcher.fill_bitmask(row)
    assert matcher.limits_met == ("MAX_MASK_WORK",)


def test_a_mask_is_given_up_when_its_time_is_over_and_computed_as_ever_afterwards() -> None:
    schema = {"type": "string", "pattern": "^(?=.*a.{5}b)(?=.*b.{6}a)(?=.*c.{7}a).*$"}
    vocabulary = byte_vocabulary()
    constraint = constrain.compile(schema, vocabulary, cache=False)
    matcher, row, stop = constraint.matcher(), constraint.allocate_bitmask()[0], kernel.StopTime()
    assert matcher.accept(ord('"'))
    stop.set(-1)
    with stop, pytest.raises(TimeoutError):
        matcher.fill_bitmask(row)
    assert matcher.n_accepted == 1
    again = constrain.compile(schema, vocabulary, cache=False).matcher()
    assert again.accept(ord('"'))
    assert list(allowed(matcher, row)) == list(allowed(again, row.copy()))
    assert matcher.limits_met == ()
    stop.set(100)
    with stop:
        assert len(allowed(matcher.fork(), row)) > 1
