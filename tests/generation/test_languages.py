"""Answers in patterns, grammars and compositions: whole texts, within their tokens, in every way to ask for one."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import constrain
from constrain import Finished, Lark, Regex, TextDelta, grammars
from constrain.parts import choice, sequence, text
from tests.support import LONG

SEEDS = range(40 if LONG else 4)
PROMPT = "Make up a name and a number."
PLATE = Regex(r"[A-Z]{1,3}-[0-9]{1,4}")
SUM = Lark('start: sum \n sum: NUMBER | "(" sum ("+" | "-") sum ")" \n NUMBER: /[1-9][0-9]{0,2}/')
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
REASONED = sequence(text(until="\n\n", max_length=200), "\n\n", PERSON)
TOOLS = choice(
    sequence("person: ", PERSON),
    sequence("code: ", Regex("[A-Z]{3}")),
    sequence("```sql\n", grammars.load("sql_select"), "\n```"),
)


def is_reasoned(answer: str) -> bool:
    reasoning, _, value = answer.partition("\n\n")
    return len(reasoning) <= 200 and json.loads(value).keys() == {"name", "age"}  # generation closes objects


def is_sum(answer: str) -> bool:
    return isinstance(ast.parse(answer, mode="eval").body, ast.BinOp | ast.Constant)


def matches(pattern: str) -> Callable[[str], bool]:
    return lambda answer: re.fullmatch(pattern, answer) is not None


WORDS = r"\w+(, \w+)*\."
LANGUAGES: dict[str, tuple[Any, Callable[[str], bool], tuple[int, ...]]] = {
    "a pattern": (PLATE, matches(PLATE.pattern), (10,)),
    "a list of words": (Regex(WORDS), matches(WORDS), (2, 3, 4, 6)),
    "a grammar": (SUM, is_sum, (3, 30)),
    "ready SQL": (grammars.load("sql_select"), matches(r"(?is)[(\s]*(select|with)\b.+"), (20, 40)),
    "a ready patch": (grammars.load("file_patch"), matches(r"(?s)\*\*\* Begin Patch\r?\n.+\*\*\* End Patch\s*"), (40,)),
    "text and JSON": (REASONED, is_reasoned, (30, 60)),
    "one of several": (TOOLS, matches(r"(?s)person: \{.*\}|code: [A-Z]{3}|```sql\n.+\n```"), (40,)),
}
"""The language, what its texts are, and budgets."""


@pytest.mark.slow
@pytest.mark.parametrize("name", LANGUAGES)
def test_answers_are_whole_texts_within_their_tokens(name: str, model: constrain.Model) -> None:
    source, is_one, budgets = LANGUAGES[name]
    for seed in SEEDS:
        for most in budgets:
            completion = constrain.complete(
                model, PROMPT, schema=source, temperature=1, top_k=0, top_p=1, min_p=0, seed=seed, max_tokens=most
            )
            assert completion.value == completion.text
            assert is_one(completion.text), completion.text
            assert len(completion.tokens) <= most


def test_all_ways_to_generate_take_a_pattern(model: constrain.Model) -> None:
    options: Any = {"schema": PLATE, "temperature": 0}
    completion = constrain.complete(model, PROMPT, **options)
    *deltas, last = constrain.stream(model, PROMPT, **options)
    assert isinstance(last, Finished)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == completion.text
    several = constrain.generate_batch(model, [PROMPT] * 2, **options)
    later = asyncio.run(constrain.agenerate(model, PROMPT, **options))
    assert [last.completion.value, *several, later] == [completion.text] * 4


def test_of_several_answers_only_those_with_a_json_schema_have_policies(model: constrain.Model) -> None:
    kinds = [PLATE, {"enum": [[1, 2]]}, None]
    plate, pair, free = constrain.complete_batch(
        model, [PROMPT] * 3, schemas=kinds, whitespace="compact", max_tokens=20
    )
    assert re.fullmatch(PLATE.pattern, plate.value)
    assert pair.text == "[1,2]"
    assert free.report is None


def test_an_answer_may_be_empty(model: constrain.Model) -> None:
    completion = constrain.complete(model, PROMPT, schema=Regex("[a-z]{0,30}"), max_tokens=0)
    assert (completion.value, completion.tokens, completion.finish_reason) == ("", (), "length")
    assert constrain.generate(model, PROMPT, schema=Regex("")) == ""


def test_a_budget_that_no_answer_fits_names_one_that_is_enough(model: constrain.Model) -> None:
    for source in (PLATE, SUM, REASONED):
        with pytest.raises(constrain.BudgetError) as caught:
            constrain.complete(model, PROMPT, schema=source, max_tokens=0)
        assert constrain.complete(model, PROMPT, schema=source, max_tokens=caught.value.needed).text


def test_the_prompt_shows_the_grammar(model: constrain.Model) -> None:
    assert "NUMBER" in constrain.prompts.shown_prompt(model, "Write a sum.", schema=SUM)
    assert "NUMBER" not in constrain.prompts.shown_prompt(model, "Write a sum.", schema=SUM, show_schema=False)


# Lexemes with a temperature and a limit of their own
