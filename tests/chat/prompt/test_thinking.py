"""Reasoning: where a prompt leaves the section, and which reasoning of earlier answers it shows."""

from __future__ import annotations

from typing import Any

import pytest

from constrain.chat.prompt.conversation import ThinkingState, conversation_prompt
from tests.support import for_each
from tests.support.chat.characters import Characters
from tests.support.chat.conversations import TOOLS, TWO_CALLS
from tests.support.chat.rendering import prompt
from tests.support.chat.templates import FAMILIES, template

TOKENIZER: Any = Characters()

STATES: list[tuple[str, dict[str, Any], ThinkingState]] = [
    ("qwen2.5", {}, ThinkingState.ABSENT),
    ("qwen3", {}, ThinkingState.POSSIBLE),
    ("qwen3", {"enable_thinking": True}, ThinkingState.POSSIBLE),
    ("qwen3", {"enable_thinking": False}, ThinkingState.CLOSED),
    ("deepseek-r1", {}, ThinkingState.OPEN),
    ("deepseek-v3.1", {}, ThinkingState.CLOSED),
    ("deepseek-v3.1", {"thinking": True}, ThinkingState.OPEN),
    ("mistral-v13", {}, ThinkingState.POSSIBLE),
    ("command-r7b", {}, ThinkingState.POSSIBLE),
    ("harmony", {"reasoning_effort": "high"}, ThinkingState.POSSIBLE),
]


@for_each("name, variables, state", STATES)
def test_the_state_of_the_section(name: str, variables: dict[str, Any], state: ThinkingState) -> None:
    assert conversation_prompt(TOKENIZER, template(name), TWO_CALLS, variables=variables).thinking is state


def test_what_is_said_does_not_change_the_state() -> None:
    for said in ("<think>", "<think>\n", "</think>", "[THINK]"):
        for name in ("qwen3", "mistral-v13"):
            messages = [{"role": "user", "content": said}]
            assert conversation_prompt(TOKENIZER, template(name), messages).thinking is ThinkingState.POSSIBLE


def test_every_switch_switches() -> None:
    from constrain.chat.families.forms import detect_thinking

    for name in FAMILIES:
        thinking = detect_thinking(template(name))
        if thinking is None or thinking.switch is None:
            continue
        switch = thinking.switch
        on, off = (
            conversation_prompt(TOKENIZER, template(name), TWO_CALLS, variables={switch.variable: value}).thinking
            for value in (switch.on, switch.off)
        )
        assert on in {ThinkingState.OPEN, ThinkingState.POSSIBLE}, name
        assert off is ThinkingState.CLOSED, name


@for_each("name", FAMILIES)
def test_reasoning_in_front_of_a_call_is_shown_where_the_template_has_a_place_for_it(name: str) -> None:
    messages = [*TWO_CALLS[:2], {**TWO_CALLS[2], "reasoning_content": "Look it up."}, *TWO_CALLS[3:5]]
    text = prompt(name, messages, TOOLS)
    shown = FAMILIES[name].get("reasoning", "")
    assert shown in text
    assert ("Look it up." in text) == ("Look it up." in shown)


@pytest.mark.slow(but=("qwen3",))
@pytest.mark.parametrize("name", FAMILIES)
def test_reasoning_never_stands_in_an_answer(name: str) -> None:
    messages = [TWO_CALLS[1], {"role": "assistant", "content": "Yes.", "reasoning": "Hm."}, TWO_CALLS[-1]]
    text = prompt(name, messages)
    assert text.replace("[THINK]Hm.[/THINK]", "") == prompt(
        name, [messages[0], {**messages[1], "reasoning": None}, messages[2]]
    )
