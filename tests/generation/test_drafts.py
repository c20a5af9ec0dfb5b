"""Drafts: text in front of answers that stay complete, within all limits, everywhere."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, Field

import constrain
from constrain import Finished, TextDelta
from constrain.errors import DraftError
from constrain.events import ReasoningDelta
from constrain.generation.planning import DRAFT_PLACE, prepare
from constrain.generation.running import Run, Running
from constrain.llama.decoding.decode import Decoding
from tests.support import each_row, for_each

QUESTION = "Ada is 36 years old. Who is she?"


class Person(BaseModel):
    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=120)


def double(number: int) -> int:
    """Doubles a number."""
    return 2 * number


def halve(number: int) -> int:
    """Halves a number."""
    return number // 2


def check(completion: constrain.Completion, model: constrain.Model) -> None:
    """Checks the counts of tokens, and that the draft has the tokens that it should have."""
    usage = completion.usage
    assert usage.completion_tokens == usage.draft_tokens + len(completion.tokens)
    assert bool(completion.draft) == bool(usage.draft_tokens)
    assert len(completion.draft.encode()) >= usage.draft_tokens
    assert completion.reasoning == ""
    assert model.vocabulary.n_vocab > max(completion.tokens)


def test_a_draft_comes_first_and_the_answer_is_apart(model: constrain.Model) -> None:
    completion = constrain.complete(model, QUESTION, schema=Person, draft=True, temperature=0, max_tokens=80)
    assert isinstance(completion.value, Person)
    assert completion.draft
    assert Person.model_validate_json(completion.text) == completion.value
    check(completion, model)
    plain = constrain.complete(model, QUESTION, schema=Person, temperature=0, max_tokens=80)
    assert (plain.draft, plain.usage.draft_tokens) == ("", 0)
    with pytest.raises(constrain.BudgetError) as caught:
        constrain.complete(model, QUESTION, schema=Person, draft=20, max_tokens=21)
    exact = constrain.complete(model, QUESTION, schema=Person, draft=20, max_tokens=caught.value.needed)
    assert exact.usage.draft_tokens <= 20
    assert exact.usage.completion_tokens <= caught.value.needed


def test_a_stream_has_the_draft_before_the_answer(model: constrain.Model) -> None:
    asked: dict[str, Any] = {"schema": Person, "draft": 12, "temperature": 0}
    *fields, _ = constrain.stream(model, QUESTION, partial=True, **asked)
    names = [type(event).__name__ for event in fields]
    assert names[0] == "ReasoningDelta"
    assert set(names[names.index("FieldEvent") :]) == {"FieldEvent"}
    *events, last = constrain.stream(model, QUESTION, logprobs=True, **asked)
    assert isinstance(last, Finished)
    completion = last.completion
    kinds = [type(event) for event in events]
    begin = kinds.index(TextDelta)
    assert set(kinds[:begin]) == {ReasoningDelta}
    assert set(kinds[begin:]) == {TextDelta}
    assert "".join(event.text for event in events[:begin]) == completion.draft  # type: ignore[union-attr]
    assert "".join(event.text for event in events[begin:]) == completion.text  # type: ignore[union-attr]
    assert completion.logprobs is not None
    assert [each.token for each in completion.logprobs] == list(completion.tokens)


def test_a_batch_with_errors_in_their_places(model: constrain.Model) -> None:
    long = "Ada. " * 2000
    answers = constrain.complete_batch(
        model, [QUESTION, long, "Bob is 5."], schema=Person, draft=10, temperature=0, return_errors=True
    )
    assert isinstance(answers[1], constrain.ModelError)
    for answer in (answers[0], answers[2]):
        assert answer.draft
        assert answer.usage.draft_tokens <= 10
        check(answer, model)
    assert answers[0].draft != answers[2].draft
    refused = constrain.complete_batch(
        model, [QUESTION, "Who?"], schema=Person, draft=10, max_tokens=11, return_errors=True
    )
    assert all(isinstance(error, constrain.BudgetError) for error in refused)


@pytest.mark.slow
def test_each_vote_has_a_draft_of_its_own(model: constrain.Model) -> None:
    answer = constrain.complete(
        model, QUESTION, schema=Person, draft=16, n=3, vote=True, seed=1, temperature=1.2, max_tokens=60
    )
    assert len({sample.draft for sample in answer.votes}) > 1
    assert answer.usage.draft_tokens == sum(sample.usage.draft_tokens for sample in answer.votes)
    for sample in answer.votes:
        check(sample, model)


@pytest.mark.parametrize("choice", ["auto", double, ["double", "halve"]])
def test_tools_keep_their_choice(choice: Any, model: constrain.Model) -> None:
    completion = constrain.complete(
        model, "What is 21 doubled?", tools=[double, halve], tool_choice=choice, draft=16, temperature=0, max_tokens=120
    )
    reply = completion.value
    assert isinstance(reply, constrain.tools.Reply)
    assert completion.draft
    check(completion, model)
    assert reply.reasoning == ""
    if choice != "auto":
        assert reply.calls
    if choice is double:
        assert [call.name for call in reply.calls] == ["double"]
    for call in reply.calls:
        assert set(json.loads(call.text)) == {"number"}


def test_a_conversation_with_tools_runs_with_drafts(model: constrain.Model) -> None:
    run = constrain.tools.run_tools(
        model, "What is 7 doubled?", tools=[double], tool_choice="required", max_steps=2, max_tokens=60, draft=8, seed=1
    )
    assert [bool(one.usage.draft_tokens) for one in run.completions] == [True, True]
    assert "reasoning_content" not in run.messages[1]


@each_row(
    "schema, pattern",
    (constrain.Regex("[a-z]{3,8}"), r"[a-z]{3,8}"),
    (constrain.Lark('start: "yes" | "no"'), "yes|no"),
    ({"enum": ["red", "blue"]}, '"(red|blue)"'),
)
def test_answers_of_every_language_may_follow_a_draft(schema: Any, pattern: str, model: constrain.Model) -> None:
    completion = constrain.complete(model, "Is the sky blue?", schema=schema, draft=8, temperature=0)
    assert constrain.compile(constrain.Regex(pattern), model.vocabulary).accepts(completion.text)
    check(completion, model)


def test_a_model_without_a_template_writes_drafts(model: constrain.Model) -> None:
    plain = constrain.Model(model.llama, chat_template="")
    completion = constrain.complete(plain, QUESTION, schema=Person, draft=12, temperature=0, max_tokens=60)
    assert isinstance(completion.value, Person)
    assert completion.draft
    check(completion, plain)


def test_the_shown_prompt_has_the_place_of_the_draft(model: constrain.Model) -> None:
    shown = constrain.prompts.shown_prompt(model, QUESTION, schema=Person, draft=True)
    before, place, behind = shown.partition(DRAFT_PLACE)
    assert place
    assert "First think" in before
    assert "Now give the answer in the format above." in behind
    assert "Now call a tool, or answer." in constrain.prompts.shown_prompt(model, QUESTION, tools=[double], draft=True)
    without = constrain.prompts.shown_prompt(model, QUESTION, schema=Person, draft=True, show_schema=False)
    assert "Now give the answer.<" in without
    assert "First think" not in constrain.prompts.shown_prompt(model, QUESTION, schema=Person)


@pytest.fixture(scope="module")
def reasoning(model: constrain.Model) -> constrain.Model:
    source = (
        "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: <think>\n{% endif %}{# </think> #}"
    )
    return constrain.Model(model.llama, chat_template=source)


def test_a_model_that_always_reasons_needs_no_draft(reasoning: constrain.Model) -> None:
    with pytest.raises(DraftError, match="this model reasons before each answer"):
        constrain.complete(reasoning, QUESTION, schema=Person, draft=True)


@for_each(
    "options, message",
    ({"schema": None}, "draft needs a schema or tools; without them, the answer is free text already"),
    ({"thinking": True}, "draft and thinking=True exclude each other"),
    ({"draft": 0}, "draft is 0; it must be True, False, or 1 token or more"),
    ({"draft": -3}, "draft is -3; it must be"),
    ({"draft": 20, "max_tokens": 20}, "draft is 20 and max_tokens is 20; max_tokens counts the draft and the answer"),
)
def test_contradictions_are_refused(options: dict[str, Any], message: str, model: constrain.Model) -> None:
    with pytest.raises(ValueError, match=message):
        constrain.complete(model, QUESTION, **{"schema": Person, "draft": True, **options})


@pytest.mark.parametrize("value", ["yes", 1.5, None])
def test_a_draft_of_another_type_is_refused(value: Any, model: constrain.Model) -> None:
    with pytest.raises(TypeError, match=r"draft is .*; it must be True, False or a whole number of tokens"):
        constrain.complete(model, QUESTION, schema=Person, draft=value)


class TurnsBack:
    """After its first two tokens an answer begins again."""

    def __init__(self, _: Any) -> None:
        self.begun = 0

    def allows(self, *_: Any) -> bool:
        self.begun += 1
        return self.begun != 3

    def doubts(self, _: int) -> bool:
        return self.begun < 3


def test_tokens_taken_back_behind_a_draft_leave_no_trace(model: constrain.Model) -> None:
    schema = {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "maxItems": 5}
    options: Any = {"max_tokens": 60, "temperature": 0, "draft": 12}
    wanted = constrain.complete(model, QUESTION, schema=schema, **options)
    plan = prepare(model, QUESTION, schema, options)
    plan = replace(plan, call_or_content=TurnsBack)
    together = Run(plan)
    together.submit()
    together.request.done.result(60)
    completion = together.finish()[1]
    assert (completion.draft, completion.tokens) == (wanted.draft, wanted.tokens)
    alone = Running(plan).answer
    list(Decoding(model.context, alone).steps())
    assert tuple(alone.tokens) == wanted.tokens
