"""Commands within a conversation, such as ``/schema name, age int``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrain.cli import shared
from constrain.suggestions import unknown_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.cli.chat.servers import Servers
    from constrain.cli.chat.talk import Talk


class SlashCommands:
    """The commands of one conversation.

    Args:
        talk: the conversation.
        servers: the MCP servers of the conversation.
        say: function that shows a text to the user.
    """

    def __init__(self, talk: Talk, servers: Servers, say: Callable[[str], None]) -> None:
        self._talk = talk
        self._servers = servers
        self._say = say
        self._commands: dict[str, tuple[Callable[[str], None], str, str]] = {
            "help": (self._help, "", "lists the commands"),
            "schema": (self._schema, "[FILE or SCHEMA or off]", "shows, sets or removes the schema of the answers"),
            "lark": (self._lark, "FILE or NAME", "sets a Lark grammar for the answers"),
            "regex": (self._regex, "PATTERN", "sets a regular expression for the answers"),
            "system": (self._system, "[TEXT or off]", "shows, sets or removes the system message"),
            "tools": (self._tools, "", "lists the tools"),
            "call": (self._call, "[TOOL or off]", "has the next answer call this tool, or any"),
            "mcp": (self._mcp, "CONFIG", "adds the tools of MCP servers: a configuration, a command or a URL"),
            "clear": (self._clear, "", "forgets the conversation"),
            "undo": (self._undo, "", "forgets the last question and its answer"),
            "save": (self._save, "FILE", "writes the conversation to a new file, as JSON messages"),
            "quit": (_quit, "", "ends the program, as Ctrl-D does"),
        }

    def run(self, line: str) -> None:
        """Runs a line that begins with a slash. Raises ``EOFError`` to end, ``ValueError``, and errors of schemas."""
        name, _, argument = line.removeprefix("/").partition(" ")
        if name not in self._commands:
            raise ValueError(unknown_names("commands", {name}, self._commands) + "; /help lists them")
        command, takes, _about = self._commands[name]
        if takes and not takes.startswith("[") and not argument.strip():
            raise ValueError(f"/{name} needs {takes}")
        command(argument.strip())

    def _help(self, _: str) -> None:
        rows = [(f"/{name} {takes}".rstrip(), about) for name, (_run, takes, about) in self._commands.items()]
        width = max(len(first) for first, _about in rows)
        self._say("\n".join(f"{first:{width}}  {about}" for first, about in rows))
        self._say('A text that begins with """ goes on until a line ends with """. Ctrl-C ends an answer.')

    def _schema(self, given: str) -> None:
        if given == "off":
            self._talk.schema = None
        elif given:
            self._talk.set_schema(shared.read_schema_text(given))
        schema = self._talk.schema
        self._say("no schema" if schema is None else f"answers match {schema}")

    def _lark(self, given: str) -> None:
        self._talk.set_schema(shared.read_lark(given))

    def _regex(self, given: str) -> None:
        self._talk.set_schema(shared.read_pattern(given, None))

    def _system(self, given: str) -> None:
        if given:
            self._talk.system = "" if given == "off" else given
        self._say(self._talk.system or "no system message")

    def _tools(self, _: str) -> None:
        tools = self._servers.tools()
        self._say("\n".join(f"{tool.name}: {tool.description}" for tool in tools) or "no tools; /mcp adds some")

    def _call(self, given: str) -> None:
        if given == "off":
            self._talk.must_call = None
            return
        names = [tool.name for tool in self._servers.tools()]
        if not names or (given and given not in names):
            raise ValueError(unknown_names("tools", {given}, names) if names else "there are no tools; /mcp adds some")
        self._talk.must_call = given or "required"

    def _mcp(self, given: str) -> None:
        before = len(self._servers.tools())
        self._servers.add(given)
        self._say(f"{len(self._servers.tools()) - before} tools added")

    def _clear(self, _: str) -> None:
        self._talk.messages = []

    def _undo(self, _: str) -> None:
        asked = [index for index, message in enumerate(self._talk.messages) if message["role"] == "user"]
        if not asked:
            raise ValueError("there is no question to forget")
        self._talk.messages = self._talk.messages[: asked[-1]]

    def _save(self, given: str) -> None:
        start: list[dict[str, Any]] = [{"role": "system", "content": self._talk.system}] if self._talk.system else []
        text = json.dumps([*start, *self._talk.messages], ensure_ascii=False, indent=2)
        with Path(given).expanduser().open("x", encoding="utf-8") as file:
            file.write(text + "\n")


def _quit(_: str) -> None:
    raise EOFError
