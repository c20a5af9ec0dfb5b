"""Lexemes with a temperature and a limit of their own, on a real model."""

from __future__ import annotations

import re

import pytest

import constrain
from constrain.language.grammar import Grammar, GrammarBuilder
from constrain.regex.parsing.parser import parse_pattern

PROMPT = "Make up a name and a number."


def grammar(temperature: float | None = None, max_tokens: int | None = None) -> Grammar:
    """A name with these options, and a number without any."""
    builder = GrammarBuilder()
    name = builder.terminal(
        "NAME", parse_pattern("[A-Z][a-z]{2,9}", "rust"), temperature=temperature, max_tokens=max_tokens
    )
    number = builder.terminal("NUMBER", parse_pattern(": [0-9]{2}", "rust"))
    builder.define(builder.rule("start"), [[name, number]])
    return builder.build()


def answers(model: constrain.Model, schema: Grammar, temperature: float) -> set[str]:
    return {constrain.generate(model, PROMPT, schema=schema, temperature=temperature, seed=seed) for seed in range(8)}


@pytest.mark.slow
def test_a_lexeme_is_sampled_at_its_own_temperature(model: constrain.Model) -> None:
    assert len(answers(model, grammar(), 0)) == 1
    assert len(answers(model, grammar(1.5), 0)) > 2


@pytest.mark.slow
def test_a_lexeme_of_temperature_0_is_the_likeliest_one(model: constrain.Model) -> None:
    assert len({text.partition(":")[0] for text in answers(model, grammar(), 2)}) > 2
    found = answers(model, grammar(0), 2)
    assert len({text.partition(":")[0] for text in found}) == 1
    assert len(found) > 2  # the number is sampled at the caller's temperature


@pytest.mark.slow
@pytest.mark.parametrize("most", [2, 3])
def test_a_lexeme_is_whole_within_its_tokens(most: int, model: constrain.Model) -> None:
    schema = grammar(max_tokens=most)
    for seed in range(6):
        completion = constrain.complete(model, PROMPT, schema=schema, temperature=1.5, seed=seed)
        assert re.fullmatch("[A-Z][a-z]{2,9}: [0-9]{2}", completion.text)
        starts = []
        at = 0
        for token in completion.tokens:
            starts.append(at)
            at += len(model.vocabulary.token_bytes(token))
        assert sum(start < completion.text.index(":") for start in starts) <= most
        assert completion.finish_reason == "stop"
