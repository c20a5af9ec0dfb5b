"""Tools, reasoning and refusals, in all ways to generate."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Coroutine
from typing import Any

import pytest

import constrain
from constrain import Finished, TextDelta, tool
from constrain.chat.prompt.messages import check_messages
from constrain.events import ArgumentsDelta, CallEnded, CallStarted, ReasoningDelta
from constrain.generation.planning import make_plan
from constrain.results import Refusal
from constrain.tools import Reply
from tests.support import for_each
from tests.support.chat.templates import template


@tool
def get_weather(city: str, days: int = 1) -> str:
    """Weather of a city.

    Args:
        city: its name
    """
    return f"{city}: sunny, {days} days"


QUESTION = "What is the weather in Paris?"
CALLS: Any = {
    "tools": [get_weather],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "max_tokens": 50,
    "temperature": 0,
}


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 120))


def shown(model: constrain.Model, tokens: Any) -> str:
    return b"".join(map(model.vocabulary.token_bytes, tokens)).decode()


# Choices

NOTE = constrain.tools.CustomTool("note", "Takes a note.", constrain.Regex("[a-z]{3,9}"))
SUM = constrain.tools.CustomTool("sum", "Adds.", constrain.Lark('start: NUMBER ("+" NUMBER)*\nNUMBER: /[1-9][0-9]?/'))
TOOLS: list[Any] = [get_weather, NOTE, SUM]
ALLOWED = {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "note"}, {"name": "sum"}]}
CHOICES: dict[str, tuple[Any, set[str]]] = {
    "auto": ("auto", {"get_weather", "note", "sum"}),
    "required": ("required", {"get_weather", "note", "sum"}),
    "none": ("none", set()),
    "a name": ("note", {"note"}),
    "a list": ([get_weather, "sum"], {"get_weather", "sum"}),
    "allowed": (ALLOWED, {"note", "sum"}),
}
"""What is asked for, and what may be called."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_is_kept_and_its_calls_are_valid(model: constrain.Model, name: str) -> None:
    choice, names = CHOICES[name]
    options: Any = {"tools": TOOLS, "tool_choice": choice, "temperature": 1, "max_tokens": 70}
    found: set[str] = set()
    for seed in range(4):
        completion = constrain.complete(model, QUESTION, **options, seed=seed)
        reply = completion.value
        for call in reply:
            found.add(call.name)
            if call.name == "get_weather":
                assert get_weather(**json.loads(call.text)) == get_weather(**call.arguments)
            else:
                assert re.fullmatch("[a-z]{3,9}" if call.name == "note" else r"[1-9]\d?(\+[1-9]\d?)*", call.text)
        assert len({call.id for call in reply}) == len(reply)
        assert completion.usage.completion_tokens <= 70
        if name in ("required", "a name", "a list"):
            assert reply.calls
            assert reply.content is None
        results = [{"role": "tool", "tool_call_id": call.id, "content": "x"} for call in reply]
        assert check_messages([reply.message(), *results])[0].content == completion.text
    assert found <= names
    assert found or name in ("auto", "allowed", "none")


# Loops


@pytest.fixture(scope="module")
def done(model: constrain.Model) -> constrain.tools.ToolRun:
    return constrain.tools.run_tools(model, QUESTION, **CALLS, max_steps=2)


@pytest.mark.slow
def test_a_loop_shows_results_until_there_is_an_answer(done: constrain.tools.ToolRun) -> None:
    check_messages(done.messages)
    roles = [message["role"] for message in done.messages]
    assert roles == ["user", "assistant", "tool", "assistant"]
    called = json.loads(done.messages[1]["tool_calls"][0]["function"]["arguments"])
    assert done.messages[2]["content"] == get_weather(**called)
    assert isinstance(done.value, str)
    assert done.value == done.reply.text


@pytest.mark.slow
def test_a_loop_may_end_in_a_value(model: constrain.Model) -> None:
    done = constrain.tools.run_tools(model, QUESTION, **CALLS, max_steps=2, schema=bool)
    assert done.value in (True, False)
    first, second = done.completions
    assert second.usage.cached_tokens >= first.usage.prompt_tokens


# What a second turn evaluates


@pytest.mark.slow
def test_a_second_turn_with_results_evaluates_only_what_is_new(done: constrain.tools.ToolRun) -> None:
    first, second = done.completions
    # The prompt again, and the answer, if the tokenizer would write it as the model did.
    assert second.usage.cached_tokens >= first.usage.prompt_tokens
    assert second.usage.prompt_tokens > second.usage.cached_tokens


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"tools": [get_weather]}], ids=["schema", "schema and tools"])
def test_every_turn_with_a_schema_evaluates_only_what_is_new(model: constrain.Model, options: Any) -> None:
    messages: list[dict[str, Any]] = []
    known = 0
    for question in ("Is the sky blue?", "Is grass blue?", "Is blood blue?"):
        messages.append({"role": "user", "content": question})
        choice = {"tool_choice": "none"} if options else {}
        asked: Any = {**options, **choice, "schema": {"type": "object", "properties": {"blue": {"type": "boolean"}}}}
        completion = constrain.complete(model, messages, max_tokens=20, temperature=0, **asked)
        assert completion.usage.cached_tokens >= known
        known = completion.usage.prompt_tokens
        messages.append({"role": "assistant", "content": completion.text})


# Streams and batches


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["required", "none"])
def test_streams_give_the_pieces_of_the_reply(model: constrain.Model, choice: str) -> None:
    options: Any = {**CALLS, "tool_choice": choice, "parallel_tool_calls": True, "max_tokens": 60}

    async def read() -> list[Any]:
        return [event async for event in constrain.astream(model, QUESTION, **options)]

    *parts, last = constrain.stream(model, QUESTION, **options)
    others = run(read())
    assert isinstance(last, Finished)
    assert others[-1].completion.tokens == last.completion.tokens
    reply = last.completion.value
    assert bool(reply.calls) == (choice == "required")
    for events in (parts, others[:-1]):
        texts = [
            "".join(e.text for e in events if isinstance(e, ArgumentsDelta) and e.index == n) for n in range(len(reply))
        ]
        assert texts == [call.text for call in reply]
        assert [(e.id, e.name) for e in events if isinstance(e, CallStarted)] == [
            (each.id, each.name) for each in reply
        ]
        assert sum(isinstance(event, CallEnded) for event in events) == len(reply)
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == last.completion.text


@pytest.mark.slow
def test_batches_call_tools(model: constrain.Model) -> None:
    prompts = [QUESTION, "What is the weather in Rome?"]
    replies = constrain.generate_batch(model, prompts, **CALLS)
    assert [[call.name for call in reply[:1]] for reply in replies] == [["get_weather"]] * 2
    assert replies[0][0].id != replies[1][0].id
    assert replies[0][0].text == constrain.generate(model, QUESTION, **CALLS)[0].text
    drawn = constrain.complete_batch(model, prompts[:1], **{**CALLS, "temperature": 1, "seed": 3}, n=2)
    assert all(isinstance(completion.value, Reply) and completion.value for completion in drawn[0])


@pytest.mark.slow
def test_an_awaited_reply_calls_tools(model: constrain.Model) -> None:
    reply = run(constrain.agenerate(model, QUESTION, **CALLS))
    assert run(reply[0].acall()) == get_weather(**reply[0].arguments)


# Options


@pytest.mark.slow
def test_policies_are_for_arguments_too(model: constrain.Model) -> None:
    reply = constrain.generate(model, QUESTION, **CALLS, whitespace="compact")
    assert all(call.text == json.dumps(json.loads(call.text), separators=(",", ":")) for call in reply)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"tools": [get_weather], "registry": {}}, "registry"),
    ({"tools": [get_weather], "strict": True}, "strict"),
    ({"tools": [constrain.tools.CustomTool("note")], "numbers": "any"}, "numbers"),
    ({"tools": [get_weather], "tool_format": "xyz"}, "'xyz' is not a form of tool calls"),
    ({"tool_choice": "required"}, "there are no tools"),
    ({"allow_refusal": True}, "refusal needs content"),
    ({"tools": [get_weather], "max_reasoning_tokens": 0}, "max_reasoning_tokens is 0"),
]


@for_each("options, message", WRONG)
def test_options_that_do_not_go_together_are_refused(
    model: constrain.Model, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        constrain.generate(model, QUESTION, **options)


def test_strict_is_about_the_schema_beside_tools(model: constrain.Model) -> None:
    open_object = {"type": "object", "properties": {"a": {"type": "string"}}}
    with pytest.raises(constrain.SchemaError, match="additionalProperties"):
        constrain.generate(model, QUESTION, schema=open_object, tools=[get_weather], strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mistral-v3", "qwen3-coder"])
def test_calls_can_be_written_in_another_form(model: constrain.Model, name: str) -> None:
    options: Any = {**CALLS, "tool_format": name, "temperature": 1, "seed": 2}
    done = constrain.tools.run_tools(model, QUESTION, **options, max_steps=2)
    assert done.messages[1]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert "get_weather" not in done.completions[0].text


# Reasoning


THINKING = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n"
    "{% if enable_thinking is defined and not enable_thinking %}\n</think>\n\n{% endif %}{% endif %}"
)
"""The prompt begins the section, or ends it at once."""


@pytest.fixture(scope="module")
def thinking(model: constrain.Model) -> constrain.Model:
    return constrain.Model(model.llama, chat_template=THINKING)


def reasoning_tokens(model: constrain.Model, completion: constrain.Completion) -> int:
    """How many tokens the reasoning has."""
    length = len(completion.reasoning)
    return next(n for n in range(len(completion.tokens)) if len(shown(model, completion.tokens[:n])) >= length)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["harmony", "deepseek-r1", "functionary-v3.2"])
def test_free_text_without_room_for_its_marks_is_cut_and_no_error(model: constrain.Model, name: str) -> None:
    served = constrain.Model(model.llama, chat_template=template(name))
    for fields in ({}, {"tools": [get_weather]}, {"confidence": True, "logprobs": True, "trace": True}):
        options: Any = {"max_tokens": 1, **fields}
        completion = constrain.complete(served, QUESTION, **options)
        assert (completion.text, completion.tokens, completion.ended_by) == ("", (), "limit")
    for demanding in ({"tool_choice": "required"}, {"certificate": True}):
        options = {"max_tokens": 1, "tools": [get_weather], **demanding}
        with pytest.raises(constrain.BudgetError):
            constrain.complete(served, QUESTION, **options)


@pytest.mark.slow
def test_reasoning_is_apart_and_bounded(thinking: constrain.Model) -> None:
    for limit in (4, 16):
        completion = constrain.complete(thinking, QUESTION, max_tokens=40, max_reasoning_tokens=limit, seed=1)
        assert completion.reasoning
        assert reasoning_tokens(thinking, completion) <= limit
        written = shown(thinking, completion.tokens)
        assert written.startswith(f"{completion.reasoning}</think>")
        assert completion.text == written[len(completion.reasoning) + len("</think>") :].lstrip("\n")
        assert completion.value == completion.text


@pytest.mark.slow
def test_half_of_the_tokens_are_left_for_an_answer_that_must_be_whole(thinking: constrain.Model) -> None:
    options: Any = {"thinking": True, "max_tokens": 40, "seed": 1}
    completion = constrain.complete(thinking, QUESTION, schema={"type": "string"}, **options)
    assert 0 < reasoning_tokens(thinking, completion) <= 20
    text = constrain.complete(thinking, QUESTION, max_tokens=40, seed=1)
    assert reasoning_tokens(thinking, text) > 20
    assert constrain.complete(thinking, QUESTION, max_tokens=80, seed=1).reasoning.startswith(text.reasoning)


@pytest.mark.slow
def test_a_value_comes_at_once_unless_reasoning_is_asked_for(thinking: constrain.Model) -> None:
    at_once = constrain.complete(thinking, "Is the sky blue?", schema=bool, max_tokens=30)
    assert (at_once.reasoning, at_once.value) in (("", True), ("", False))
    first = constrain.complete(thinking, "Is the sky blue?", schema=bool, thinking=True, max_tokens=30, seed=1)
    assert first.reasoning
    assert first.value in (True, False)
    assert json.loads(first.text) == first.value


def test_answers_behind_reasoning_are_sampled(thinking: constrain.Model) -> None:
    assert make_plan(thinking, QUESTION, bool, {}).is_greedy
    assert not make_plan(thinking, QUESTION, bool, {"thinking": True}).is_greedy
    assert not make_plan(thinking, QUESTION, None, {"tools": [get_weather]}).is_greedy
    assert make_plan(thinking, QUESTION, None, {"tools": [get_weather], "thinking": False}).is_greedy


def test_a_model_can_be_told_not_to_reason(thinking: constrain.Model) -> None:
    completion = constrain.complete(thinking, QUESTION, thinking=False, max_tokens=10)
    assert completion.reasoning == ""
    assert completion.text == shown(thinking, completion.tokens)


@pytest.mark.slow
def test_reasoning_comes_before_calls_and_goes_into_the_next_turn(thinking: constrain.Model) -> None:
    options = {**CALLS, "max_reasoning_tokens": 8}
    *parts, last = constrain.stream(thinking, QUESTION, **options)
    reply = last.completion.value  # type: ignore[union-attr]
    kinds = [type(event) for event in parts]
    assert kinds[0] is ReasoningDelta
    assert ReasoningDelta not in kinds[kinds.index(CallStarted) :]
    assert "".join(event.text for event in parts if isinstance(event, ReasoningDelta)) == reply.reasoning
    assert [call.name for call in reply[:1]] == ["get_weather"]
    assert reply.message()["reasoning_content"] == reply.reasoning
    done = constrain.tools.run_tools(thinking, QUESTION, **options, max_steps=2)
    assert check_messages(done.messages)[1].reasoning == reply.reasoning


# Refusals

PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}}, "required": ["name"]}


def biased(model: constrain.Model, bias: float) -> dict[int, float]:
    """A bias for the tokens that refusals begin with."""
    vocabulary = model.vocabulary
    return {token: bias for token in range(vocabulary.n_vocab) if vocabulary.token_bytes(token)[:1] == b"R"}


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"tools": [get_weather], "tool_choice": "none"}], ids=["alone", "with tools"])
def test_an_answer_is_a_value_or_a_refusal(model: constrain.Model, options: dict[str, Any]) -> None:
    asked: Any = {"schema": PERSON, "allow_refusal": True, "max_tokens": 30, "seed": 1, **options}
    refused = constrain.generate(model, "Who are you?", **asked, logit_bias=biased(model, 1000))
    answered = constrain.generate(model, "Who are you?", **asked, logit_bias=biased(model, -1000))
    if options:
        assert (refused.content, answered.refusal) == (None, None)
        assert check_messages([refused.message()])[0].content == refused.refusal
        refused, answered = Refusal(refused.refusal), answered.content
    assert isinstance(refused, Refusal)
    assert not refused.text.startswith("Refusal")
    assert set(answered) == {"name"}


@pytest.mark.slow
def test_a_refusal_is_not_possible_unless_it_is_allowed(model: constrain.Model) -> None:
    options: Any = {"schema": PERSON, "max_tokens": 30, "logit_bias": biased(model, 1000)}
    assert set(constrain.generate(model, "Who are you?", **options)) == {"name"}


@pytest.mark.slow(only=("500",))
@pytest.mark.parametrize("depth", [500, 700, 2000])
def test_tools_that_are_nested_too_deeply_are_refused_by_name(model: constrain.Model, depth: int) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    deep = {"type": "function", "name": "deep", "parameters": {"type": "object", "properties": {"deep": schema}}}
    with pytest.raises((ValueError, constrain.ConstrainError), match=r"nested (too )?deep"):
        constrain.generate(model, "Hello", tools=[deep], tools_shown="all", max_tokens=5)
