"""A conversation with two calls at once and their results, for all families."""

from __future__ import annotations

from typing import Any

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]

TWO_CALLS: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Paris and Rome?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call0paris", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}},
            {
                "id": "call1rome",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"city": "Rome", "days": 2}'},
            },
        ],
    },
    {"role": "tool", "tool_call_id": "call1rome", "content": "25 C"},
    {"role": "tool", "tool_call_id": "call0paris", "content": "18 C"},
    {"role": "assistant", "content": "18 C and 25 C."},
    {"role": "user", "content": "Thanks!"},
]
"""The results come in another order than the calls."""
