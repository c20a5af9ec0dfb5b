"""Which MCP servers: by command, by URL, or by the configuration that other programs share."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from constrain.errors import ToolError


@dataclass(frozen=True, slots=True)
class Command:
    """A server that is started as a process, and speaks through its standard input and output."""

    program: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    directory: str | None = None

    def __str__(self) -> str:
        return shlex.join((self.program, *self.arguments))


@dataclass(frozen=True, slots=True)
class Address:
    """A server that runs already, and speaks streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.url)  # without a password and a query, which may be secret
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


Server = Command | Address

ServerSource = str | Sequence[str] | Mapping[str, Any] | PurePath
"""A command (``"uvx mcp-server-time"``, or a list of its words), a URL, a configuration, or a file with one."""


def read_servers(sources: Sequence[ServerSource], environment: Mapping[str, str]) -> dict[str, Server]:
    """Returns servers by their names; commands get further variables. Raises ``ToolError`` for what is no server."""
    found: dict[str, Server] = {}
    for source in sources:
        for name, server in _servers_in(source):
            found[_new_name(name, found)] = _with_more(server, environment)
    if not found:
        raise ToolError("connect needs a server: a command, a URL, or a configuration with mcpServers")
    return found


def _with_more(server: Server, environment: Mapping[str, str]) -> Server:
    if not isinstance(server, Command):
        return server
    return replace(server, environment={**environment, **server.environment})


def _servers_in(source: ServerSource) -> list[tuple[str, Server]]:
    if isinstance(source, Mapping):
        return _configured(source, "the configuration")
    if isinstance(source, PurePath):
        return _configured(_read_file(Path(source)), str(source))
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        return [(urlsplit(source).hostname or "server", Address(source))]
    if isinstance(source, str) and source.endswith(".json") and Path(source).is_file():
        raise ToolError(f"{source!r} is a file; give Path({source!r}) if it is a configuration")
    words = _words(source)
    return [(_name_of_program(words), Command(words[0], tuple(words[1:])))]


def _words(source: str | Sequence[str]) -> list[str]:
    try:
        words = shlex.split(source) if isinstance(source, str) else list(source)
    except ValueError as error:
        raise ToolError(f"the command {source!r} cannot be read: {error}") from error
    if not words or not all(isinstance(word, str) for word in words):
        raise ToolError(f"{source!r} is no server: give a command, a URL, or a configuration with mcpServers")
    return words


_STARTER = re.compile(r"uvx?|npx|bunx|node|deno|docker|pipx|python[\d.]*|run")
"""Programs that only start another one."""


def _name_of_program(words: Sequence[str]) -> str:
    """Returns the word that tells servers apart: ``mcp-server-time`` of ``uvx mcp-server-time --debug``."""
    named = [PurePath(word).name for word in words if not word.startswith("-")]
    return next((name for name in named if not _STARTER.fullmatch(name)), named[0] if named else words[0])


def _read_file(path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ToolError(f"the configuration {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ToolError(f"the configuration {path} is not JSON: {error}") from error
    if not isinstance(document, Mapping):
        raise ToolError(f"the configuration {path} is not a JSON object")
    return document


def _configured(document: Mapping[str, Any], where: str) -> list[tuple[str, Server]]:
    """Returns the servers of a configuration, ``{"mcpServers": {name: {"command": ...} or {"url": ...}}}``."""
    key = "servers" if "servers" in document and "mcpServers" not in document else "mcpServers"
    servers = document.get(key)
    if not isinstance(servers, Mapping):
        raise ToolError(f"{where} has no object mcpServers", pointer="/mcpServers")
    enabled = [(name, entry) for name, entry in servers.items() if not _is_disabled(entry)]
    return [(name, _server(entry, f"/{key}/{name}")) for name, entry in enabled]


def _is_disabled(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("disabled") is True


_COMMAND_KEYS = {"command", "args", "env", "cwd"}
_ADDRESS_KEYS = {"url", "headers"}
_IGNORED_KEYS = {"type", "transport", "name", "description", "disabled", "alwaysAllow", "autoApprove"}
"""Keys of other programs that change nothing here: the transport follows from ``command`` or ``url``, and calls are not
confirmed."""

_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")


def _server(entry: Any, pointer: str) -> Server:
    if not isinstance(entry, Mapping) or ("command" in entry) == ("url" in entry):
        raise ToolError("a server is an object with either command or url", pointer=pointer)
    known = (_COMMAND_KEYS if "command" in entry else _ADDRESS_KEYS) | _IGNORED_KEYS
    for key in entry:
        if key not in known:
            expected = ", ".join(sorted(known - _IGNORED_KEYS))
            raise ToolError(
                f"unknown key {key!r}; the keys of such a server are {expected}", pointer=f"{pointer}/{key}"
            )
    if entry.get("type", entry.get("transport")) == "sse":
        raise ToolError(
            "servers of the older HTTP+SSE transport are not supported; use streamable HTTP", pointer=pointer
        )
    if "url" in entry:
        return Address(_text(entry, "url", pointer), _texts(entry, "headers", pointer))
    arguments = entry.get("args", [])
    if not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
        raise ToolError("args is a list of strings", pointer=f"{pointer}/args")
    arguments = [_expanded(each, f"{pointer}/args/{number}") for number, each in enumerate(arguments)]
    directory = _text(entry, "cwd", pointer) if "cwd" in entry else None
    return Command(_text(entry, "command", pointer), tuple(arguments), _texts(entry, "env", pointer), directory)


def _text(entry: Mapping[str, Any], key: str, pointer: str) -> str:
    value = entry[key]
    if not isinstance(value, str) or not value:
        raise ToolError(f"{key} is a text", pointer=f"{pointer}/{key}")
    return _expanded(value, f"{pointer}/{key}")


def _expanded(text: str, pointer: str) -> str:
    """Returns a text with the values of environment variables: ``${NAME}``, or ``${NAME:-value if it is not set}``."""

    def value(found: re.Match[str]) -> str:
        known = os.environ.get(found[1], found[2])
        if known is None:
            raise ToolError(f"the environment variable {found[1]} is not set", pointer=pointer)
        return known

    return _VARIABLE.sub(value, text)


def _texts(entry: Mapping[str, Any], key: str, pointer: str) -> dict[str, str]:
    value = entry.get(key, {})
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise ToolError(f"{key} is an object of strings", pointer=f"{pointer}/{key}")
    return {name: _expanded(each, f"{pointer}/{key}/{name}") for name, each in value.items()}


def _new_name(name: str, known: Mapping[str, Any]) -> str:
    number, new = 1, name
    while new in known:
        number += 1
        new = f"{name}_{number}"
    return new
