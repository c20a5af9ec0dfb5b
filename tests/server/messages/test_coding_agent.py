"""The tools of a coding agent: all of them compile together, and every call matches its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import served_as
from tests.support.server.coding_tools import CODING_TOOLS
from tests.support.server.messages import joined, message, stream

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMAS = {tool["name"]: tool["input_schema"] for tool in CODING_TOOLS}
SYSTEM = [{"type": "text", "text": "You are an agent that changes programs. Use the tools."}]
TASK = [{"role": "user", "content": "The test of the parser in /src/parser.py fails. Find out why, and repair it."}]


@pytest.fixture(scope="module")
def agent() -> Iterator[Application]:
    with constrain.Model(n_ctx=8192, n_threads=1, parallel=1) as model:
        yield Application(served_as(model, "small"), Settings())


def ask_for(agent: Application, **fields: Any) -> list[dict[str, Any]]:
    """The calls of an answer, each valid by its schema."""
    asked = {"system": SYSTEM, "messages": TASK, "tools": CODING_TOOLS, "max_tokens": 160, **fields}
    found = message(agent, **asked) if "stream" not in fields else joined(stream(agent, **asked))
    calls = [block for block in found["content"] if block["type"] == "tool_use"]
    for call in calls:
        jsonschema.validate(call["input"], SCHEMAS[call["name"]], format_checker=jsonschema.FormatChecker())
    return calls


def test_there_are_about_twenty_tools_and_all_schemas_are_schemas() -> None:
    assert len(CODING_TOOLS) == 21
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.slow(but=("MultiEdit", "TodoWrite", "Plan"))
@pytest.mark.parametrize("name", SCHEMAS)
def test_every_tool_is_called_with_a_valid_input(agent: Application, name: str) -> None:
    calls = ask_for(agent, tool_choice={"type": "tool", "name": name}, temperature=1, seed=7)
    assert [call["name"] for call in calls] == [name]


def test_a_call_of_any_tool_is_valid(agent: Application) -> None:
    assert ask_for(agent, tool_choice={"type": "any"})


def test_an_agent_works_in_turns(agent: Application) -> None:
    turns: list[dict[str, Any]] = list(TASK)
    for _ in range(2):
        asked = {"system": SYSTEM, "messages": turns, "tools": CODING_TOOLS, "max_tokens": 120}
        found = message(agent, **asked, tool_choice={"type": "any"}, temperature=1, seed=3)
        calls = [block for block in found["content"] if block["type"] == "tool_use"]
        assert calls
        for call in calls:
            jsonschema.validate(call["input"], SCHEMAS[call["name"]])
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "Done."} for call in calls]
        turns += [{"role": "assistant", "content": found["content"]}, {"role": "user", "content": results}]
    assert found["usage"]["cache_read_input_tokens"] > found["usage"]["input_tokens"]
