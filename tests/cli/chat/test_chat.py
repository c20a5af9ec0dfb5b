"""Conversations on the command line: from a file of questions, and on a terminal."""

from __future__ import annotations

import json
import stat
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Literal

import pytest

import constrain
from constrain.cli.chat import command
from constrain.cli.chat.screen import Screen, _end_of_block
from constrain.cli.chat.stop import Stop
from constrain.cli.chat.talk import REFUSED, Talk
from constrain.generation.completion import Finished
from tests.support import for_each
from tests.support.command_line import Terminal, call
from tests.support.judging import require_valid

pytestmark = pytest.mark.usefixtures("tiny_model")

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SERVER = f"{sys.executable} {Path(__file__).parents[2] / 'support/mcp/scripted.py'}"
FAST = ("--seed", "1", "--max-tokens", "40", "--threads", "1")


def chat(*lines: str, options: tuple[str, ...] = ()) -> CompletedProcess[str]:
    return call("chat", *FAST, *options, text="".join(f"{line}\n" for line in lines))


@pytest.mark.slow
def test_each_line_is_a_question(tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    lines = (
        *("/regex Hello[.]", "Hello", "", "/regex (yes|no)", '"""Is', 'it?"""', f"/save {file}", "Forgotten", "/undo"),
    )
    done = chat(*lines, f"/save {tmp_path / 'after.json'}", "/quit", "Not asked", options=("--system", "Be brief."))
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert first == "Hello."
    assert {second, third} <= {"yes", "no"}
    saved = json.loads(file.read_text(encoding="utf-8"))
    assert saved == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Is\nit?"},
        {"role": "assistant", "content": second},
    ]
    assert json.loads((tmp_path / "after.json").read_text(encoding="utf-8")) == saved


def test_answers_match_the_schema_and_it_may_change() -> None:
    done = chat(
        "Ada is 36.", "/schema off", "/schema", "/lark semver", "Which version?", options=("--schema", "name, age int")
    )
    assert done.returncode == 0, done.stderr
    text, version = done.stdout.strip().rsplit("\n", 1)
    require_valid(PERSON, text)
    assert version.count(".") >= 2
    assert "no schema" in done.stderr


def test_free_text_has_a_memory() -> None:
    done = chat("My name is Ada.", "/clear", "/tools", "/system", "/help", "Hello")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    for said in ("no tools; /mcp adds some", "no system message", "/schema [FILE or SCHEMA or off]"):
        assert said in done.stderr


@for_each(
    "line, error",
    ("/schma", "error: unknown commands: schma"),
    ("/regex", "error: /regex needs PATTERN"),
    ("/regex (a", "error: pattern '(a', column 1: the group that begins here has no closing )"),
    ("/schema name integr", "error: line 1, column 1: 'name': unknown type 'integr'"),
    ("/schema missing.json", "error: missing.json: there is no such file"),
    ('/schema {"$ref": "#/x"}', "error: "),
    ("/lark missing", "error: "),
    ("/mcp /nowhere/server", "error: "),
    ("/undo", "error: there is no question to forget"),
    ("/call shout", "error: there are no tools; /mcp adds some"),
    ("/save /nowhere/talk.json", "error: /nowhere/talk.json: there is no such file or folder"),
)
def test_an_error_ends_a_conversation_without_a_terminal(line: str, error: str) -> None:
    done = chat(line, "Hello")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(error), done.stderr


def test_an_answer_that_does_not_fit_is_refused() -> None:
    done = chat("Ada", options=("--schema", "name, age int", "--max-tokens", "3"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: max_tokens is 3")


@pytest.fixture
def server(tmp_path: Path) -> str:
    """The command of a server with one tool, which shouts hello."""
    word = {"type": "object", "properties": {"word": {"enum": ["hello"]}}, "required": ["word"]}
    (tmp_path / "tools.json").write_text(json.dumps([{"name": "shout", "inputSchema": word}]))
    return f"{SERVER} {tmp_path / 'tools.json'}"


@pytest.mark.slow
def test_tools_run_only_if_they_may(server: str) -> None:
    asked = ("/tools", "/call shout", "Shout the word hello.")
    only = ("--mcp", server, "--max-tokens", "120")
    refused = chat(*asked, f"/mcp {server}", options=only)
    assert (refused.returncode, "error: there is a tool 'shout' already" in refused.stderr) == (1, True)
    assert "-> shout(word='hello')" in refused.stderr, refused.stderr
    assert "(not run: there is no terminal to ask at; --yes runs all calls)" in refused.stderr
    assert f"<- {REFUSED}" in refused.stderr
    assert "<- HELLO" in chat(*asked, options=(*only, "--yes")).stderr


@pytest.mark.slow
def test_on_a_terminal_markdown_calls_and_a_history(tmp_path: Path, server: str) -> None:
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    with Terminal("chat", *FAST, "--max-tokens", "120", "--mcp", server, **home) as terminal:
        terminal.expect(">>> ", 120)
        terminal.type("/call\n")
        terminal.expect(">>> ")
        terminal.type("Shout the word hello.\n")
        terminal.expect("Run it? [y]es, [n]o, [a]lways this tool: ")
        terminal.type("what\n")
        terminal.expect("Run it? [y]es, [n]o, [a]lways this tool: ")
        terminal.type("a\n")
        terminal.expect("<- HELLO")
        terminal.expect(">>> ", 120)
        terminal.type("/schema name, age in\n")
        terminal.expect("unknown type 'in'")
        terminal.expect(">>> ")
        time.sleep(1)  # the program prints the prompt before it waits for a key
        terminal.interrupt()
        terminal.expect(">>> ")
        terminal.type("\x04")
        assert terminal.status() == 0
    (history,) = (tmp_path / "state").rglob("chat_history")
    assert "Shout the word hello." in history.read_text(encoding="utf-8")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert stat.S_IMODE(history.parent.stat().st_mode) == 0o700


@pytest.mark.slow
def test_an_interrupt_ends_the_answer_and_not_the_program(tmp_path: Path) -> None:
    with Terminal("chat", "--seed", "1", "--threads", "1", "--no-history", HOME=str(tmp_path)) as terminal:
        terminal.expect(">>> ", 120)
        terminal.type("/regex abab[ab]{3000}\n")
        terminal.expect(">>> ")
        terminal.type("Write.\n")
        terminal.expect("abab", 60)
        terminal.interrupt()
        terminal.expect("(stopped)", 30)
        terminal.expect(">>> ")
        terminal.type("/regex (yes|no)\n")
        terminal.expect(">>> ")
        terminal.type("Did you stop?\n")
        terminal.expect(">>> ")
        terminal.type("/quit\n")
        assert terminal.status() == 0
    assert not list(tmp_path.rglob("chat_history"))


@for_each(
    "text, block",
    ("One\n\nTwo", "One\n\n"),
    ("One\nTwo", None),
    ("\n\nOne\n", None),
    ("```\na\n\nb\n```\n\nc", "```\na\n\nb\n```\n\n"),
    ("```\na\n\nb", None),
    ("~~~\n```\n\n~~~\n\n", "~~~\n```\n\n~~~\n\n"),
    ("", None),
)
def test_blocks_of_markdown(text: str, block: str | None) -> None:
    end = _end_of_block(text)
    assert (None if end is None else text[:end]) == block


@dataclass
class Call:
    name: str


def test_consent_for_one_tool_is_for_this_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["maybe", "a", "n", "y"])
    asked: list[str] = []
    monkeypatch.setattr(command, "ask_user", lambda question: asked.append(question) or next(answers))
    allow = command._make_allow(Screen(is_markdown=False), Stop(), is_terminal=True, allows_all=False)
    calls: list[Any] = [Call("all"), Call("all"), Call("delete"), Call("delete")]
    assert [allow(call) for call in calls] == [True, True, False, True]
    assert len(asked) == 4


def test_no_call_runs_after_an_interrupt() -> None:
    ran: list[int] = []

    @constrain.tool
    def count(number: Literal[1, 2]) -> int:
        """Counts."""
        ran.append(number)
        return number

    talk = Talk(
        constrain.Model(), {"max_tokens": 120, "seed": 1}, schema=None, system="", find_tools=lambda: [count],
        allow=lambda _: True,
    )  # fmt: skip
    talk.must_call = "count"
    stop = Stop()
    for event in talk.ask("Count.", stop.is_noted):
        stop._is_noted |= isinstance(event, Finished)
    assert ran == []
    assert talk.messages == []
    assert talk.must_call == "count"
