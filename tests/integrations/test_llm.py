"""The plugin for ``llm``, in its program and in its Python API, with the demo model."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import llm
import pytest
from llm.parts import Attachment, AttachmentPart, Message, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

import constrain
from constrain.integrations import llm as plugin
from constrain.llama.finding import FOLDERS
from constrain.llama.model import default_model_path
from tests.support import each_row
from tests.support.judging import require_valid

pytestmark = pytest.mark.slow

NAME = "constrain/smollm2"
SCHEMA = llm.schema_dsl("name, age int")
CLOSED = {**SCHEMA, "additionalProperties": False}


def registered() -> dict[str, tuple[llm.Model, llm.AsyncModel]]:
    found = {}
    plugin.register_models(lambda model, asynchronous: found.update({model.model_id: (model, asynchronous)}))
    return found


@pytest.fixture(scope="module")
def model() -> llm.Model:
    return registered()[NAME][0]


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def test_every_model_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "1/other.gguf", tmp_path / "2/other.gguf"
    for path in (first, second):
        path.parent.mkdir()
        path.write_bytes(b"GGUF" + bytes([3, 0, 0, 0]) + bytes([1] * 8))
    monkeypatch.setenv(FOLDERS, f"{first}{os.pathsep}{second}")
    found = registered()
    assert found[NAME][0].path.samefile(default_model_path())
    assert found["constrain/other"][0].path == first
    assert not any(default_model_path().stem in name for name in found)


def test_a_schema_is_enforced(model: llm.Model) -> None:
    response = model.prompt("Ada is 36.", schema=SCHEMA, max_tokens=60)
    require_valid(CLOSED, response.text())
    usage = response.usage()
    assert usage.input > 10
    assert 5 < usage.output <= 60
    assert response.response_json == {"finish_reason": "stop"}


def test_a_stream_has_the_same_text(model: llm.Model) -> None:
    texts = [model.prompt("Ada is 36.", schema=SCHEMA, max_tokens=60, stream=stream) for stream in (True, False)]
    pieces = list(texts[0])
    assert len(pieces) > 5
    assert "".join(pieces) == texts[1].text()


def test_an_answer_matches_a_pattern_or_a_grammar(model: llm.Model) -> None:
    assert model.prompt("Is the sky blue?", regex="(yes|no)").text() in ("yes", "no")
    assert model.prompt("Count.", lark='start: "1" "2" "3"').text() == "123"


@each_row(
    "arguments, error, message",
    ({"schema": SCHEMA, "max_tokens": 2}, constrain.BudgetError, "max_tokens is 2"),
    ({"schema": SCHEMA, "regex": "a"}, ValueError, "a schema and the option regex exclude each other"),
    ({"regex": "(a"}, constrain.PatternError, "has no closing"),
    ({"lark": "start: b"}, constrain.GrammarError, "b"),
    ({"schema": {"type": "object", "$ref": "#/x"}}, constrain.SchemaError, "x"),
)
def test_a_refusal_comes_before_any_text(
    model: llm.Model, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    response = model.prompt("Ada is 36.", **arguments)
    with pytest.raises(error, match=message):
        next(iter(response))


def test_tools_are_called_and_their_results_read(model: llm.Model) -> None:
    chain = model.conversation(tools=[add]).chain("Add 2 and 3 with the tool.", options={"max_tokens": 60, "seed": 3})
    assert chain.text()
    first, second = chain._responses
    (call,) = first.tool_calls()
    assert call.name == "add"
    require_valid(llm.Tool.function(add).input_schema, json.dumps(call.arguments))
    (result,) = second.prompt.tool_results
    assert (result.name, result.tool_call_id) == ("add", call.tool_call_id)
    assert result.output == str(call.arguments["a"] + call.arguments["b"])


def test_a_conversation_has_the_messages_so_far(model: llm.Model) -> None:
    talk = model.conversation()
    first = talk.prompt("My name is Ada.", system="Be brief.", regex="Hello[.]")
    assert first.text() == "Hello."
    second = talk.prompt("What is my name?", regex="[A-Z][a-z]{1,9}")
    assert second.text()
    assert plugin._messages(second.prompt.messages) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "What is my name?"},
    ]
    assert second.usage().input > first.usage().input


def test_all_parts_of_messages() -> None:
    messages = [
        Message("user", [TextPart("one "), TextPart("two")]),
        Message(
            "assistant", [ReasoningPart("hm"), ToolCallPart("add", {"a": 1}, "call_1"), ToolCallPart("x", {}, "2")]
        ),
        Message("tool", [ToolResultPart("add", "3", "call_1"), ToolResultPart("x", "", "2")]),
    ]
    calls = [("call_1", "add", '{"a": 1}'), ("2", "x", "{}")]
    assert plugin._messages(messages) == [
        {"role": "user", "content": "one two"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}
                for identifier, name, arguments in calls
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "3"},
        {"role": "tool", "tool_call_id": "2", "content": ""},
    ]


def test_results_follow_their_message_and_have_no_text() -> None:
    parts = [ToolResultPart("add", "3", "1"), TextPart("so"), ToolCallPart("add", {}, "1")]
    assert [message["role"] for message in plugin._messages([Message("assistant", parts)])] == ["assistant", "tool"]
    with pytest.raises(ValueError, match="has results only"):
        plugin._messages([Message("tool", [TextPart("lost?"), ToolResultPart("add", "3", "1")])])


def test_the_plugin_loads_little() -> None:
    code = "import sys, constrain.integrations.llm; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"llama_cpp", "torch", "rich", "lark"} & set(loaded)


@each_row(
    "part",
    AttachmentPart(Attachment(type="image/png", content=b"x")),
    ToolResultPart("x", "", "1", attachments=[Attachment(type="image/png", content=b"x")]),
)
def test_attachments_are_refused(part: Any) -> None:
    with pytest.raises(ValueError, match="leave out the attachments"):
        plugin._messages([Message("user", [part])])


def test_asynchronous_code(model: llm.Model) -> None:
    async def ask() -> tuple[str, int]:
        response = registered()[NAME][1].prompt("Ada is 36.", schema=SCHEMA, max_tokens=60)
        return await response.text(), (await response.usage()).output

    text, tokens = asyncio.run(ask())
    assert text == model.prompt("Ada is 36.", schema=SCHEMA, max_tokens=60).text()
    assert tokens > 5


def run(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LLM_USER_PATH": str(home)}
    command = [sys.executable, "-m", "llm", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_the_program_finds_the_plugin(tmp_path: Path) -> None:
    assert [one.value for one in entry_points(group="llm", name="constrain")] == ["constrain.integrations.llm"]
    done = run("-m", NAME, "--schema", "name, age int", "Ada is 36", "-o", "max_tokens", "60", home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    require_valid(CLOSED, done.stdout)
