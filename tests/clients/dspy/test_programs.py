"""What DSPy alone asks for: signatures, examples, ReAct, threads, memory and streams of one field."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from adapter import connect, weather
from dspy.utils.exceptions import AdapterParseError
from shared import PROMPT, QUESTION


@pytest.fixture(autouse=True)
def lm() -> Iterator[dspy.LM]:
    """The model that all programs of a test ask, through the adapter that sends schemas."""
    found = connect()
    with dspy.context(lm=found, adapter=dspy.JSONAdapter()):
        yield found


def test_the_server_is_sent_schemas_and_tools(lm: dspy.LM) -> None:
    assert lm.supports_response_schema
    assert lm.supports_function_calling


@pytest.mark.parametrize("program", [dspy.Predict, dspy.ChainOfThought])
def test_fields_are_of_their_types(program: Any) -> None:
    made = program("text -> mood: Literal['good', 'bad'], age: int, is_adult: bool")
    made.demos = [dspy.Example(text="Bo is 3.", mood="bad", age=3, is_adult=False)]
    found = made(text=PROMPT)
    assert found.mood in ("good", "bad")
    assert isinstance(found.age, int)
    assert isinstance(found.is_adult, bool)


def test_asynchronous_code_and_threads_ask() -> None:
    program = dspy.Predict("text -> age: int")
    assert isinstance(asyncio.run(program.acall(text=PROMPT)).age, int)
    examples = [dspy.Example(text=f"Ada is {age}.").with_inputs("text") for age in (3, 30, 90)]
    found = program.batch(examples, num_threads=3, disable_progress_bar=True)
    assert all(isinstance(each.age, int) for each in found)


def test_calls_are_executed_in_a_loop() -> None:
    with dspy.context(lm=connect(parallel_tool_calls=False)):
        program = dspy.ReActV2("question -> is_sunny: bool", tools=[weather], max_iters=2)
        assert isinstance(program(question=QUESTION).is_sunny, bool)


def test_react_gets_json_of_any_form(lm: dspy.LM) -> None:
    """The arguments are an open dictionary, for which DSPy asks for ``json_object``: names of tools may be wrong."""
    with contextlib.suppress(AdapterParseError):
        dspy.ReAct("question -> is_sunny: bool", tools=[weather], max_iters=1)(question=QUESTION)
    assert lm.history
    for entry in lm.history:
        [text] = entry["outputs"]
        assert isinstance(json.loads(text), dict)


def test_answers_are_remembered_unless_that_is_off_and_several_may_come() -> None:
    with dspy.context(lm=connect(cache=True, temperature=1)):
        first, second = (dspy.Predict("text -> words: str")(text="Any words.").words for _ in range(2))
    assert first == second
    assert len(connect(n=2, temperature=1)("A number?", max_tokens=4)) == 2
