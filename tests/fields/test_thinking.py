"""The fields that say whether and how much a model reasons."""

from __future__ import annotations

from typing import Any

import pytest

from constrain.fields.thinking import read_thinking
from constrain.fields.values import FieldError
from tests.support import for_each


@for_each(
    "body, most, expected",
    ({}, None, {}),
    ({"chat_template_kwargs": {}, "enable_thinking": None, "reasoning": {"summary": "auto"}}, None, {}),
    ({"chat_template_kwargs": {"a": 1}}, None, {"template_variables": {"a": 1}}),
    ({"enable_thinking": False}, None, {"thinking": False}),
    ({"reasoning_effort": "none"}, None, {"reasoning_effort": "none"}),
    ({"reasoning_effort": "low"}, 90, {"reasoning_effort": "low", "max_reasoning_tokens": 45}),
    ({"reasoning": {"effort": "minimal"}}, None, {"reasoning_effort": "minimal", "max_reasoning_tokens": 128}),
    ({"reasoning": {"effort": "high"}}, None, {"reasoning_effort": "high"}),
    ({"think": False}, None, {"thinking": False}),
    ({"think": "high"}, None, {"reasoning_effort": "high"}),
    ({"thinking": {"type": "enabled", "budget_tokens": 9}}, None, {"thinking": True, "max_reasoning_tokens": 9}),
)
def test_fields_become_options(body: dict[str, Any], most: int | None, expected: dict[str, Any]) -> None:
    assert read_thinking(body, most) == expected


@for_each(
    "body, param",
    ({"chat_template_kwargs": [1]}, "chat_template_kwargs"),
    ({"enable_thinking": "no"}, "enable_thinking"),
    ({"reasoning_effort": "much"}, "reasoning_effort"),
    ({"reasoning": {"effort": 3}}, "reasoning.effort"),
    ({"reasoning": "high"}, "reasoning"),
    ({"think": "much"}, "think"),
    ({"think": 1}, "think"),
)
def test_other_values_are_refused(body: dict[str, Any], param: str) -> None:
    with pytest.raises(FieldError) as caught:
        read_thinking(body, None)
    assert caught.value.param == param
