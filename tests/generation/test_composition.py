"""Answers of a real model that are composed of parts: each is whole, and within its tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

import constrain
from constrain import Regex, choice, grammars, sequence, text

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}


@pytest.mark.slow
@pytest.mark.parametrize("max_tokens", [30, 60])
def test_reasoning_comes_before_json(max_tokens: int, model: constrain.Model) -> None:
    reasoned = sequence(text(until="\n\n", max_length=200), "\n\n", PERSON)
    for seed in range(3):
        prompt = "Ada is 36 years old. Who is she?"
        completion = constrain.complete(model, prompt, schema=reasoned, max_tokens=max_tokens, seed=seed)
        assert completion.value == completion.text
        assert len(completion.tokens) <= max_tokens
        reasoning, _, answer = completion.text.partition("\n\n")
        assert len(reasoning) <= 200
        assert json.loads(answer).keys() == {"name", "age"}  # generation closes objects


@pytest.mark.slow
def test_one_of_several_tools_is_called(model: constrain.Model) -> None:
    query = sequence("```sql\n", grammars.load("sql_select"), "\n```")
    tools = choice(sequence("person: ", PERSON), sequence("code: ", Regex("[A-Z]{3}")), query)
    constraint = constrain.compile(tools, model.vocabulary)
    for seed in range(4):
        completion = constrain.complete(model, "Go on.", schema=tools, temperature=1.2, max_tokens=40, seed=seed)
        assert constraint.accepts(completion.text)
        assert len(completion.tokens) <= 40
