"""The tools of a coding agent: all of them compile together, and every call matches its schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import constrain
from constrain.chat.answers.choices import Calls, FunctionCalls
from constrain.chat.answers.language import AnswerLanguage
from constrain.generation.planning import prepare
from constrain.server.app import Application
from constrain.server.messages.request import read_messages_request
from constrain.server.settings import Settings
from tests.support import LONG
from tests.support.chat.forms import TAGS
from tests.support.chat.parsed import read_answer
from tests.support.chat.walks import walked
from tests.support.server.asking import served_as
from tests.support.server.coding_tools import CODING_TOOLS
from tests.support.server.messages import body, joined, message, stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCHEMAS = {tool["name"]: tool["input_schema"] for tool in CODING_TOOLS}
SYSTEM = [{"type": "text", "text": "You are an agent that changes programs. Use the tools."}]
TASK = [{"role": "user", "content": "The test of the parser in /src/parser.py fails. Find out why, and repair it."}]
ASKED: dict[str, Any] = {"system": SYSTEM, "messages": TASK, "tools": CODING_TOOLS, "max_tokens": 160}


def require_valid(name: str, value: object) -> None:
    jsonschema.validate(value, SCHEMAS[name], format_checker=jsonschema.FormatChecker())


def language(*allowed: str) -> AnswerLanguage:
    """The language of answers with calls of the tools in the request, or of some of them."""
    tools = read_messages_request(body(**ASKED), Settings()).question.options["tools"]
    functions = [tool for tool in tools if isinstance(tool, constrain.FunctionTool)]
    assert len(functions) == len(CODING_TOOLS)
    calls = tuple(FunctionCalls(tool.name, tool.schema_text) for tool in functions)
    return AnswerLanguage(TAGS, tools=calls, calls=Calls.REQUIRED, allowed=allowed or None)


def test_there_are_about_twenty_tools_and_all_schemas_are_schemas() -> None:
    assert len(SCHEMAS) == 21
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_they_compile_together_for_the_vocabulary_of_a_model(model: constrain.Model) -> None:
    question = read_messages_request(body(**ASKED), Settings()).question
    job = prepare(model, question.prompt, None, question.options)  # type: ignore[arg-type]
    assert job.constraint is not None
    assert not job.constraint.warnings


def test_random_calls_of_any_tool_are_valid() -> None:
    answer = language()
    called = [call for text in walked(answer, 1, count=60) for call in read_answer(answer, text).calls]
    for call in called:
        assert call.ended
        require_valid(call.name, json.loads(call.arguments or ""))
    assert len({call.name for call in called}) > 12


@pytest.mark.slow(but=("MultiEdit", "TodoWrite", "NotebookEdit", "AskUser", "Plan", "Commit"))
@pytest.mark.parametrize("name", SCHEMAS)
def test_random_calls_of_each_tool_are_valid(name: str) -> None:
    answer = language(name)
    for text in walked(answer, 2, count=12):
        parsed = read_answer(answer, text)
        assert parsed.calls
        for call in parsed.calls:
            assert (call.name, call.ended) == (name, True)
            require_valid(name, json.loads(call.arguments or ""))


# With a model, which needs a while to read all that.


@pytest.fixture(scope="module")
def agent() -> Iterator[Application]:
    with constrain.Model(n_ctx=8192, n_threads=1, parallel=1) as model:
        yield Application(served_as(model, "small"), Settings())


def calls_of(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = [block for block in found["content"] if block["type"] == "tool_use"]
    assert calls
    for call in calls:
        require_valid(call["name"], call["input"])
    return calls


@pytest.mark.skipif(not LONG, reason="has a model read 21 tools; CONSTRAIN_LONG=1")
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_model_calls_every_tool_with_a_valid_input(agent: Application, name: str) -> None:
    found = message(agent, **ASKED | {"tool_choice": {"type": "tool", "name": name}, "temperature": 1, "seed": 7})
    assert [call["name"] for call in calls_of(found)] == [name]


@pytest.mark.skipif(not LONG, reason="has a model read 21 tools; CONSTRAIN_LONG=1")
def test_an_agent_works_in_turns(agent: Application) -> None:
    turns: list[dict[str, Any]] = list(TASK)
    for _ in range(2):
        asked = ASKED | {"messages": turns, "tool_choice": {"type": "any"}, "temperature": 1, "seed": 3}
        found = joined(stream(agent, **asked))
        calls = calls_of(found)
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "Done."} for call in calls]
        turns += [{"role": "assistant", "content": found["content"]}, {"role": "user", "content": results}]
    assert found["usage"]["cache_read_input_tokens"] > found["usage"]["input_tokens"]
