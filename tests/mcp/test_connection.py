"""Connections: calls from every kind of code, errors, changes of lists, and servers that cannot be reached."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mcp
import pytest

import constrain
import constrain.mcp
from constrain.errors import ToolError

SUPPORT = Path(__file__).parent.parent / "support" / "mcp"
SCRIPTED = [sys.executable, str(SUPPORT / "scripted.py")]
OFFICIAL = [sys.executable, str(SUPPORT / "official.py")]


def by_name(tools: tuple[constrain.tools.FunctionTool, ...]) -> dict[str, constrain.tools.FunctionTool]:
    return {tool.name: tool for tool in tools}


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_tools_of_all_pages_are_called_and_errors_raised() -> None:
    with constrain.mcp.connect(SCRIPTED) as connection:
        tools = by_name(connection.tools)
        assert list(tools) == ["shout", "fail", "break/off", "hang", "grow", "refuse", "cancelled", "variable"]
        assert tools["shout"].description == "In capitals."
        assert tools["break/off"].description == "Ends the server."
        assert tools["shout"].call({"word": "hello"}) == "HELLO"
        assert connection.instructions == {"scripted.py": "Shout with care."}
        with pytest.raises(constrain.OutputValidationError, match="word"):
            tools["shout"].call({})
        for name, message in (("fail", "out of paper"), ("refuse", "not today")):
            with pytest.raises(constrain.mcp.CallError, match=message):
                tools[name].call({})


@pytest.mark.slow
def test_a_call_without_an_answer_ends_in_time() -> None:
    with constrain.mcp.connect(SCRIPTED, timeout=0.5) as connection:
        tools = by_name(connection.tools)
        with pytest.raises(constrain.mcp.CallError, match=r"no answer within 0\.5 seconds"):
            tools["hang"].call({})
        assert tools["shout"].call({"word": "still here"}) == "STILL HERE"


@pytest.mark.slow
def test_a_server_that_has_gone_is_an_error_of_the_call_and_is_started_again() -> None:
    with constrain.mcp.connect(SCRIPTED) as connection:
        tools = by_name(connection.tools)
        with pytest.raises(constrain.mcp.CallError, match="closed"):
            tools["break/off"].call({})

        def is_there() -> bool:
            with contextlib.suppress(constrain.mcp.CallError):
                return tools["shout"].call({"word": "again"}) == "AGAIN"
            return False

        wait_for(is_there)
        assert len(connection.tools) == 8


def test_commands_get_variables_and_folders(tmp_path: Path) -> None:
    entry = {"command": SCRIPTED[0], "args": SCRIPTED[1:], "env": {"OWN": "mine"}, "cwd": str(tmp_path)}
    with constrain.mcp.connect({"mcpServers": {"a": entry}}, env={"MORE": "ours", "OWN": "theirs"}) as connection:
        variable = by_name(connection.tools)["variable"]
        assert [variable.call({"word": name}) for name in ("OWN", "MORE", "PWD")] == ["mine", "ours", ""]
    entry["cwd"] = str(tmp_path / "missing")
    with pytest.raises(ToolError, match="cannot be reached: there is no folder"):
        constrain.mcp.connect({"mcpServers": {"a": entry}}).__enter__()


def test_a_closed_connection_is_an_error_of_the_call() -> None:
    with constrain.mcp.connect(SCRIPTED) as connection:
        shout = connection.tools[0]
    with pytest.raises(constrain.mcp.CallError, match="closed"):
        shout.call({"word": "anybody?"})
    with pytest.raises(ToolError, match="not open"):
        connection.tools  # noqa: B018
    with connection:  # it can be opened again
        assert connection.tools[0].call({"word": "again"}) == "AGAIN"


@pytest.mark.slow
@pytest.mark.parametrize(("server", "name", "new"), [(SCRIPTED, "grow", "grown_6"), (OFFICIAL, "more", "less")])
def test_changed_lists_are_listed_again(server: list[str], name: str, new: str) -> None:
    with constrain.mcp.connect(server) as connection:
        assert new not in by_name(connection.tools)
        by_name(connection.tools)[name].call({})
        wait_for(lambda: new in by_name(connection.tools))


@pytest.mark.slow
def test_asynchronous_code_calls_several_at_once_and_cancels() -> None:
    async def run() -> None:
        async with constrain.mcp.connect(SCRIPTED) as connection:
            tools = by_name(connection.tools)
            texts = await asyncio.gather(*(tools["shout"].acall({"word": word}) for word in "abc"))
            assert texts == ["A", "B", "C"]
            hanging = asyncio.create_task(tools["hang"].acall({}))
            await asyncio.sleep(0.2)
            hanging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hanging
            assert await tools["cancelled"].acall({}) != "[]"
            assert await tools["shout"].acall({"word": "d"}) == "D"

    asyncio.run(run())


@pytest.mark.slow
def test_a_cancelled_start_leaves_nothing_behind() -> None:
    before = threading.active_count()

    async def run() -> None:
        connection = constrain.mcp.connect(SCRIPTED)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(connection.__aenter__(), 0.01)
        with pytest.raises(ToolError, match="not open"):
            connection.tools  # noqa: B018

    asyncio.run(run())
    wait_for(lambda: threading.active_count() <= before)


def test_names_of_two_servers_differ() -> None:
    configured = {"mcpServers": {"one": {"command": SCRIPTED[0], "args": SCRIPTED[1:]}}}
    with constrain.mcp.connect(configured, SCRIPTED, exclude=["hang", "one_fail"]) as connection:
        names = [tool.name for tool in connection.tools]
        assert names[0] == "one_shout"
        assert "scripted.py_shout" in names
        assert not {"one_hang", "scripted.py_hang", "one_fail"} & set(names)
        assert "scripted.py_fail" in names


def test_unknown_names_to_exclude_are_refused() -> None:
    with pytest.raises(ToolError, match="no tool is named 'hush'; the tools are shout"):
        constrain.mcp.connect(SCRIPTED, exclude=["hush"]).__enter__()


@pytest.mark.slow
def test_tools_that_cannot_be_enforced_are_all_named(tmp_path: Path) -> None:
    empty = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2}}, "required": ["a"]}
    listed = [{"name": name, "inputSchema": empty} for name in ("first", "second")]
    (tmp_path / "list.json").write_text(json.dumps([*listed, {"name": "third", "inputSchema": {"type": "object"}}]))
    command = [*SCRIPTED, str(tmp_path / "list.json")]
    with pytest.raises(ToolError, match=r"(?s)2 of 3 tools.*exclude.*'first'.*'second'"):
        constrain.mcp.connect(command).__enter__()
    with constrain.mcp.connect(command, exclude=["first", "second"]) as connection:
        assert [tool.name for tool in connection.tools] == ["third"]


def test_a_list_without_an_end_is_refused() -> None:
    endless = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {"tools": [], "nextCursor": "x"}
    if message["method"] == "initialize":
        about = {"name": "a", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    told = {"result": result}
    if message["method"] == "server/discover":
        told = {"error": {"code": -32601, "message": "unknown method"}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}), flush=True)
"""
    with pytest.raises(ToolError, match="has no end: page 'x' comes again"):
        constrain.mcp.connect([sys.executable, "-c", endless]).__enter__()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([*OFFICIAL, str(port)], stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: is_open(port))
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


def is_open(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("over", ["standard input and output", "HTTP", "HTTP with headers"])
def test_results_of_the_official_sdk(over: str, address: str) -> None:
    configured = {"mcpServers": {"official": {"url": address, "headers": {"X-Key": "k"}}}}
    server: Any = OFFICIAL if over[0] == "s" else address if over == "HTTP" else configured
    with constrain.mcp.connect(server) as connection:
        tools = by_name(connection.tools)
        size = {"width": 4, "height": 3}
        assert tools["area"].call({"size": size, "scale": 0.5}) == "6.0"
        halves = tools["halves"].call({"size": size})
        assert halves.count('"width"') == 2  # as texts alone: the structured result says the same
        assert tools["picture"].call({}) == "[image (image/gif), not shown: only text can be read here]"
        with pytest.raises(constrain.mcp.CallError, match="wrong"):
            tools["wrong"].call({})
        assert list(connection.instructions.values()) == ["Measure twice."]
        assert tools["header"].call({"name": "X-Key"}) == ("k" if over == "HTTP with headers" else "")


@pytest.mark.slow
def test_a_session_of_the_callers_own() -> None:
    async def run() -> constrain.tools.FunctionTool:
        parameters = mcp.StdioServerParameters(command=SCRIPTED[0], args=SCRIPTED[1:])
        async with mcp.Client(parameters) as client:
            for session in (client, client.session):
                tools = by_name(await constrain.mcp.tools(session, exclude=["hang"]))
                assert "hang" not in tools
                assert await tools["shout"].acall({"word": "here"}) == "HERE"
                assert await asyncio.to_thread(tools["shout"].call, {"word": "there"}) == "THERE"
                with pytest.raises(ToolError, match="await its acall"):
                    tools["shout"].call({"word": "here"})
                with pytest.raises(constrain.mcp.CallError, match="out of paper"):
                    await tools["fail"].acall({})
        return tools["shout"]

    shout = asyncio.run(run())
    with pytest.raises(constrain.mcp.CallError, match="event loop of the session has ended"):
        shout.call({"word": "anybody?"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("no-such-program", "'no-such-program' .*cannot be reached: there is no program 'no-such-program'"),
        ([sys.executable, "-c", "raise SystemExit('no key')"], "cannot be reached: .*it wrote:\nno key"),
        ("http://127.0.0.1:9/mcp", "http://127.0.0.1:9/mcp.*cannot be reached: ConnectError"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "cannot be reached: no answer within 1 seconds"),
    ],
)
def test_servers_that_cannot_be_reached(server: Any, message: str) -> None:
    before = threading.active_count()
    with pytest.raises(ToolError, match=f"(?s){message}"):
        constrain.mcp.connect(SCRIPTED, server, start_timeout=1).__enter__()
    wait_for(lambda: threading.active_count() <= before)
