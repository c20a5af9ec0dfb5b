"""Signatures with typed outputs: what is sent, and what comes back."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Literal

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError, LMError
from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("lm")


class Person(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)
    mood: Literal["good", "bad"]


class Step(BaseModel):
    words: str = Field(max_length=12)
    minutes: int = Field(ge=1, le=9)


class Plan(BaseModel):
    steps: list[Step] = Field(min_length=1, max_length=2)


class Extract(dspy.Signature):
    """Who is it?"""

    text: str = dspy.InputField()
    person: Person = dspy.OutputField()


class Outline(dspy.Signature):
    """Make a plan."""

    task: str = dspy.InputField()
    plan: Plan = dspy.OutputField()
    urgent: bool = dspy.OutputField()


class Never(BaseModel):
    """Nothing matches."""

    word: str = Field(json_schema_extra={"pattern": "(?=x)y"})


class Refused(dspy.Signature):
    """No word matches."""

    text: str = dspy.InputField()
    never: Never = dspy.OutputField()


TEXT = "Ada is 36 years old."


def test_the_server_is_sent_the_schema(lm: dspy.LM) -> None:
    assert lm.supports_response_schema
    assert lm.supports_function_calling


def test_a_class_is_returned() -> None:
    assert isinstance(dspy.Predict(Extract)(text=TEXT).person, Person)


def test_nested_classes_are_returned() -> None:
    found = dspy.Predict(Outline)(task="Buy bread.")
    assert isinstance(found.plan, Plan)
    assert isinstance(found.urgent, bool)


def test_a_literal_is_one_of_its_texts() -> None:
    signature = dspy.Signature("text -> mood: Literal['good', 'bad', 'none']")
    assert dspy.Predict(signature)(text=TEXT).mood in ("good", "bad", "none")


def test_numbers_and_lists_are_returned() -> None:
    found = dspy.Predict("text -> age: int, is_adult: bool")(text=TEXT)
    assert isinstance(found.age, int)
    assert isinstance(found.is_adult, bool)


def test_reasoning_comes_first() -> None:
    found = dspy.ChainOfThought("text -> is_adult: bool")(text=TEXT)
    assert isinstance(found.reasoning, str)
    assert isinstance(found.is_adult, bool)


def test_examples_go_before() -> None:
    program = dspy.Predict("text -> is_adult: bool")
    program.demos = [dspy.Example(text="Bo is 3.", is_adult=False)]
    assert isinstance(program(text=TEXT).is_adult, bool)


def test_a_dictionary_is_any_object() -> None:
    """DSPy asks for ``json_object``: which keys there are, only the prompt says. So an answer may lack the field."""
    with contextlib.suppress(AdapterParseError):
        assert isinstance(dspy.Predict("text -> facts: dict[str, str]")(text=TEXT).facts, dict)


def test_asynchronous_code_is_answered() -> None:
    assert isinstance(asyncio.run(dspy.Predict(Extract).acall(text=TEXT)).person, Person)


def test_several_threads_ask() -> None:
    program = dspy.Predict(Extract)
    examples = [dspy.Example(text=f"Ada is {age}.").with_inputs("text") for age in (3, 30, 90)]
    found = program.batch(examples, num_threads=3, disable_progress_bar=True)
    assert all(isinstance(each.person, Person) for each in found)


def test_answers_are_remembered_unless_that_is_off(connect: Callable[..., dspy.LM]) -> None:
    with dspy.context(lm=connect(cache=True, temperature=1), adapter=dspy.JSONAdapter()):
        first, second = (dspy.Predict("text -> words: str")(text="Any words.").words for _ in range(2))
    assert first == second


def test_too_few_tokens_for_any_answer_are_refused(connect: Callable[..., dspy.LM]) -> None:
    with dspy.context(lm=connect(max_tokens=2), adapter=dspy.JSONAdapter()), pytest.raises(LMError, match="enough"):
        dspy.Predict(Extract)(text=TEXT)


def test_a_schema_that_cannot_be_enforced_is_refused() -> None:
    with pytest.raises(LMError, match="word"):
        dspy.Predict(Refused)(text=TEXT)
