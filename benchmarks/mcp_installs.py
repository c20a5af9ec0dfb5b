"""Servers of the Model Context Protocol from the package indexes: installed, started without a network, and listed.

``mcp_servers.json`` has the servers: a name, the package with its version, the index (``pypi`` or ``npm``), the command
with its arguments, the environment variables, such as made-up keys, and what else it needs to be installed (``needs``).
``{folder}`` stands for a folder with a repository, a text and a table. Each package gets an environment of its own,
without install scripts, which may download programs from elsewhere.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import constrain.mcp
from constrain.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

OFFLINE = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$0" "$@"')
"""Command in front of a server's: it has no network but its own loopback device."""

INSTALL_SECONDS = 600
"""Seconds that an installation may take."""

START_SECONDS = 60.0
"""Seconds in which a server must list its tools; beyond, it counts as not started."""

REASON_LINES, LINE = 3, 200
"""What is kept of a reason for not starting: so many first lines and the last one, so many characters of each."""

_REFUSED = re.compile(r"^- (.*?tool '([^']+)'.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Server:
    """A server as the file names it."""

    name: str
    package: str
    version: str
    index: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    needs: list[str] = field(default_factory=list)


@dataclass
class Listed:
    """A server with what it lists. ``refused``: reasons by tool. ``failure``: why it did not start."""

    name: str
    package: str
    version: str
    index: str
    tools: list[dict[str, Any]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    start_seconds: float = 0.0
    failure: str | None = None


def read_servers(path: Path) -> list[Server]:
    """Returns the servers of a file."""
    return [Server(**each) for each in json.loads(path.read_text(encoding="utf-8"))]


def list_tools(servers: list[Server], folder: Path) -> list[Listed]:
    """Installs and starts servers one after the other below ``folder``; returns each with the tools that it lists."""
    given = _make_given(folder / "given")
    found = []
    for server in servers:
        listed = _list_one(server, folder, given)
        told = listed.failure or f"{len(listed.tools)} tools, {len(listed.refused)} refused"
        print(f"{server.name} {server.version}: {told.splitlines()[-1]}", flush=True)
        found.append(listed)
    return found


def _list_one(server: Server, folder: Path, given: Path) -> Listed:
    listed = Listed(server.name, server.package, server.version, server.index)
    try:
        programs = _install(server, folder / "environments" / server.name)
        _start(server, programs, folder / "home", given, listed)
    except subprocess.SubprocessError as error:
        written = getattr(error, "stderr", None) or b""
        listed.failure = f"not installed: {_shorten(written.decode(errors='replace') or str(error), folder)}"
    except ToolError as error:
        reason = error.message.partition("cannot be reached: ")[2] or error.message
        listed.failure = f"not started: {_shorten(reason, folder)}"
    return listed


def _shorten(reason: str, folder: Path) -> str:
    """Returns the beginning and the end of a reason, without the names of folders of this machine."""
    told = (line.strip()[:LINE] for line in reason.replace(str(folder), "FOLDER").splitlines())
    lines = [line for line in told if line and not line.startswith("WARNING: ")]
    return " | ".join(lines if len(lines) <= REASON_LINES else [*lines[:REASON_LINES], lines[-1]])


def _start(server: Server, programs: Path, home: Path, given: Path, listed: Listed) -> None:
    """Starts a server and lists its tools; once more without those whose schemas are refused."""
    home.mkdir(exist_ok=True)
    words = [word.replace("{folder}", str(given)) for word in server.command]
    told = {name: value.replace("{folder}", str(given)) for name, value in server.env.items()}
    env = {"HOME": str(home), "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", **told}
    command = [*OFFLINE, str(programs / words[0]), *words[1:]]
    configuration = {
        "mcpServers": {server.name: {"command": command[0], "args": command[1:], "env": env, "cwd": str(given)}}
    }
    try:
        _take_tools(configuration, listed)
    except ToolError as error:
        listed.refused = {name: reason for reason, name in _REFUSED.findall(error.message)}
        if not listed.refused:
            raise
        _take_tools(configuration, listed)


def _take_tools(configuration: dict[str, Any], listed: Listed) -> None:
    """Takes the tools of a server, except those that are known to be refused."""
    begin = time.perf_counter()
    with constrain.mcp.connect(configuration, exclude=listed.refused, start_timeout=START_SECONDS) as connection:
        listed.start_seconds = round(time.perf_counter() - begin, 2)
        listed.tools = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in connection.tools
        ]


def _make_given(folder: Path) -> Path:
    """Returns a folder with what some servers ask for."""
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / "note.txt").write_text("Buy milk.\n", encoding="utf-8")
        (folder / "table.csv").write_text("city,people\nOslo,700000\n", encoding="utf-8")
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def _install(server: Server, environment: Path) -> Path:
    """Installs a package unless it is there already; returns the folder of its programs."""
    wanted, note = " ".join((server.package, server.version, *server.needs)), environment / "made-of"
    programs = environment / ("bin" if server.index == "pypi" else "node_modules/.bin")
    if note.exists() and note.read_text(encoding="utf-8") == wanted:
        return programs
    shutil.rmtree(environment, ignore_errors=True)
    environment.mkdir(parents=True)
    sign = "==" if server.index == "pypi" else "@"
    packages = (f"{server.package}{sign}{server.version}", *server.needs)
    if server.index == "pypi":
        _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
        into = ("--python", str(environment / "bin/python"))
        wheels = ("--only-binary", ":all:", "--disable-pip-version-check")
        _run(sys.executable, "-m", "pip", *into, "install", "-q", *wheels, *packages)
    else:
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        _run("npm", "install", "--prefix", str(environment), *options, *packages)
    note.write_text(wanted, encoding="utf-8")
    return programs


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_SECONDS)


def write_listed(path: Path, listed: list[Listed]) -> None:
    """Keeps what servers listed, to measure it again without them."""
    path.write_text(json.dumps([asdict(each) for each in listed], indent=1) + "\n", encoding="utf-8")


def read_listed(path: Path) -> list[Listed]:
    """Returns what ``write_listed`` kept."""
    return [Listed(**each) for each in json.loads(path.read_text(encoding="utf-8"))]
