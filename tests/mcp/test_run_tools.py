"""``run_tools`` with the tools of a server: a real model calls them and is shown what they return."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

import constrain
import constrain.mcp

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
