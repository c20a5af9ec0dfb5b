"""The tools of a coding agent: all of them compile together, and every call matches its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import constrain
from constrain.chat.answers.choices import Calls, FunctionCalls
from constrain.chat.answers.language import AnswerLanguage
from constrain.generation.planning import prepare
from constrain.server.messages.request import MessagesBody
from constrain.server.requests.question import Question
from constrain.server.settings import Settings
from constrain.tools import FunctionTool
from tests.support import LONG
from tests.support.chat.forms import TAGS
from tests.support.chat.parsed import read_answer
from tests.support.chat.walks import walked
from tests.support.server.messages import body

TOOLS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "coding_tools.json").read_text())
SCHEMAS = {tool["name"]: tool["input_schema"] for tool in TOOLS}
DIFFICULT = ["MultiEdit", "Bash", "TodoWrite", "NotebookEdit", "AskUser", "Plan", "Commit"]


def question() -> Question:
    return MessagesBody.ask(body(tools=TOOLS), Settings()).question


@pytest.mark.slow
def test_they_compile_together_for_the_vocabulary_of_a_model(model: constrain.Model) -> None:
    asked = question()
    job = prepare(model, asked.prompt, None, asked.options)  # type: ignore[arg-type]
    assert job.constraint is not None
    assert not job.constraint.warnings


@pytest.mark.slow(but=("Bash", "AskUser", "Plan"))
@pytest.mark.parametrize("name", [None, *(SCHEMAS if LONG else DIFFICULT)])
def test_random_calls_are_valid(name: str | None) -> None:
    tools = [tool for tool in question().options["tools"] if isinstance(tool, FunctionTool)]
    calls = tuple(FunctionCalls(tool.name, tool.schema_text) for tool in tools)
    answer = AnswerLanguage(TAGS, tools=calls, calls=Calls.REQUIRED, allowed=None if name is None else (name,))
    called = [call for text in walked(answer, 2, count=12 if name else 40) for call in read_answer(answer, text).calls]
    for call in called:
        assert call.ended
        value = json.loads(call.arguments or "")
        jsonschema.validate(value, SCHEMAS[call.name], format_checker=jsonschema.FormatChecker())
    found = {call.name for call in called}
    assert len(found) > 9 if name is None else found == {name}
