"""Answers of a real model that match a grammar: each is in its language, whole, and within its tokens."""

from __future__ import annotations

import ast

import pytest

import constrain
from constrain import Lark, grammars

SUM = Lark('start: sum \n sum: NUMBER | "(" sum ("+" | "-") sum ")" \n NUMBER: /[1-9][0-9]{0,2}/')


def test_the_value_is_a_text_of_the_grammar(model: constrain.Model) -> None:
    for seed in range(5):
        text = constrain.generate(model, "Write a sum.", schema=SUM, seed=seed, max_tokens=30)
        assert isinstance(ast.parse(text, mode="eval").body, ast.BinOp | ast.Constant)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sql_select", "python_expression", "file_patch", "toml"])
def test_a_ready_grammar_is_met_at_any_temperature(name: str, model: constrain.Model) -> None:
    grammar = grammars.load(name)
    constraint = constrain.compile(grammar, model.vocabulary)
    for seed in range(3):
        completion = constrain.complete(model, "Go on.", schema=grammar, temperature=1.5, max_tokens=40, seed=seed)
        assert constraint.accepts(completion.text)
        assert len(completion.tokens) <= 40


@pytest.mark.slow
def test_the_prompt_shows_the_grammar(model: constrain.Model) -> None:
    shown = constrain.complete(model, "Write a sum.", schema=SUM, max_tokens=20).usage.prompt_tokens
    hidden = constrain.complete(model, "Write a sum.", schema=SUM, max_tokens=20, show_schema=False).usage.prompt_tokens
    assert shown > hidden


@pytest.mark.slow
def test_no_answer_fits(model: constrain.Model) -> None:
    with pytest.raises(constrain.BudgetError) as caught:
        constrain.complete(model, "Go on.", schema=grammars.load("sql_select"), max_tokens=2)
    assert (
        constrain.complete(model, "Go on.", schema=grammars.load("sql_select"), max_tokens=caught.value.needed)
        .text.lower()
        .startswith("select")
    )
