"""Which servers, names of their tools, and what calls return, as text."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from random import Random
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
from constrain.chat.tools.checks import ANY_TOOL_NAME
from constrain.errors import ToolError
from constrain.mcp.names import different_names
from constrain.mcp.results import CallError, result_text
from constrain.mcp.servers import Address, Command, read_servers
from tests.support import for_each


@for_each(
    "source, name, server",
    ("uvx mcp-time --zone 'A B'", "mcp-time", Command("uvx", ("mcp-time", "--zone", "A B"))),
    ("npx -y @scope/server-files /tmp", "server-files", Command("npx", ("-y", "@scope/server-files", "/tmp"))),
    (["python", "-m", "notes"], "notes", Command("python", ("-m", "notes"))),
    (["/usr/bin/python3.11", "notes.py"], "notes.py", Command("/usr/bin/python3.11", ("notes.py",))),
    ("python", "python", Command("python")),
    ("https://mcp.example.org:8000/mcp", "mcp.example.org", Address("https://mcp.example.org:8000/mcp")),
    (
        {"mcpServers": {"a": {"command": "c", "args": ["d"], "env": {"E": "f"}, "cwd": "/g", "type": "stdio"}}},
        "a",
        Command("c", ("d",), {"E": "f"}, "/g"),
    ),
    (
        {"mcpServers": {"a": {"url": "http://b", "headers": {"C": "d"}, "type": "http"}}, "theme": "dark"},
        "a",
        Address("http://b", {"C": "d"}),
    ),
)
def test_servers(source: Any, name: str, server: Command | Address) -> None:
    assert read_servers([source], {}) == {name: server}


def test_equal_names_are_numbered() -> None:
    assert list(read_servers(["uvx a", "uvx a", {"mcpServers": {"a": {"url": "http://b"}}}], {})) == ["a", "a_2", "a_3"]


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"a": {"command": "c"}}}))
    assert read_servers([path], {}) == {"a": Command("c")}


def test_secrets_are_not_shown() -> None:
    entries = {
        "a": {"url": "http://me:secret@b/mcp?key=secret", "headers": {"Authorization": "secret"}},
        "c": {"command": "d", "env": {"E": "secret"}},
    }
    servers = read_servers([{"mcpServers": entries}], {})
    assert [str(server) for server in servers.values()] == ["http://b/mcp", "d"]
    assert "secret" not in repr(servers["c"])


def test_disabled_servers_are_left_out() -> None:
    entries = {"a": {"command": "b", "disabled": True}, "c": {"command": "d", "disabled": False, "alwaysAllow": []}}
    assert read_servers([{"servers": entries}], {}) == {"c": Command("d")}


def test_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t")
    monkeypatch.delenv("NOWHERE", raising=False)
    entries = {
        "a": {"command": "${NOWHERE:-b}", "args": ["-${TOKEN}"], "env": {"E": "${env:TOKEN}"}},
        "c": {"url": "http://d/${TOKEN}", "headers": {"F": "Bearer ${TOKEN}"}},
    }
    servers = read_servers([{"mcpServers": entries}], {"G": "h", "E": "i"})
    assert servers == {"a": Command("b", ("-t",), {"G": "h", "E": "t"}), "c": Address("http://d/t", {"F": "Bearer t"})}
    with pytest.raises(ToolError, match="the environment variable NOWHERE is not set") as error:
        read_servers([{"mcpServers": {"a": {"command": "b", "args": ["${NOWHERE}"]}}}], {})
    assert error.value.pointer == "/mcpServers/a/args/0"


@for_each(
    "source, message, pointer",
    ((), "needs a server", None),
    (("",), "is no server", None),
    (("'a",), "cannot be read", None),
    (([1],), "is no server", None),
    (({},), "has no object mcpServers", "/mcpServers"),
    (({"mcpServers": {}},), "needs a server", None),
    (({"mcpServers": {"a": {}}},), "either command or url", "/mcpServers/a"),
    (({"mcpServers": {"a": {"command": "c", "url": "u"}}},), "either command or url", "/mcpServers/a"),
    (({"mcpServers": {"a": {"command": ""}}},), "command is a text", "/mcpServers/a/command"),
    (({"mcpServers": {"a": {"command": "c", "args": "d"}}},), "args is a list", "/mcpServers/a/args"),
    (({"mcpServers": {"a": {"command": "c", "env": {"E": 1}}}},), "env is an object", "/mcpServers/a/env"),
    (({"mcpServers": {"a": {"command": "c", "arg": []}}},), "unknown key 'arg'; .* args", "/mcpServers/a/arg"),
    (({"mcpServers": {"a": {"url": "http://b", "type": "sse"}}},), "not supported", "/mcpServers/a"),
    ((Path("/no/such/file.json"),), "cannot be read: No such file", None),
)
def test_what_is_no_server_is_refused(source: Any, message: str, pointer: str | None) -> None:
    with pytest.raises(ToolError, match=message) as error:
        constrain.mcp.connect(*source)
    assert error.value.pointer == pointer


def test_the_name_of_a_file_is_no_command(tmp_path: Path) -> None:
    (tmp_path / "servers.json").write_text("{}")
    with pytest.raises(ToolError, match=r"servers\.json' is a file; give Path"):
        constrain.mcp.connect(str(tmp_path / "servers.json"))


@pytest.mark.parametrize("text", ["{", "[]"])
def test_files_that_are_no_configuration(text: str, tmp_path: Path) -> None:
    (tmp_path / "servers.json").write_text(text)
    with pytest.raises(ToolError, match=r"servers\.json is not"):
        constrain.mcp.connect(tmp_path / "servers.json")


@for_each(
    "tools, names",
    ([("a", "read"), ("b", "write")], ["read", "write"]),
    ([("a", "read"), ("b", "read"), ("b", "write")], ["a_read", "b_read", "write"]),
    ([("a", "x/y"), ("a", "x.y")], ["x/y", "x.y"]),
    ([("a", "x y"), ("a", "x:y")], ["a_x_y", "a_x_y_2"]),
    ([("a", "r"), ("b", "r"), ("c", "a_r")], ["a_r", "b_r", "a_r_2"]),
    ([("a", "größe"), ("a", "")], ["gr__e", "_"]),
    ([("a", "x" * 140), ("b", "x" * 140)], ["a_" + "x" * 126, "b_" + "x" * 126]),
    ([("a", "y" * 140), ("a", "y" * 141)], ["a_" + "y" * 126, "a_" + "y" * 124 + "_2"]),
    ([("a", "t"), ("a", "t"), ("a", "a_t_2")], ["a_t", "a_t_3", "a_t_2"]),
)
def test_names(tools: list[tuple[str, str]], names: list[str]) -> None:
    assert different_names(tools) == names


def test_random_names_differ_and_can_be_called() -> None:
    rng = Random(1)
    for _ in range(300):
        tools = [
            ("".join(rng.choices("ab_", k=rng.randint(1, 60))), "".join(rng.choices("ab_2/.", k=rng.randint(0, 4))))
            for _ in range(rng.randint(1, 12))
        ]
        names = different_names(tools)
        assert len(set(names)) == len(tools)
        assert all(ANY_TOOL_NAME.fullmatch(name) for name in names)


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
        run = constrain.tools.run_tools(
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
        again = constrain.tools.arun_tools(
            model, "Fail.", tools=connection.tools, tool_choice="fail", max_steps=2, max_tokens=24
        )
        run = asyncio.run(again)
    assert run.messages[2]["content"] == "Error: CallError: out of paper"
