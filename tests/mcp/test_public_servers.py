"""Servers from the package indexes, as their users start them: all their tools at once, called by a model."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import constrain
import constrain.mcp
from constrain.chat.answers.choices import Calls, FunctionCalls
from constrain.chat.answers.language import AnswerLanguage
from tests.clients.environments import install_folder
from tests.support import demo_vocabulary
from tests.support.chat.forms import TAGS
from tests.support.chat.parsed import read_answer
from tests.support.chat.walks import assert_calls_hold, walked

pytestmark = pytest.mark.long  # installs the servers

SERVERS = Path(__file__).parent / "servers"
FEWEST_TOOLS = {
    "fetch": 1,
    "git": 12,
    "time": 2,
    "everything": 10,
    "filesystem": 12,
    "memory": 9,
    "sequential-thinking": 1,
}
"""Tools that a server has at least."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text and a repository, for servers that ask for one."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "note.txt").write_text("Buy milk.")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> dict[str, list[str]]:
    """What starts each server."""
    kept = os.environ.get("CONSTRAIN_CLIENT_ENVIRONMENTS")
    environments = Path(kept).resolve() if kept else tmp_path_factory.mktemp("environments")
    python = install_folder(SERVERS / "python", environments / "mcp-python") / "bin"
    node = install_folder(SERVERS / "node", environments / "mcp-node") / "node_modules" / ".bin"
    return {
        "fetch": [str(python / "mcp-server-fetch")],
        "git": [str(python / "mcp-server-git"), "--repository", str(folder)],
        "time": [str(python / "mcp-server-time")],
        "everything": [str(node / "mcp-server-everything")],
        "filesystem": [str(node / "mcp-server-filesystem"), str(folder)],
        "memory": [str(node / "mcp-server-memory")],
        "sequential-thinking": [str(node / "mcp-server-sequential-thinking")],
    }


@pytest.fixture(scope="module")
def connection(commands: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """All servers at once."""
    memory = {"MEMORY_FILE_PATH": str(tmp_path_factory.mktemp("memory") / "memory.json")}
    servers = {name: {"command": command[0], "args": command[1:], "env": memory} for name, command in commands.items()}
    with constrain.mcp.connect({"mcpServers": servers}) as connection:
        yield connection


@pytest.mark.parametrize("name", FEWEST_TOOLS)
def test_every_tool_of_a_server_is_enforced(name: str, commands: dict[str, list[str]]) -> None:
    with constrain.mcp.connect(commands[name]) as connection:
        assert len(connection.tools) >= FEWEST_TOOLS[name]
        assert all(tool.description for tool in connection.tools)


def test_results(connection: Any, folder: Path) -> None:
    tools = {tool.name: tool for tool in connection.tools}
    calls: list[tuple[str, dict[str, Any], Callable[[str], bool]]] = [
        ("get_current_time", {"timezone": "Europe/Oslo"}, lambda text: json.loads(text)["timezone"] == "Europe/Oslo"),
        ("git_status", {"repo_path": str(folder)}, lambda text: "note.txt" in text),
        ("echo", {"message": "who is there?"}, lambda text: "who is there?" in text),
        ("get-structured-content", {"location": "Chicago"}, lambda text: "temperature" in json.loads(text)),
        ("get-tiny-image", {}, lambda text: "[image (image/png), not shown" in text),
        ("read_text_file", {"path": str(folder / "note.txt")}, lambda text: "Buy milk." in text),
        ("read_graph", {}, lambda text: "entities" in json.loads(text)),
    ]
    for name, arguments, is_right in calls:
        text = tools[name].call(arguments)
        assert is_right(text), (name, text)
    with pytest.raises(constrain.mcp.CallError, match=r"denied|outside"):
        tools["read_text_file"].call({"path": "/etc/passwd"})


def calls_of(tools: tuple[constrain.tools.FunctionTool, ...]) -> AnswerLanguage:
    """The language of answers that call some of the tools."""
    return AnswerLanguage(
        TAGS, tools=tuple(FunctionCalls(tool.name, tool.schema_text) for tool in tools), calls=Calls.REQUIRED
    )


def test_every_call_among_all_tools_is_valid(connection: Any) -> None:
    tools = connection.tools
    assert len(tools) > 40
    answer = calls_of(tools)
    leads = tuple(f'<tool_call>\n{{"name": "{tool.name}"'.encode() for tool in tools)
    for text in walked(answer, 1, leads, count=len(leads)):
        parsed = read_answer(answer, text)
        assert parsed.calls
        assert_calls_hold(answer, parsed)


@pytest.mark.serial
def test_the_first_mask_of_sixty_tools_is_there_in_time(connection: Any) -> None:
    """It takes less than 100 ms where nothing else runs; several times as long is a fault on every machine."""
    tools = connection.tools
    more = tuple(replace(tool, name=f"{tool.name}_again") for tool in tools)
    answer, vocabulary = calls_of((*tools, *more)[:60]), demo_vocabulary()
    begin = time.perf_counter()
    constraint = constrain.compile(answer, vocabulary, cache=False)
    constraint.matcher().fill_bitmask(constraint.allocate_bitmask()[0])
    assert time.perf_counter() - begin < 0.5
