"""Token budgets of answers: what a mask allows can be completed, whichever tool the way to the end calls."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import pytest

import constrain
from constrain.chat.answers.choices import DEFAULT_POLICIES, Calls, FunctionCalls, Reasoning
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.families.format import Thinking, ToolFormat
from constrain.chat.families.forms import tool_format
from tests.support.matching import allowed

NAMES = [
    "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>",
    "<think>", "</think>", "<tool_call>", "</tool_call>",
]  # fmt: skip
TEXTS = [*(bytes([byte]) for byte in range(256)), b"get", b"{}", b'{"', b'": ', b"", *[b""] * len(NAMES)]
END = 260
SPECIAL = dict(enumerate(NAMES, END + 1))
VOCABULARY = constrain.Vocabulary.from_tokens(TEXTS, eos=[END], special=SPECIAL)

ANY_ORDER = DEFAULT_POLICIES._replace(property_order="any")
DISTINCT = {
    "type": "array",
    "items": {"type": "object", "properties": {"z": {"enum": ["=", True]}}},
    "uniqueItems": True,
}
TOOLS = tuple(
    FunctionCalls(name, json.dumps({"type": "object", "properties": properties, "required": required}))
    for name, properties, required in (
        ("opt", {"s": {"type": "string"}}, []),
        ("get", {"x": {"type": "array", "items": {"type": "boolean"}}, "y": {"type": "number"}}, []),
        ("arr", {"l": DISTINCT}, ["l"]),
    )
)


@pytest.mark.parametrize("form", [tool_format("deepseek-v3.1"), tool_format("hermes")], ids=lambda form: form.name)
def test_every_token_of_a_mask_is_accepted(form: ToolFormat) -> None:
    thinking = replace(form, thinking=Thinking("<think>", "</think>"))
    for tools in permutations(TOOLS):
        answer = AnswerLanguage(
            thinking, tuple(NAMES), tools, Calls.REQUIRED, reasoning=Reasoning.OPTIONAL, policies=ANY_ORDER
        )
        assert_masks_hold(answer)


def assert_masks_hold(answer: AnswerLanguage) -> None:
    constraint = constrain.compile(answer, VOCABULARY, cache=False)
    least = constraint.report.min_tokens
    row = constraint.allocate_bitmask()[0]
    for max_tokens in range(least, least + 16):
        matcher = constraint.matcher(max_tokens=max_tokens)
        for token in matcher.completion_tokens():
            refused = [each for each in allowed(matcher, row).tolist() if not matcher.fork().accept(each)]
            assert not refused, (max_tokens, matcher.n_accepted, refused)
            assert matcher.accept(token)


def test_policies_are_reported() -> None:
    answer = AnswerLanguage(tool_format("hermes"), tools=TOOLS)
    assert constrain.compile(answer, VOCABULARY, cache=False).report.policies["property_order"] == "schema"
