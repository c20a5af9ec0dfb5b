"""The temperature that a grammar asks for: of the lexeme under way, or of those that may follow."""

from __future__ import annotations

import pytest

import constrain
from constrain.language.grammar import Grammar, GrammarBuilder
from constrain.regex.parsing.parser import parse_pattern
from tests.support import byte_vocabulary


def grammar(*lexemes: tuple[str, float | None], alternatives: bool = False) -> Grammar:
    """The lexemes one after another, or one of them, each with its temperature."""
    builder = GrammarBuilder()
    start = builder.rule("start")
    symbols = [
        builder.terminal(pattern, parse_pattern(pattern, "rust"), temperature=temperature)
        for pattern, temperature in lexemes
    ]
    builder.define(start, [[symbol] for symbol in symbols] if alternatives else [symbols])
    return builder.build()


def temperatures(constraint: constrain.Constraint, text: bytes) -> list[float | None]:
    """The temperature before each byte, and behind the last one."""
    matcher = constraint.matcher()
    found = [matcher.temperature]
    for byte in text:
        assert matcher.accept(byte)
        found.append(matcher.temperature)
    return found


def test_a_temperature_holds_while_its_lexeme_is_written() -> None:
    constraint = constrain.compile(grammar(("<<", None), ("[a-z]+", 0.7), (">", None)), byte_vocabulary())
    assert temperatures(constraint, b"<<ab>") == [None, None, 0.7, 0.7, 0.7, None]


def test_temperature_0_is_a_temperature() -> None:
    constraint = constrain.compile(grammar(("[0-9]+", 0.0), ("a{2}", None)), byte_vocabulary())
    assert temperatures(constraint, b"1aa") == [0.0, 0.0, None, None]


def test_the_highest_temperature_of_several_lexemes_holds() -> None:
    lexemes = (("[a-z]+", 0.2), ("[a-z0-9]+!", 1.5), ("[A-Z]+", None))
    constraint = constrain.compile(grammar(*lexemes, alternatives=True), byte_vocabulary())
    assert temperatures(constraint, b"ab1!") == [1.5, 1.5, 1.5, 1.5, None]
    assert temperatures(constraint, b"A") == [1.5, None]


def test_a_lexeme_that_may_continue_has_its_own_temperature() -> None:
    constraint = constrain.compile(grammar(("[0-9]+", None), ("[a-z]{2}", 0.9)), byte_vocabulary())
    assert temperatures(constraint, b"12ab") == [None, None, None, 0.9, None]


def test_forks_rollback_and_reset_have_the_temperature_of_their_place() -> None:
    matcher = constrain.compile(grammar(("<", None), ("[a-z]+", 0.5)), byte_vocabulary()).matcher()
    assert matcher.accept(ord("<"))
    assert matcher.fork().temperature == 0.5
    matcher.rollback(1)
    assert matcher.temperature is None
    assert matcher.accept_many(b"<a") == 2
    matcher.reset()
    assert matcher.temperature is None


def test_grammars_that_differ_in_temperatures_are_different_in_the_cache(tmp_path: object) -> None:
    constrain.compile(grammar(("[a-z]+", 0.25)), byte_vocabulary(), cache=str(tmp_path)).precompute(max_masks=1)
    stored = constrain.compile(grammar(("[a-z]+", 0.25)), byte_vocabulary(), cache=str(tmp_path))
    assert stored.matcher().temperature == 0.25
    other = constrain.compile(grammar(("[a-z]+", 0.5)), byte_vocabulary(), cache=str(tmp_path))
    assert other.matcher().temperature == 0.5


@pytest.mark.parametrize("temperature", [-1.0, float("nan"), float("inf")])
def test_a_temperature_that_is_none_is_refused(temperature: float) -> None:
    with pytest.raises(constrain.GrammarError, match="temperature must be a finite number"):
        constrain.compile(grammar(("a", temperature)), byte_vocabulary())
