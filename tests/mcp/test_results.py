"""What a call returns, as text, and that it goes back to the model."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

import constrain
import constrain.mcp
from constrain.mcp.results import CallError, result_text
from tests.support import for_each


def text(value: str) -> TextContent:
    return TextContent(type="text", text=value)


@for_each(
    "content, structured, expected",
    ([], None, ""),
    ([text("one"), text("two")], None, "one\ntwo"),
    ([], {"a": "ö"}, '{"a": "ö"}'),
    ([text('{ "a": 1 }')], {"a": 1}, '{ "a": 1 }'),
    ([text("about a")], {"a": 1}, 'about a\n{"a": 1}'),
    ([text("12")], {"result": 12}, "12"),
    ([text("12")], {"result": "12"}, "12"),
    ([text('{"a": 1}'), text('{"a": 2}')], {"result": [{"a": 1}, {"a": 2}]}, '{"a": 1}\n{"a": 2}'),
    ([text("x")], {"result": "y"}, 'x\n{"result": "y"}'),
    ([text("x")], ["x"], "x"),
    ([text("Weather:"), text('{"t": 3}')], {"t": 3}, 'Weather:\n{"t": 3}'),
    ([text("1")], {"result": True}, '1\n{"result": true}'),
    (
        [ImageContent(type="image", data="", mime_type="image/png"), text("a cat")],
        None,
        "[image (image/png), not shown: only text can be read here]\na cat",
    ),
    (
        [AudioContent(type="audio", data="", mime_type="audio/wav")],
        None,
        "[audio (audio/wav), not shown: only text can be read here]",
    ),
    (
        [ResourceLink(type="resource_link", name="n", uri="file:///n", description="notes")],
        None,
        "[n: notes](file:///n)",
    ),
    (
        [EmbeddedResource(type="resource", resource=TextResourceContents(uri="file:///n", text="dear diary"))],
        None,
        "file:///n:\ndear diary",
    ),
    (
        [EmbeddedResource(type="resource", resource=BlobResourceContents(uri="file:///b", blob="AA=="))],
        None,
        "[file:///b (binary data), not shown: only text can be read here]",
    ),
)
def test_results(content: list[ContentBlock], structured: Any, expected: str) -> None:
    result = CallToolResult(content=content, structured_content=structured)
    assert result_text(result) == expected
    if expected:
        with pytest.raises(CallError) as error:
            result_text(CallToolResult(content=content, structured_content=structured, is_error=True))
        assert str(error.value) == expected


def test_an_error_without_a_message() -> None:
    with pytest.raises(CallError, match="without a message"):
        result_text(CallToolResult(content=[], is_error=True))


SCRIPTED = [sys.executable, str(Path(__file__).parent.parent / "support" / "mcp" / "scripted.py")]


@pytest.fixture(scope="module")
def model() -> constrain.Model:
    return constrain.Model(n_ctx=512, n_threads=1)


@pytest.mark.slow
def test_results_are_fed_back(model: constrain.Model) -> None:
    with constrain.mcp.connect(SCRIPTED) as connection:
        run = constrain.run_tools(
            model, "Shout hello.", tools=connection.tools, tool_choice="shout", max_steps=2, max_tokens=40
        )
    _, asked, result, answer = run.messages
    [call] = asked["tool_calls"]
    word = json.loads(call["function"]["arguments"])["word"]
    assert result == {"role": "tool", "tool_call_id": call["id"], "content": word.upper()}
    assert answer["role"] == "assistant"


@pytest.mark.slow
def test_errors_are_shown_to_the_model_in_asynchronous_code(model: constrain.Model) -> None:
    with constrain.mcp.connect(SCRIPTED) as connection:
        again = constrain.arun_tools(
            model, "Fail.", tools=connection.tools, tool_choice="fail", max_steps=2, max_tokens=24
        )
        run = asyncio.run(again)
    assert run.messages[2]["content"] == "Error: CallError: out of paper"
